import { describe, expect, it } from "vitest";
import type { NodeStatus } from "../../../src/core/roadmap.ts";
import { StatusHistory } from "../../../src/parts/plan/file/stale-save.ts";

/** What the file says, and how it differs from what the supervisor set. */
function staleIn(
  history: StatusHistory,
  ours: Record<string, NodeStatus>,
  saved: Record<string, NodeStatus>,
  nowMs: number,
): string[] {
  const differences = new Map(
    Object.entries(saved).filter(([id, status]) => ours[id] !== undefined && ours[id] !== status),
  );
  return [...history.staleIds(differences, (id) => saved[id], nowMs)].sort();
}

function ranOneAfterTheOther(): StatusHistory {
  const history = new StatusHistory();
  history.note("a", "open", "in_progress", 1000);
  history.note("a", "in_progress", "done", 2000);
  history.note("b", "open", "in_progress", 2001);
  history.note("b", "in_progress", "done", 3000);
  return history;
}

const OURS: Record<string, NodeStatus> = { a: "done", b: "done", c: "open" };

describe("telling an old copy from a wish", () => {
  it("overrules every status that an old copy brings back", () => {
    const saved: Record<string, NodeStatus> = { a: "in_progress", b: "open", c: "open" };
    expect(staleIn(ranOneAfterTheOther(), OURS, saved, 3100)).toEqual(["a", "b"]);
  });

  it("overrules an old copy of minutes ago, when several nodes went on meanwhile", () => {
    const saved: Record<string, NodeStatus> = { a: "open", b: "open", c: "open" };
    expect(staleIn(ranOneAfterTheOther(), OURS, saved, 600_000)).toEqual(["a", "b"]);
  });

  it("obeys somebody who sets one node open again while the others are as we left them", () => {
    const saved: Record<string, NodeStatus> = { a: "open", b: "done", c: "open" };
    expect(staleIn(ranOneAfterTheOther(), OURS, saved, 3100)).toEqual([]);
  });

  it("takes a single reverted status for an old copy only right after the change", () => {
    const saved: Record<string, NodeStatus> = { a: "done", b: "in_progress", c: "open" };
    expect(staleIn(ranOneAfterTheOther(), OURS, saved, 3100)).toEqual(["b"]);
    expect(staleIn(ranOneAfterTheOther(), OURS, saved, 30_000)).toEqual([]);
  });

  it("counts the time from the end of a run, however long it took, and not from its start", () => {
    const history = new StatusHistory();
    history.note("a", "open", "in_progress", 1000);
    history.note("a", "in_progress", "done", 600_000);
    history.note("b", "open", "done", 650_000, 700_000);
    expect(staleIn(history, OURS, { a: "done", b: "open", c: "open" }, 701_000)).toEqual(["b"]);
    expect(staleIn(history, OURS, { a: "done", b: "open", c: "open" }, 706_000)).toEqual([]);
  });

  it("overrules only what is old in a copy that also holds a wish", () => {
    const saved: Record<string, NodeStatus> = { a: "done", b: "open", c: "blocked" };
    expect(staleIn(ranOneAfterTheOther(), OURS, saved, 3100)).toEqual(["b"]);
  });

  it("has nothing to say about nodes that it never changed", () => {
    const saved: Record<string, NodeStatus> = { a: "done", b: "done", c: "blocked" };
    expect(staleIn(ranOneAfterTheOther(), OURS, saved, 3100)).toEqual([]);
  });

  it("does not mind nodes that were taken out of the file", () => {
    const saved: Record<string, NodeStatus> = { a: "in_progress", c: "open" };
    expect(staleIn(ranOneAfterTheOther(), OURS, saved, 3100)).toEqual(["a"]);
  });

  it("knows whole runs of an earlier supervisor, and does not mind a node that was saved in the middle of one", () => {
    const history = new StatusHistory();
    history.note("a", "open", "done", 1000);
    history.note("b", "open", "done", 2000);
    history.note("c", "open", "done", 2500);
    const ours: Record<string, NodeStatus> = { a: "done", b: "done", c: "done" };
    const during: Record<string, NodeStatus> = { a: "in_progress", b: "open", c: "open" };
    expect(staleIn(history, ours, during, 9000)).toEqual(["a", "b", "c"]);
    // A node that is done here, and began after another one, shows that the other one was set open.
    expect(staleIn(history, ours, { ...ours, b: "open" }, 9000)).toEqual([]);
  });
});
