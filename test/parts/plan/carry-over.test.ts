import { describe, expect, it } from "vitest";
import { applyEdits, type RoadmapEdit } from "../../../src/parts/plan/edit/edit.ts";
import { carryOver } from "../../../src/parts/plan/file/carry-over.ts";
import { findNode, parseRoadmap } from "../../../src/parts/plan/read/document.ts";

const BEFORE = `# plan
nodes:
  - { id: a, status: open }  # first
  - id: b
    status: open
    title: Second
  - { id: c, status: open }  # last
`;

/** What stands in the file after our edits were put into what a person saved. */
function carried(edits: RoadmapEdit[], theirs: string): string | undefined {
  const before = parseRoadmap(BEFORE);
  return carryOver(before, applyEdits(before, edits), edits, theirs);
}

const start = (id: string): RoadmapEdit => ({ kind: "status", id, status: "in_progress" });

describe("carrying changes over into a text that nobody has read", () => {
  it("changes the statuses and leaves every byte of the person's edits", () => {
    const theirs = BEFORE.replace("# first", "# the very first").replace(
      "  - id: b",
      "  # about b\n  - { id: new, status: open }\n  - id: b",
    );
    const text = carried([start("a"), start("b")], theirs);
    expect(text).toBe(
      theirs
        .replace("{ id: a, status: open", "{ id: a, status: in_progress")
        .replace("id: b\n    status: open", "id: b\n    status: in_progress"),
    );
  });

  it("follows items that were moved", () => {
    const line = "  - { id: a, status: open }  # first\n";
    const theirs = BEFORE.replace(line, "") + line;
    expect(carried([start("a")], theirs)).toBe(
      theirs.replace("a, status: open", "a, status: in_progress"),
    );
  });

  it("adds new nodes behind the last one that was there, wherever that is now", () => {
    const add: RoadmapEdit = { kind: "add", node: { id: "d", title: "Fourth" } };
    const theirs = `${BEFORE}  - { id: own, status: open }\n`;
    const text = carried([start("c"), add], theirs) ?? "";
    const doc = parseRoadmap(text);
    expect(doc.problems).toEqual([]);
    expect(doc.nodes.map((node) => node.id)).toEqual(["a", "b", "c", "d", "own"]);
    expect(findNode(doc, "c")?.status).toBe("in_progress");
    expect(text).toContain("# last\n");
  });

  it("gives up when a new node needs what the person has taken away, or has the id of one of theirs", () => {
    const add: RoadmapEdit = { kind: "add", node: { id: "d", dependencies: ["a"] } };
    expect(carried([add], BEFORE)).toContain("id: d");
    const line = "  - { id: a, status: open }  # first\n";
    for (const theirs of [
      BEFORE.replace(line, ""),
      BEFORE.replace(line, line.replace("- {", "# - {")),
      `${BEFORE}  - { id: D }\n`,
      `${BEFORE}  - title: x\n    "id": &x 'd'\n`,
    ])
      expect(carried([add], theirs), theirs).toBeUndefined();
  });

  it("gives up when the person has changed the very item, taken it away, or written it twice", () => {
    const item = "{ id: a, status: open }";
    for (const theirs of [
      BEFORE.replace(item, "{ id: a, status: blocked }"),
      BEFORE.replace(`  - ${item}  # first\n`, ""),
      `${BEFORE}  # - ${item}\n`,
    ])
      expect(carried([start("a")], theirs)).toBeUndefined();
  });

  it("gives up on the whole when one of several changes cannot be carried over", () => {
    const theirs = BEFORE.replace("{ id: a, status: open }", "{ id: a, status: blocked }");
    expect(carried([start("a"), start("b")], theirs)).toBeUndefined();
  });
});
