/** The real programs through mailchute: a pool whose agents are pointed at a mock API, each with a home of its own. */
import fs from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { claudeAgainst, codexAgainst } from "../../../src/agents/mock-api/against.ts";
import type { Scenario } from "../../../src/agents/mock-api/script.ts";
import { type MockApi, startMockApi } from "../../../src/agents/mock-api/server.ts";
import type { Task } from "../../../src/core/task.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { programPath } from "./install.ts";

export type Kind = "claude" | "codex";
export const KINDS: readonly Kind[] = ["claude", "codex"];
/** Name, kind, settings of the agent. */
export const PROGRAMS = [
  ["claude", "claude", {}],
  ["codex", "codex", {}],
  ["codex app-server", "codex", { mode: "app-server" }],
] as const;

export interface AgentBench {
  api: MockApi;
  pool: Pool;
  /** Drops a task for the agent, in a folder of its own. @returns the folder */
  drop: (id: string, task?: Partial<Task>) => string;
}

export interface AgentBenchOptions {
  /** More settings of the agent. */
  agent?: Record<string, unknown>;
  /** More of config.yaml. */
  settings?: Record<string, unknown>;
  retries?: number;
  isSubscription?: boolean;
  /** The folder in which all of it lies. The sandbox of codex lets tools write to the temporary folder. */
  parent?: string;
}

/** A pool with the agent `coder` of this kind. Nothing runs yet. */
export async function newAgentBench(
  kind: Kind,
  scenario: Scenario,
  {
    agent = {},
    settings: more = {},
    retries = 1,
    isSubscription = false,
    parent,
  }: AgentBenchOptions = {},
): Promise<AgentBench> {
  const api = await startMockApi(scenario, { isWhole: true });
  onTestFinished(() => api.close());
  const env: Record<string, string> = {};
  const pool = newPool({ env, ...(parent === undefined ? {} : { parent }) });
  env["XDG_STATE_HOME"] = join(pool.dir, "user");
  const home = join(pool.dir, "home");
  fs.mkdirSync(home);
  const options = { url: api.url, key: "not-a-key-0001", retries };
  const against =
    kind === "claude" ? claudeAgainst(options, { isSubscription }) : codexAgainst(options);
  const settings = {
    name: "coder",
    kind,
    account: "real",
    program: programPath(kind),
    model: kind === "claude" ? "claude-sonnet-4-5" : "mock-model",
    permissions: { mode: "full" },
    args: against.args,
    env: { ...against.env, HOME: home, IS_SANDBOX: "1" },
    ...agent,
  };
  fs.writeFileSync(
    join(pool.state, "config.yaml"),
    JSON.stringify({
      workers: 4,
      durability: "process",
      grace_ms: 2000,
      retry: { max_attempts: 3, backoff_ms: 20, backoff_max_ms: 500 },
      agents: [settings],
      ...more,
    }),
  );
  return {
    api,
    pool,
    drop(id, task = {}) {
      const cwd = join(pool.dir, "work", id);
      fs.mkdirSync(cwd, { recursive: true });
      pool.drop(id, { agent: "coder", prompt: `go: ${id}`, cwd, ...task });
      return cwd;
    },
  };
}
