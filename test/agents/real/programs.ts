/** Each real program as an agent of a pool of its own, against a mock of the services: how it gets its address, and what is left of it. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { codexAgainst } from "../../../src/agents/mock-api/against.ts";
import type { Step } from "../../../src/agents/mock-api/script.ts";
import { type MockApi, startMockApi } from "../../../src/agents/mock-api/server.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { type OnEnd, tempDir } from "../../support/temp-dir.ts";
import { type ProgramName, pathOf, programPath } from "./install.ts";

const KEY = "not-a-key-of-anyone-0001";

interface Program {
  /** As in the documents. */
  title: string;
  /** The settings of its agent. @param url of the mock @param isMetered a meter gives it its address */
  settings: (url: string, isMetered: boolean) => Record<string, unknown>;
  /** Run once in its home, before its first task. */
  setUp?: (url: string) => readonly string[];
}

const acp = (name: ProgramName, ...args: string[]): Record<string, unknown> => ({
  kind: "acp",
  command: [programPath(name), ...args],
});

export const PROGRAMS: Readonly<Record<ProgramName, Program>> = {
  claude: {
    title: "Claude Code",
    settings: (url) => ({
      kind: "claude",
      program: programPath("claude"),
      model: "claude-sonnet-4-5",
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_API_KEY: KEY,
        CLAUDE_CODE_MAX_RETRIES: "1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1",
      },
    }),
  },
  codex: {
    title: "Codex",
    settings: (url, isMetered) => ({
      kind: "codex",
      program: programPath("codex"),
      model: "mock-model",
      ...(isMetered
        ? { env: { OPENAI_BASE_URL: `${url}/v1`, CODEX_API_KEY: KEY } }
        : codexAgainst({ url, key: KEY, retries: 1 })),
    }),
  },
  opencode: {
    title: "opencode",
    settings: (url) => ({
      ...acp("opencode", "acp"),
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_API_KEY: KEY,
        OPENCODE_CONFIG_CONTENT: '{"model":"anthropic/claude-sonnet-4-5"}',
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_PERMISSION: '{"*":"ask"}',
      },
    }),
  },
  qwen: {
    title: "Qwen Code",
    settings: (url) => ({
      ...acp("qwen", "--acp", "--auth-type", "openai"),
      env: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: KEY, OPENAI_MODEL: "mock-model" },
    }),
  },
  gemini: {
    title: "Gemini CLI",
    settings: (url) => ({
      ...acp("gemini", "--acp"),
      auth_method: "gemini-api-key",
      env: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: KEY, GEMINI_MODEL: "gemini-2.5-pro" },
    }),
  },
  copilot: {
    title: "Copilot CLI",
    settings: (url, isMetered) => ({
      ...acp("copilot", "--acp"),
      env: {
        COPILOT_PROVIDER_BASE_URL: isMetered ? `{meter:${url}/v1}` : `${url}/v1`,
        COPILOT_PROVIDER_API_KEY: KEY,
        COPILOT_MODEL: "mock-model",
      },
    }),
  },
  cline: {
    title: "cline",
    settings: () => ({
      ...acp("cline", "--acp"),
      env: { CLINE_PROVIDER: "openai-compatible", CLINE_API_KEY: KEY, CLINE_MODEL: "gpt-4o" },
    }),
    setUp: (url) => ["auth", "-p", "openai", "-k", KEY, "-b", `${url}/v1`, "-m", "gpt-4o"],
  },
};

export interface ProgramBench {
  api: MockApi;
  pool: Pool;
  /** What the model answers next. After each tool call it says that it is done. */
  play: (step: Step) => void;
  /** Drops a task for the agent, in a folder of its own. @returns the folder */
  drop: (id: string, task?: Record<string, unknown>) => string;
  /** Pids of the programs of runs, and of whatever they have started. */
  left: () => number[];
  /** Pids of the programs that workers have started. */
  programs: () => number[];
}

export const DONE = "All of it is done.";

/** A running pool with the agent `coder`. */
export async function newProgramBench(
  name: ProgramName,
  more: Record<string, unknown>,
  onEnd: OnEnd,
): Promise<ProgramBench> {
  let next: Step = { say: DONE };
  // Side requests, such as those for a title, offer no shell.
  const api = await startMockApi(
    ({ lines, tools }) =>
      tools.some((tool) => SHELL.test(tool)) && !isResult(lines.at(-1) ?? "")
        ? next
        : { say: DONE },
    { isWhole: true },
  );
  onEnd(() => api.close());
  const { settings, setUp } = PROGRAMS[name];
  const env: Record<string, string> = {};
  // A sandbox has a /tmp of its own.
  const parent = more["sandbox"] === undefined ? {} : { parent: tempDir(onEnd, "/var/tmp") };
  const pool = newPool({ env, onEnd, ...parent });
  env["XDG_STATE_HOME"] = join(pool.dir, "user");
  const home = join(pool.dir, "home");
  fs.mkdirSync(home);
  const own = { PATH: pathOf(name), HOME: home };
  if (setUp !== undefined)
    execFileSync(programPath(name), setUp(api.url), { env: own, cwd: home, stdio: "ignore" });
  const { env: agentEnv, ...agent } = settings(api.url, more["meter"] !== undefined);
  const coder = {
    name: "coder",
    account: "real",
    permissions: { mode: "full" },
    ...agent,
    ...more,
    env: { ...(agentEnv as Record<string, string> | undefined), ...own, IS_SANDBOX: "1" },
  };
  const config = {
    workers: 4,
    durability: "process",
    grace_ms: 2000,
    // The longest wait is short, so that a run which is put off for a minute comes at once.
    retry: { max_attempts: 3, backoff_ms: 20, backoff_max_ms: 500 },
    agents: [coder],
  };
  fs.writeFileSync(join(pool.state, "config.yaml"), JSON.stringify(config));
  await pool.start();
  return {
    api,
    pool,
    play(step) {
      next = step;
    },
    drop(id, task = {}) {
      const cwd = join(pool.dir, "work", id);
      fs.mkdirSync(cwd, { recursive: true });
      const verify = ["test", "-s", "made.txt"];
      pool.drop(id, { agent: "coder", prompt: `go: ${id}`, cwd, verify, ...task });
      return cwd;
    },
    left: () => pool.pids().filter(isOfRun),
    programs() {
      const workers = new Set(pool.workers().map(({ pid }) => pid));
      return pool.pids().filter((pid) => isOfRun(pid) && workers.has(parentOf(pid)));
    },
  };
}

const SHELL = /^(?:bash|run_shell_command|run_commands|exec_command|shell_command|shell)$/i;

/** Whether the last thing that a message tells is what came of a tool call. */
const isResult = (line: string): boolean =>
  (
    line
      .replace(/^\w+: /, "")
      .split(" | ")
      .at(-1) ?? ""
  ).startsWith("[result ");

/** Whatever runs for an agent is a process whose environment has a lease. */
function isOfRun(pid: number): boolean {
  try {
    return fs.readFileSync(`/proc/${pid}/environ`, "latin1").includes("MAILCHUTE_LEASE=");
  } catch {
    return false;
  }
}

const parentOf = (pid: number): number =>
  Number(fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[1]);
