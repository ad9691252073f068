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
});
