/** Starts a real program against a mock API, in a home and a working folder of its own, and reads its stream. */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { claudeAgainst, codexAgainst } from "../../../src/agents/mock-api/against.ts";
import type { Scenario } from "../../../src/agents/mock-api/script.ts";
import { type MockApi, startMockApi } from "../../../src/agents/mock-api/server.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { programPath } from "./install.ts";

export type Line = Record<string, unknown> & { type: string };

export interface RealRun {
  child: ChildProcess;
  /** Objects of its stdout so far. */
  lines: readonly Line[];
  stderr(): string;
  ended: Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>;
}

export interface Bench {
  api: MockApi;
  /** Working folder of the programs; beside it their home, which is kept from run to run. */
  dir: string;
  claude: (prompt: string, options?: StartOptions) => RealRun;
  codex: (prompt: string, options?: StartOptions) => RealRun;
}

export interface StartOptions {
  args?: readonly string[];
  key?: string;
  retries?: number;
  isSubscription?: boolean;
  /** codex: the thread that goes on. */
  resume?: string;
  /** claude: leave stdin open after the first message. */
  isOpen?: boolean;
  /** claude: of the first message. */
  uuid?: string;
}

/** A mock API that answers a scenario, and programs that use it. */
export async function makeBench(scenario: Scenario): Promise<Bench> {
  const api = await startMockApi(scenario);
  onTestFinished(() => api.close());
  const root = tempDir();
  const dir = join(root, "work");
  const home = join(root, "home");
  fs.mkdirSync(dir);
  fs.mkdirSync(home);
  const own = { PATH: process.env["PATH"] ?? "", HOME: home, IS_SANDBOX: "1" };
  return {
    api,
    dir,
    claude(prompt, { args = [], isOpen = false, uuid, isSubscription = false, ...rest } = {}) {
      const against = claudeAgainst({ ...DEFAULTS, url: api.url, ...rest }, { isSubscription });
      const started = start("claude", [...CLAUDE.split(" "), ...against.args, ...args], dir, {
        ...own,
        ...against.env,
      });
      started.child.stdin?.write(`${JSON.stringify(userFrame(prompt, uuid))}\n`);
      if (!isOpen) started.child.stdin?.end();
      return started;
    },
    codex(prompt, { args = [], resume, ...rest } = {}) {
      const against = codexAgainst({ ...DEFAULTS, url: api.url, ...rest });
      const options = [...CODEX.split(" "), ...against.args, ...args];
      const thread = resume === undefined ? [] : ["resume", resume];
      const started = start("codex", ["exec", ...options, ...thread, prompt], dir, own);
      started.child.stdin?.end();
      return started;
    },
  };
}

const DEFAULTS = { key: "not-a-key-0001", retries: 1 };
const CLAUDE =
  "-p --input-format stream-json --output-format stream-json --verbose --replay-user-messages " +
  "--permission-mode bypassPermissions --model claude-sonnet-4-5";
const CODEX =
  "--json --skip-git-repo-check -c model=mock-model -c approval_policy=never " +
  "-c sandbox_mode=danger-full-access";

export const userFrame = (text: string, uuid: string = crypto.randomUUID()): object => ({
  type: "user",
  uuid,
  message: { role: "user", content: text },
});

function start(
  name: "claude" | "codex",
  args: readonly string[],
  cwd: string,
  env: Record<string, string>,
): RealRun {
  const child = spawn(programPath(name), args, {
    cwd,
    env,
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
  });
  const lines: Line[] = [];
  let rest = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const whole = (rest + text).split("\n");
    rest = whole.pop() ?? "";
    for (const line of whole) if (line.trim() !== "") lines.push(JSON.parse(line) as Line);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => {
    // It ended without reading; how it ended says more.
  });
  const ended = new Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>(
    (resolve, reject) => {
      child.once("error", reject);
      child.once("close", (exitCode, signal) => resolve({ exitCode, signal }));
    },
  );
  onTestFinished(() => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // All of its group has ended.
    }
  });
  return { child, lines, stderr: () => stderr, ended };
}

/** The last line of a type. */
export const last = (run: RealRun, type: string): Line | undefined =>
  run.lines.findLast((line) => line.type === type);

/**
 * A tool call whose process runs for long, and writes its pid to a file first. It is a child of the call's shell. claude refuses
 * a command that is nothing but a long sleep.
 */
export const LONG_TOOL = "sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 60'; echo over";

/** The process of `LONG_TOOL`, once it runs. It is killed at the end of the test. */
export async function toolPid(dir: string): Promise<number> {
  const path = join(dir, "pid");
  await waitFor(() => fs.existsSync(path), { what: "the tool", timeoutMs: 30_000 });
  const pid = Number(fs.readFileSync(path, "utf8"));
  onTestFinished(() => {
    if (isAlive(pid)) process.kill(pid, "SIGKILL");
  });
  return pid;
}

export function isAlive(pid: number): boolean {
  try {
    // A process that has ended and was not collected yet is not alive.
    return !fs.readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}
