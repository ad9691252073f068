/** Which processes belong to a run, and what they have used, over looks between which processes come and go. */
import { expect, it } from "vitest";
import type { UsageRow } from "../../../src/host/processes/proc-table.ts";
import { makeListing, RunTree } from "../../../src/parts/run-limits/run-tree.ts";

const NONE: ReadonlySet<number> = new Set();

/** By default in the group and session of the root, 100. */
function row(pid: number, more: Partial<UsageRow> = {}): UsageRow {
  const start = { startTicks: pid * 10, threads: 1, ownMs: 0, childrenMs: 0 };
  return { pid, parent: 100, group: 100, session: 100, ...start, ...more };
}
const apart = (pid: number, more: Partial<UsageRow> = {}): UsageRow =>
  row(pid, { parent: 1, group: pid, session: pid, ...more });

function look(
  tree: RunTree,
  rows: UsageRow[],
  leased = NONE,
  written: Record<number, number> = {},
) {
  return tree.update(makeListing(rows), leased, (pid) => written[pid] ?? 0).sort((a, b) => a - b);
}

it("group, session, descendants, and what carries its lease; nothing else", () => {
  const tree = new RunTree(100);
  const rows = [
    apart(1),
    row(100, { parent: 50 }),
    row(101),
    row(102, { parent: 1, group: 102 }),
    apart(103, { parent: 101 }),
    apart(104, { parent: 103 }),
    apart(105),
    apart(106, { parent: 105 }),
    apart(107),
  ];
  expect(look(tree, rows, new Set([105]))).toEqual([100, 101, 102, 103, 104, 105, 106]);
});

it("one that was found stays found when it leaves everything; another process with its pid does not", () => {
  const tree = new RunTree(100);
  look(tree, [row(100), apart(103, { parent: 100 })]);
  expect(look(tree, [row(100), apart(103)])).toEqual([100, 103]);
  expect(look(tree, [row(100), apart(103, { startTicks: 5555 })])).toEqual([100]);
});

it("time: of children that were waited for once, of orphans too, and it never shrinks", () => {
  const tree = new RunTree(100);
  look(tree, [row(100, { ownMs: 10 }), row(101, { ownMs: 500 })]);
  expect(tree.cpuMs).toBe(510);
  look(tree, [row(100, { ownMs: 20, childrenMs: 500 })]);
  expect(tree.cpuMs).toBe(520);
  // Children that no look has seen.
  look(tree, [row(100, { ownMs: 20, childrenMs: 900 })]);
  expect(tree.cpuMs).toBe(920);
  const orphaned = new RunTree(100);
  look(orphaned, [row(100), apart(105, { ownMs: 700 })], new Set([105]));
  look(orphaned, [row(100, { ownMs: 30 })]);
  expect(orphaned.cpuMs).toBe(730);
});

it("what was written: by a child that was waited for it counts with its parent, by an orphan on", () => {
  const tree = new RunTree(100);
  look(tree, [row(100), row(101), apart(105)], new Set([105]), { 101: 50, 105: 7 });
  expect(tree.writtenBytes).toBe(57);
  look(tree, [row(100)], NONE, { 100: 50 });
  expect(tree.writtenBytes).toBe(57);
  look(tree, [row(100)], NONE, { 100: 60 });
  expect(tree.writtenBytes).toBe(67);
});
