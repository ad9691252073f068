import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkFinishedRoadmap } from "../../support/check-roadmap.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { runStorm, STORM_CONFIG } from "./storm.ts";

/** `npm run test:storm` makes it a thousand. */
const NODES = Number(process.env["MAILCHUTE_STORM_NODES"] ?? 30);
const SEED = Number(process.env["MAILCHUTE_TEST_SEED"] ?? 1);
/** For what hangs: on a slow machine little is done between two kills. */
const TIMEOUT_MS = 240_000 + NODES * 600;

describe("a plan in layers under fire", () => {
  it(
    `does each of its nodes once, in order, while processes are killed and a person edits the file (seed ${SEED})`,
    async () => {
      const result = await runStorm(newPool({ config: STORM_CONFIG }), {
        seed: SEED,
        nodes: NODES,
        layers: Math.ceil(NODES / 25),
        killEveryMs: 1000,
        editEveryMs: 100,
        timeoutMs: TIMEOUT_MS,
        ...(NODES > 100 ? { onProgress: (text: string) => console.log(text) } : {}),
      });
      console.log(
        `${NODES} nodes: ${result.kills} kills, ${result.starts} starts, ${result.edits} edits`,
      );
      expect(result.problems).toEqual([]);
      expect(result.kills).toBeGreaterThan(0);
      expect(result.edits).toBeGreaterThan(0);
    },
    TIMEOUT_MS + 10_000,
  );
});

describe("the checker of finished plans", () => {
  const tree = (pool: Pool, ...names: string[]): string => join(pool.state, ...names);
  const edit = (path: string, change: (text: string) => string): void => {
    const text = fs.readFileSync(path, "utf8");
    const changed = change(text);
    expect(changed).not.toBe(text);
    fs.writeFileSync(path, changed);
  };
  const events = ["analytics", "supervisor_lifecycle.jsonl"];
  /** What somebody, or a fault of ours, might leave behind; and what the checker must say. */
  const PLANTED: readonly [string, RegExp, (pool: Pool) => void][] = [
    [
      "a status that is not done",
      /n-1: its status is open/,
      (pool) =>
        edit(tree(pool, "roadmap.yaml"), (text) =>
          text.replace(/(id: n-1, .*status: )done/, "$1open"),
        ),
    ],
    [
      "a missing result",
      /n-2: it has no result/,
      (pool) => fs.rmSync(tree(pool, "mailbox", "outbox", "n-2_result.json")),
    ],
    [
      "a second event completed",
      /n-3: it has 2 events completed/,
      (pool) =>
        edit(tree(pool, ...events), (text) => {
          const line = text.split("\n").find((one) => /"completed","task_id":"n-3"/.test(one));
          return `${text}${line}\n`;
        }),
    ],
    [
      "a node that started before what it depends on was done",
      /started before n-\d+ was done/,
      (pool) =>
        edit(tree(pool, ...events), (text) =>
          text.replace(/("event":"completed","task_id":"n-[0-5]",.*?"t":)\d+/g, "$19999999999999"),
        ),
    ],
    [
      "a lease that was never released",
      /its last lease record is active/,
      (pool) =>
        edit(tree(pool, "supervisor_leases.jsonl"), (text) =>
          text.replace('"status":"released"', '"status":"active"'),
        ),
    ],
    [
      "evidence of another run",
      /n-4: its evidence is of another run/,
      (pool) =>
        edit(tree(pool, "evidence", "n-4", "lifecycle.json"), (text) =>
          text.replace(/^ {2}"lease": ".*"/m, '  "lease": "other"'),
        ),
    ],
    [
      "a summary in kv that the result does not say",
      /n-5: kv says "planted"/,
      (pool) =>
        edit(tree(pool, "kv", "n-5.json"), (text) => text.replace('"done n-5"', '"planted"')),
    ],
    [
      "a task that is left over",
      /processing\/n-6.* is left over/,
      (pool) => fs.writeFileSync(tree(pool, "mailbox", "processing", "n-6@abc.1~ready.json"), "{}"),
    ],
  ];

  it("finds nothing in a plan that went well, and each error that is planted", async () => {
    const pool = newPool({ config: STORM_CONFIG });
    const calm = { seed: SEED, nodes: 12, layers: 2, killEveryMs: 0, editEveryMs: 0 };
    const { problems } = await runStorm(pool, { ...calm, timeoutMs: 30_000 });
    expect(problems).toEqual([]);
    for (const [what, said, plant] of PLANTED) {
      const before = join(pool.dir, "before");
      fs.cpSync(pool.state, before, { recursive: true });
      plant(pool);
      expect(checkFinishedRoadmap(pool.state).join("\n"), what).toMatch(said);
      fs.rmSync(pool.state, { recursive: true });
      fs.renameSync(before, pool.state);
    }
  });
});
