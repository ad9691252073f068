/** What is known of work on branches, also when records were taken away. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { StateTree } from "../../src/core/state-tree.ts";
import {
  listWork,
  lookForLanding,
  lookForWork,
  readLandingIds,
  readUnlanded,
} from "../../src/view/landing.ts";
import { newTree } from "./many-files.ts";

const WORK = {
  title: "Mend it",
  branch: "mailchute/a",
  base: "b6d022fc130e05a85a02fa56f74af82b47173027",
  target: "mailchute/integration",
};
const DIFFSTAT = { files: 2, insertions: 3, deletions: 1 };

function put(tree: StateTree, path: string, content: object): void {
  const full = join(tree.dir, path);
  fs.mkdirSync(dirname(full), { recursive: true });
  fs.writeFileSync(full, JSON.stringify(content));
}

/** A task that has left work, in the run of this lease. */
function leave(tree: StateTree, land: string, { lease = "l1", id = "a" } = {}): void {
  const order = { v: 1, task_id: id, lease, land, ...WORK, diffstat: DIFFSTAT };
  put(tree, `landings/${id}.order.json`, order);
}

const record = (tree: StateTree, id: string, more: object = {}): void =>
  put(tree, `mailbox/outbox/${id}_result.json`, { task_id: id, lease: "l1", ...more });
const send = (tree: StateTree): void => put(tree, "landings/a.sent.json", { v: 1, lease: "l1" });
const note = (tree: StateTree, more: object): void =>
  put(tree, "landings/a.state.json", { v: 1, lease: "l1", fix: null, wait: null, ...more });

test("work on a branch has its branch, its base, its target and how much it changes", () => {
  const tree = newTree();
  leave(tree, "branch");
  record(tree, "a", { landing: "branch" });
  expect(listWork(tree)).toEqual([
    {
      task_id: "a",
      landing_id: "a.land",
      state: "branch",
      why: "",
      repository: "",
      commit: "",
      ...WORK,
      checked: false,
      ...DIFFSTAT,
    },
  ]);
  expect(lookForLanding(tree, "a")).toBeUndefined();
  expect(readUnlanded(tree).size).toBe(0);
});

test.each([["with", true] as const, ["without", false] as const])(
  "a landing is known %s the record of its task",
  (_how, hasRecord) => {
    const tree = newTree();
    leave(tree, "merge");
    if (hasRecord) record(tree, "a", { landing: "pending" });
    const state = () => lookForWork(tree, "a");
    expect(state()).toMatchObject({ state: "open", why: "it is about to be submitted" });
    send(tree);
    put(tree, "mailbox/inbox/a.land.json", { id: "a.land" });
    note(tree, { wait: { why: "rev reviews it", on: "x", until_ms: 0 } });
    expect(state()).toMatchObject({ state: "open", why: "rev reviews it" });
    expect([...readUnlanded(tree)]).toEqual([
      ["a", { is: "moving", how: "has not landed: rev reviews it" }],
    ]);
    fs.rmSync(join(tree.mailbox, "inbox", "a.land.json"));
    put(tree, "mailbox/failed/a.land_error.json", { task_id: "a.land", error: "conflict in x" });
    expect(state()).toMatchObject({ state: "failed", why: "conflict in x" });
    expect(readUnlanded(tree).get("a")).toMatchObject({ is: "stuck" });
    fs.rmSync(join(tree.mailbox, "failed", "a.land_error.json"));
    record(tree, "a.land", { verdict_reason: "landed on x" });
    note(tree, { landed: true });
    expect(state()).toMatchObject({ state: "landed", why: "landed on x" });
    // The record of the landing was taken away, too.
    fs.rmSync(join(tree.mailbox, "outbox", "a.land_result.json"));
    expect(state()).toMatchObject({ state: "landed" });
    expect(readUnlanded(tree).size).toBe(0);
    note(tree, { landed: true, lease: "an earlier one" });
    expect(state()).toMatchObject({ state: "failed", why: expect.stringContaining("was removed") });
  },
);

test("what an earlier run has left is not the work of a task that has run again, or runs", () => {
  const tree = newTree();
  leave(tree, "merge");
  record(tree, "a", { lease: "l2", landing: "nothing" });
  expect(listWork(tree)).toEqual([]);
  expect([...readLandingIds(tree)]).toEqual(["a.land"]);
  fs.rmSync(join(tree.mailbox, "outbox", "a_result.json"));
  put(tree, "mailbox/inbox/a.json", { id: "a" });
  expect(listWork(tree)).toEqual([]);
  expect(lookForLanding(tree, "none")).toBeUndefined();
});
