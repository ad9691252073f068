/** `roadmap reset`: which nodes it opens, and that it opens all or none of them, once. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { applyEdits, type RoadmapEdit } from "../../../src/parts/plan/edit/edit.ts";
import { findNode, parseRoadmap } from "../../../src/parts/plan/read/document.ts";
import { noteReset, OpenedByReset, readResets } from "../../../src/parts/plan/resets.ts";
import { chooseReset, type ResetChoice } from "../../../src/parts/plan/rules/reset.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const PLAN = `
epics:
  - id: E
    status: done
    tasks:
      - { id: a, status: done }
      - { id: b, status: failed, dependencies: [a] }
nodes:
  - { id: c, status: done, dependencies: [{ id: E, required_status: terminal }] }
  - { id: Late, type: epic, dependencies: [c] }
  - { id: f, parent: Late, status: done }
  - { id: g, status: blocked, dependencies: [f] }
  - { id: h, status: done, dependencies: [g] }
  - { id: i, status: done }
  - { id: j, status: open, dependencies: [i] }
  - { id: plan-escalate-b, type: plan, status: done, reopened: 2, dependencies: [{ id: b, required_status: terminal }] }
`;

function choose(choice: ResetChoice, text = PLAN): ReturnType<typeof chooseReset> {
  const doc = parseRoadmap(text);
  expect(doc.problems).toEqual([]);
  return chooseReset(doc.nodes, (id) => findNode(doc, id), choice);
}

describe("the choice", () => {
  const opened = (choice: ResetChoice): string =>
    choose(choice)
      .open.map(({ id }) => id)
      .join(" ");

  it.each<[ResetChoice, string]>([
    [{}, "a b c f h i"],
    [{ onlyFailed: true }, "b"],
    [{ onlyFailed: true, downstream: true }, "b c f h"],
    [{ ids: ["A"] }, "a"],
    [{ ids: ["e"] }, "a b"],
    [{ ids: ["i", "j"] }, "i"],
    [{ ids: ["a"], downstream: true }, "a b c f h"],
    [{ ids: ["E"], onlyFailed: true }, "b"],
    [{ ids: ["f"], downstream: true }, "f h"],
    [{ ids: ["plan-escalate-b"] }, "plan-escalate-b"],
  ])("of %j is %s", (choice, expected) => expect(opened(choice)).toBe(expected));

  it("opens the epics around them, and counts escalations anew when the whole plan runs once more", () => {
    const doc = parseRoadmap(PLAN);
    const whole = parseRoadmap(applyEdits(doc, choose({}).edits).text);
    expect(findNode(whole, "E")?.status).toBe("open");
    expect(findNode(whole, "plan-escalate-b")).toMatchObject({ status: "done", reopened: 0 });
    expect(choose({}).left.map(({ id }) => id)).toEqual(["g"]);
    const part = applyEdits(doc, choose({ ids: ["b"] }).edits).text;
    expect(part).toContain("reopened: 2");
    const running = PLAN.replace("h, status: done", "h, status: in_progress");
    expect(choose({}, running).inFlight.map(({ id }) => id)).toEqual(["h"]);
    expect(choose({ onlyFailed: true }, running).inFlight).toEqual([]);
  });
});

it("many statuses are set as if each was set alone, byte for byte", () => {
  const seed = Number(process.env["MAILCHUTE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  const pick = <T>(...list: T[]): T => list[Math.floor(random() * list.length)] as T;
  const item = (id: string): string => {
    const status = pick("done", "failed", "open", '"done"', "'failed'");
    return pick(
      `  - { id: ${id}, status: ${status}, exec: ["true"] } # status: done`,
      `  - id: ${id} # status: open\n    status:   ${status}   # by hand\n    goal: "x"`,
      `  - id: ${id}\n    prompt: |\n      say status: done\n      twice, status: failed\n    status: ${status}`,
      `  - { id: ${id}, title: "status: done" }`,
      `  - { id: ${id}, title: 'no, status: done', "status": ${status} }`,
      `  - goal: g # mine\n    id: ${id} # last`,
      `  - {\n      id: ${id},\n      status:\n        ${status} }`,
    );
  };
  for (let n = 0; n < 8; n++) {
    const ids = Array.from({ length: 60 }, (_, i) => `n${i}`);
    const tasks = `epics:\n  - id: E\n    status: done # all\n    tasks: [{ id: t1, status: done }, { id: t2, status: failed }]\n`;
    const newline = pick("\n", "\r\n");
    const text = `${tasks}nodes:\n${ids.map(item).join("\n\n")}\n`.replaceAll("\n", newline);
    const doc = parseRoadmap(text);
    expect(doc.problems, text).toEqual([]);
    const edits = [...ids, "t1", "t2", "E"].map(
      (id): RoadmapEdit => ({ kind: "status", id, status: pick("open", "done", "failed") }),
    );
    let alone = doc;
    for (const edit of edits) alone = applyEdits(alone, [edit]);
    const together = applyEdits(doc, edits);
    expect(together.text, `seed ${seed}`).toBe(alone.text);
    expect(together.nodes, `seed ${seed}`).toEqual(parseRoadmap(alone.text).nodes);
    expect(together.places, `seed ${seed}`).toEqual(parseRoadmap(alone.text).places);
  }
});

it("notes of resets are kept for a day, and rubbish counts as none", () => {
  const dir = tempDir();
  const opened = new OpenedByReset(dir);
  expect(opened.of("a")).toBeUndefined();
  const day = 24 * 3_600_000;
  noteReset(dir, { key: "one", at_ms: day, ids: ["a", "b"] }, false);
  noteReset(dir, { key: "two", at_ms: day + 5, ids: ["B"] }, false);
  expect([opened.of("A"), opened.of("b")]).toEqual([day, day + 5]);
  noteReset(dir, { key: "two", at_ms: 2 * day + 1, ids: ["c"] }, false);
  expect(readResets(dir).map(({ key }) => key)).toEqual(["two"]);
  expect([opened.of("a"), opened.of("c")]).toEqual([undefined, 2 * day + 1]);
  for (const text of ["{", '{"resets":5}', '{"resets":[5,{"key":"k","at_ms":"x","ids":[]}]}']) {
    fs.writeFileSync(join(dir, "roadmap.resets.json"), text);
    expect(readResets(dir), text).toEqual([]);
    expect(opened.of("c"), text).toBeUndefined();
  }
});

/** Between the rename and the link of a save the file is not there. */
const planOf = (pool: Pool): string => {
  const path = join(pool.state, "roadmap.yaml");
  for (let tries = 1; ; tries++) {
    try {
      return fs.readFileSync(path, "utf8");
    } catch (error) {
      if (tries > 10_000) throw error;
    }
  }
};
const earlierOf = (pool: Pool, id: string): string[] => {
  const dir = join(pool.state, "evidence", id, "earlier");
  return fs.existsSync(dir) ? fs.readdirSync(dir) : [];
};

it("a plan runs once more, beside a supervisor and after one that was killed, and keeps what each run has left", async () => {
  const pool = newPool();
  const ran = join(pool.dir, "ran");
  const again = join(pool.dir, "again");
  fs.writeFileSync(
    join(pool.state, "roadmap.yaml"),
    `nodes:
  - { id: a, exec: [sh, -c, 'echo a >> ${ran}'] }
  - { id: b, dependencies: [a], exec: [sh, -c, 'echo b >> ${ran}; test ! -e ${again} || exec sleep 1000'] }
`,
  );
  const runs = (): string => (fs.existsSync(ran) ? fs.readFileSync(ran, "utf8") : "");
  const isDone = (): boolean => !/open|in_progress|pending/.test(planOf(pool)) && runs() !== "";
  await pool.start();
  await waitFor(isDone, { what: "the first run" });
  const reset = await pool.run(["roadmap", "reset", "a", "--downstream"]);
  expect([reset.code, reset.stdout]).toEqual([0, "a: done → open\nb: done → open\n"]);
  await waitFor(() => runs() === "a\nb\na\nb\n" && isDone(), { what: "the second run" });
  for (const id of ["a", "b"]) {
    const [earlier = "", ...more] = earlierOf(pool, id);
    expect(more).toEqual([]);
    const kept = fs.readdirSync(join(pool.state, "evidence", id, "earlier", earlier));
    expect(kept).toEqual(expect.arrayContaining(["lifecycle.json", "record.json", "summary.md"]));
  }
  // What is in flight is named, and nothing changes.
  fs.writeFileSync(again, "");
  await pool.run(["roadmap", "reset", "b"]);
  await waitFor(() => planOf(pool).includes("in_progress"), { what: "the third run of b" });
  const before = planOf(pool);
  const refused = await pool.run(["roadmap", "reset"]);
  expect([refused.code, refused.stderr]).toEqual([
    4,
    expect.stringContaining("because b is in flight"),
  ]);
  expect(planOf(pool)).toBe(before);
  fs.rmSync(again);
  await pool.run(["cancel", "--requeue", "b", "--wait"]);
  await waitFor(() => isDone() && runs().endsWith("b\nb\n"), { what: "the third run" });
  // A supervisor that dies takes the open nodes of a reset for no old copy.
  await pool.killAll();
  expect((await pool.run(["roadmap", "reset", "--json"])).stdout).toContain(
    '"id":"a","from":"done"',
  );
  await pool.run(["run", "--drain", "--no-live"]);
  expect(runs().endsWith("b\nb\na\nb\n")).toBe(true);
  expect(isDone()).toBe(true);
});
