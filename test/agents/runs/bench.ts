/** Runs of the stand-ins for claude, codex and programs of kind acp through a real pool: each case is an agent of its own with its own account. */
import fs from "node:fs";
import { join } from "node:path";
import type { CostRecord } from "../../../src/agents/cost-records.ts";
import type { AgentLogRecord } from "../../../src/agents/stream/agent-log.ts";
import type { SessionDocument } from "../../../src/agents/stream/session-file.ts";
import { costsOf } from "../../../src/core/state-tree.ts";
import { filesOfDays } from "../../../src/journal/daily.ts";
import type { MovedClock } from "../../support/moved-clock.ts";
import { newPool, type Pool, type PoolOptions, readJson } from "../../support/pool.ts";
import { programPath } from "../../support/programs.ts";
import type { OnEnd } from "../../support/temp-dir.ts";

export type Kind = "claude" | "codex" | "acp";
export type Step = Record<string, unknown>;

export interface FakeAgent {
  name: string;
  kind: Kind;
  /** See fake-agent/script.mjs. */
  turns: readonly (readonly Step[])[];
  /** More settings of the agent. */
  settings?: Record<string, unknown>;
}

interface Start {
  at: number;
  pid: number;
  args: string[];
}

export interface Bench {
  pool: Pool;
  /** What the fake of this agent was started with so far, in order. */
  starts(agent: string): Start[];
  /** The session that each start resumed; undefined: it began one. */
  resumed(agent: string): (string | undefined)[];
  /** What it was told, in order. */
  messages(agent: string): string[];
  /** What was booked of this agent, in order. */
  costs(agent: string): CostRecord[];
  log(agent: string): AgentLogRecord[];
  /** The session that is kept of a task. */
  session(task: string): SessionDocument | undefined;
  sessionPath(task: string): string | undefined;
  gatePath(account: string): string;
}

export interface BenchOptions {
  /** Between two runs; default 20. */
  backoffMs?: number;
  onEnd?: OnEnd;
  /** Where its directory is made, and what is added to the environment of its processes. */
  place?: Pick<PoolOptions, "parent" | "env" | "launcher">;
  /** Texts of programs by agent, in the place of the fake. */
  programs?: Record<string, string>;
  /** The wall clock of its processes; default: that of the machine. */
  clock?: MovedClock;
  /** Accounts with a home of their own, by name: what the fake does there. `starts` and `messages` take such a name, too. */
  accounts?: Record<string, FakeAccount>;
}

export interface FakeAccount {
  turns: readonly (readonly Step[])[];
  reserve_pct?: number;
}

/** A pool that knows these agents; nothing runs yet. */
export function newBench(agents: readonly FakeAgent[], options: BenchOptions = {}): Bench {
  const env: Record<string, string> = { ...options.clock?.env, ...options.place?.env };
  const onEnd = options.onEnd === undefined ? {} : { onEnd: options.onEnd };
  const pool = newPool({ ...options.place, env, ...onEnd });
  env["XDG_STATE_HOME"] = join(pool.dir, "user");
  const folder = (agent: string): string => join(pool.dir, "fakes", agent);
  const programOf = (name: string, kind: Kind): string => {
    const text = options.programs?.[name];
    if (text === undefined) return programPath(`fake-${kind}.mjs`);
    const path = join(pool.dir, `${name}.sh`);
    fs.writeFileSync(path, text, { mode: 0o755 });
    return path;
  };
  const settings = agents.map(({ name, kind, turns, settings: more }) => ({
    name,
    kind,
    account: name,
    // Most tests have no checks, and a program of kind acp needs some, or trust.
    ...(kind === "acp"
      ? { command: [programOf(name, kind)], trust: "end_turn" }
      : { program: programOf(name, kind) }),
    permissions: { mode: "full" },
    ...more,
    env: {
      ...(more?.["env"] as Record<string, string> | undefined),
      FAKE_AGENT: JSON.stringify({ turns }),
      FAKE_AGENT_STATE: folder(name),
      CODEX_HOME: folder(name),
    },
  }));
  const accounts = Object.entries(options.accounts ?? {}).map(([name, { turns, ...more }]) => [
    name,
    {
      ...more,
      env: {
        FAKE_AGENT: JSON.stringify({ turns }),
        FAKE_AGENT_STATE: folder(name),
        CODEX_HOME: folder(name),
      },
    },
  ]);
  const { backoffMs = 20 } = options;
  fs.writeFileSync(
    join(pool.state, "config.yaml"),
    `${configOf(backoffMs)}agents: ${JSON.stringify(settings)}\naccounts: ${JSON.stringify(Object.fromEntries(accounts))}\n`,
  );
  const starts = (agent: string): Start[] => readLines(join(folder(agent), "starts.jsonl"));
  /** Undefined when it is no server. */
  const threads = (agent: string): (string | undefined)[] | undefined => {
    const path = join(folder(agent), "threads.jsonl");
    if (!fs.existsSync(path)) return undefined;
    return readLines<{ resumed?: string }>(path).map(({ resumed }) => resumed);
  };
  const sessions = join(pool.state, "sessions");
  const sessionPath = (task: string): string | undefined => {
    const name = fs.existsSync(sessions)
      ? fs
          .readdirSync(sessions)
          .find((one) => one.startsWith(`${task}@`) && one !== `${task}@agents.json`)
      : undefined;
    return name === undefined ? undefined : join(sessions, name);
  };
  return {
    pool,
    starts,
    resumed: (agent) =>
      threads(agent) ??
      starts(agent).map(({ args }) => {
        const at = args.findIndex((arg) => arg === "--resume" || arg === "resume");
        return at === -1 ? undefined : args[at + 1];
      }),
    messages: (agent) =>
      readLines<{ message: string }>(join(folder(agent), "messages.jsonl")).map(
        ({ message }) => message,
      ),
    costs: (agent) =>
      filesOfDays(costsOf({ dir: pool.state }))
        .flatMap((file) => readLines<CostRecord>(file))
        .filter((record) => record.agent === agent),
    log: (agent) => readLines(join(pool.state, "logs", `${agent}.jsonl`)),
    session: (task) => {
      const path = sessionPath(task);
      return path === undefined ? undefined : readJson<SessionDocument>(path);
    },
    sessionPath,
    gatePath: (account) => join(pool.dir, "user", "mailchute", "accounts", `${account}.json`),
  };
}

/** The longest wait is short, so that a run which is put off for a minute comes at once. */
const configOf = (backoffMs: number): string => `
workers: 6
durability: process
settle_ms: 300
sweep_ms: 200
grace_ms: 500
retry: {max_attempts: 3, backoff_ms: ${backoffMs}, backoff_max_ms: ${Math.max(100, backoffMs)}}
`;

function readLines<T>(path: string): T[] {
  if (!fs.existsSync(path)) return [];
  const lines = fs.readFileSync(path, "utf8").split("\n");
  // The last piece is empty, or a record that is being written.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as T);
}
