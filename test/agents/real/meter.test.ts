/** Real programs with a meter: their books beside what a mock of the services has answered, and a quota about which they are silent. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { GateDocument } from "../../../src/agents/accounts/gate-rules.ts";
import type { CostRecord } from "../../../src/agents/cost-records.ts";
import { type MockApi, startMockApi } from "../../../src/agents/mock-api/server.ts";
import { costsOf } from "../../../src/core/state-tree.ts";
import { filesOfDays } from "../../../src/journal/daily.ts";
import { newPool, type Pool, readJson } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { programPath } from "./install.ts";

const SLOW_MS = 180_000;
const KEY = "not-a-key-of-anyone-0001";
/** What each answer of the mock takes. */
const ANSWER = { input: 1000, output: 30 };

/** The settings of an agent that asks the mock. */
const PROGRAMS: readonly (readonly [string, (url: string) => Record<string, unknown>])[] = [
  [
    "claude",
    (url) => ({
      kind: "claude",
      program: programPath("claude"),
      model: "claude-sonnet-4-5",
      env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY, DISABLE_AUTOUPDATER: "1" },
    }),
  ],
  ...["exec", "app-server"].map(
    (mode): readonly [string, (url: string) => Record<string, unknown>] => [
      `codex ${mode}`,
      (url) => ({
        kind: "codex",
        mode,
        program: programPath("codex"),
        model: "mock-model",
        env: { OPENAI_BASE_URL: `${url}/v1`, CODEX_API_KEY: KEY },
      }),
    ],
  ),
  [
    "opencode",
    (url) => ({
      kind: "acp",
      command: [programPath("opencode"), "acp"],
      trust: "end_turn",
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_API_KEY: KEY,
        OPENCODE_CONFIG_CONTENT: '{"model":"anthropic/claude-sonnet-4-5"}',
        OPENCODE_DISABLE_AUTOUPDATE: "1",
      },
    }),
  ],
];

function newDesk(api: MockApi, settings: Record<string, unknown>): Pool {
  onTestFinished(() => api.close());
  const env: Record<string, string> = {};
  const pool = newPool({ env });
  env["XDG_STATE_HOME"] = join(pool.dir, "user");
  const home = join(pool.dir, "home");
  fs.mkdirSync(home);
  const agent = {
    name: "coder",
    account: "real",
    permissions: { mode: "full" },
    meter: true,
    ...settings,
    env: { ...(settings["env"] as Record<string, string>), HOME: home, IS_SANDBOX: "1" },
  };
  const config = { durability: "process", grace_ms: 2000, agents: [agent] };
  fs.writeFileSync(join(pool.state, "config.yaml"), JSON.stringify(config));
  return pool;
}

function costsIn({ state }: Pool): CostRecord[] {
  return filesOfDays(costsOf({ dir: state }))
    .flatMap((file) => fs.readFileSync(file, "utf8").split("\n").slice(0, -1))
    .map((line) => JSON.parse(line) as CostRecord);
}

function drop(pool: Pool): void {
  const cwd = join(pool.dir, "work");
  fs.mkdirSync(cwd);
  pool.drop("t", { agent: "coder", prompt: "Say that it is done.", cwd, max_attempts: 1 });
}

describe.each(PROGRAMS)("%s", (_, settingsAt) => {
  it("has in its books what the service has answered, to the token", async () => {
    const api = await startMockApi(() => ({ say: "Done." }));
    const pool = newDesk(api, settingsAt(api.url));
    await pool.start();
    drop(pool);
    expect(await pool.result("t", SLOW_MS)).toMatchObject({ attempts: 1 });
    const answered = api.requests.filter(({ kind }) => kind !== "other" && kind !== "count").length;
    expect(answered).toBeGreaterThan(0);
    expect(costsIn(pool)).toMatchObject([
      { input_tokens: answered * ANSWER.input, output_tokens: answered * ANSWER.output },
    ]);
    expect(pool.alerts()).toEqual([]);
  });

  it("waits for a quota of an hour without an attempt, and leaves no process", async () => {
    const api = await startMockApi(() => ({ status: 429, headers: { "retry-after": "3600" } }));
    const pool = newDesk(api, settingsAt(api.url));
    await pool.start();
    drop(pool);
    const beganMs = Date.now();
    const path = join(pool.dir, "user", "mailchute", "accounts", "real.json");
    const isClosed = (): GateDocument | undefined => {
      const gate = readJson<GateDocument>(path);
      return gate?.status === "closed" ? gate : undefined;
    };
    const gate = await waitFor(isClosed, { what: "the closed gate", timeoutMs: SLOW_MS });
    process.stderr.write(`put off after ${((Date.now() - beganMs) / 1000).toFixed(1)} s\n`);
    expect(gate.until_ms - beganMs).toBeGreaterThan(3500_000);
    const name = (): string | undefined =>
      fs.readdirSync(pool.processing).find((one) => one.includes("~hold-quota-real"));
    expect(await waitFor(name, { what: "the task at its gate" })).toContain(".1~hold");
    expect(pool.errors()).toEqual([]);
    const programs = pool.pids().length - pool.workers().length - 1;
    expect(programs).toBe(0);
  });
});
