/** What recovery finds near the end of a journal: lines of this and of earlier versions, and whether a run was begun. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { rotate } from "../../src/journal/journal.ts";
import { hasRecord, hasStarted } from "../../src/journal/lookup.ts";
import { tempDir } from "../support/temp-dir.ts";

const LEASE = "s.2.place-p-t-R1";
const MIB = 1024 * 1024;

function journalOf(...lines: object[]): string {
  const path = join(tempDir(), "events.jsonl");
  append(path, ...lines);
  return path;
}

function append(path: string, ...lines: object[]): void {
  for (const line of lines) fs.appendFileSync(path, `${JSON.stringify(line)}\n`);
}

const selected = { event: "selected", lease: "s.1", owner: "", submission: "s" };
const started = (owner: string): object => ({
  event: "started",
  lease: "s.2",
  owner,
  submission: "s",
});

describe("a record of a lease", () => {
  it("is found by run and owner, and as earlier versions wrote it", () => {
    const now = journalOf(selected, started("place-p-t-R1"));
    const before = journalOf({ event: "started", lease: LEASE });
    for (const path of [now, before]) {
      expect(hasRecord(path, LEASE, "started")).toBe(true);
      expect(hasRecord(path, LEASE, "completed")).toBe(false);
      expect(hasRecord(path, "s.2.place-p-t-R11", "started")).toBe(false);
      expect(hasRecord(path, "s.1.place-p-t-R1", "started")).toBe(false);
    }
  });

  it("is found by the nonce of a command, in the first line and in the last", () => {
    const line = { event: "paused", lease: "nonce", owner: "" };
    expect(hasRecord(journalOf(line, selected), "nonce", "paused")).toBe(true);
    expect(hasRecord(journalOf(selected, line), "nonce", "paused")).toBe(true);
  });
});

describe("a run", () => {
  it("has started when its line is there, here or in what was rotated away", () => {
    const path = journalOf(selected, started("place-p-t-R1"));
    expect(hasStarted(path, LEASE)).toBe(true);
    rotate(path, 1, Date.now());
    append(path, selected);
    expect(hasStarted(path, LEASE)).toBe(true);
  });

  it("has not started when only the lines before it are there", () => {
    expect(hasStarted(journalOf(selected, started("place-p-t-S2")), LEASE)).toBe(false);
  });

  it("may have started when the journal does not go back to before its claim", () => {
    const path = journalOf({ event: "selected", lease: "other.1", submission: "other" });
    expect(hasStarted(path, LEASE)).toBeUndefined();
    expect(hasStarted(join(tempDir(), "none.jsonl"), LEASE)).toBeUndefined();
    const far = journalOf(selected);
    append(far, { event: "progress", details: "x".repeat(9 * MIB) });
    expect(hasStarted(far, LEASE)).toBeUndefined();
    rotate(far, 1, Date.now());
    append(far, { event: "paused" });
    expect(hasStarted(far, LEASE)).toBeUndefined();
  });
});
