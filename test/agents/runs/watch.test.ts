/** Watchdogs of a run: silence, a background task without an end, stops in the middle. Nothing of a run lives on after it. */
import fs from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { readJson } from "../../support/pool.ts";
import { endOfFile } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, type FakeAgent, type Kind, newBench, type Step } from "./bench.ts";

const KINDS: readonly Kind[] = ["claude", "codex", "acp"];
/** A tool in the middle of which a run is stopped; and what it leaves behind in a session of its own. */
const BUSY = "setsid sleep 300 & sleep 300";

interface Case {
  turns: readonly (readonly Step[])[];
  settings?: Record<string, unknown>;
}

/** A busy machine takes some of it to start the program. */
const IDLE = { idle_ms: 5000 };
const NOTICES = Array.from({ length: 200 }, (): Step[] => [
  { notice: "Reconnecting... 1/5" },
  { sleepMs: 100 },
]).flat();

const CASES: Readonly<Record<string, Case>> = {
  tool: {
    turns: [[{ run: "sleep 8; echo built" }, { say: "Built." }]],
    settings: IDLE,
  },
  hang: {
    turns: [[{ say: "Hm." }, { hang: true }]],
    settings: IDLE,
  },
  retries: {
    turns: [[...NOTICES, { say: "It answered." }]],
    settings: IDLE,
  },
  wall: { turns: [[{ run: BUSY }]] },
};

let bench: Bench;
const atEnd = endOfFile();

beforeAll(async () => {
  const agents = KINDS.flatMap((kind) =>
    Object.entries(CASES).map(
      ([name, { turns, settings = {} }]): FakeAgent => ({
        name: `${kind}-${name}`,
        kind,
        turns,
        settings,
      }),
    ),
  );
  agents.push({
    name: "claude-server",
    kind: "claude",
    turns: [[{ run: BUSY, background: true }, { say: "It runs." }]],
    settings: { background_ms: 1500 },
  });
  agents.push({
    name: "codex-silent",
    kind: "codex",
    turns: [
      [{ notice: "Reconnecting... 1/5 (last status: 429 Too Many Requests)" }, { hang: true }],
    ],
    settings: IDLE,
  });
  // It hears of the end of its background task before it ends itself, and speaks of that.
  agents.push({
    name: "claude-talker",
    kind: "claude",
    turns: [[{ ignore: "SIGTERM" }, { run: BUSY, background: true }, { say: "It runs." }]],
    settings: { background_ms: 1500 },
  });
  bench = newBench(agents, { onEnd: atEnd });
  await bench.pool.start();
  for (const { name } of agents)
    bench.pool.drop(name, {
      agent: name,
      prompt: name,
      max_attempts: 1,
      ...(name.endsWith("wall") ? { timeout_ms: 2500 } : {}),
    });
});

it("lets a program that is silent after a 429 wait at its account's gate, and uses no attempt", async () => {
  const held = (): string | undefined =>
    fs.readdirSync(bench.pool.processing).find((name) => /^codex-silent@.*~hold-quota/.test(name));
  // It is among the last of sixteen tasks that wait for limits of time, in six slots.
  const file = await waitFor(held, { what: "its wait", timeoutMs: 60_000 });
  expect(file).toContain(".1~hold");
  expect(readJson<object>(bench.gatePath("codex-silent"))).toMatchObject({
    status: "closed",
    closings: 1,
    reason: expect.stringContaining("429"),
  });
});

describe.each(KINDS)("%s", (kind) => {
  it("leaves a tool call alone that is silent for longer than idle_ms", async () => {
    expect(await bench.pool.result(`${kind}-tool`)).toMatchObject({ output: "Built." });
  });

  it.skipIf(kind === "acp").each(["hang", "retries"])(
    "stops a run that is silent without a tool: %s",
    async (name) => {
      expect(await bench.pool.error(`${kind}-${name}`)).toMatchObject({
        kind: "timeout",
        code: "ErrIdle",
        attempts: 1,
      });
    },
  );

  it("stops a tool call at the time limit", async () => {
    expect(await bench.pool.error(`${kind}-wall`)).toMatchObject({
      kind: "timeout",
      code: "ErrTimeout",
    });
  });
});

it.each(["claude-server", "claude-talker"])(
  "stops a background task without an end, and says so: %s",
  async (id) => {
    expect(await bench.pool.result(id)).toMatchObject({
      output: "It runs.",
      verdict_reason: "its background tasks went on and were stopped",
    });
  },
);

it("has left no process of any run", async () => {
  const { pool } = bench;
  await pool.stop();
  expect(pool.pids()).toEqual([]);
});
