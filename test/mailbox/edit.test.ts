/** Edit: a text is replaced while the task waits, or not at all. */
import fs from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { inLines, withMembers } from "../../src/codec/json-members.ts";
import { formatName, withStage } from "../../src/core/names.ts";
import { editingSequence } from "../../src/host/identity.ts";
import { accept, newSubmission } from "../../src/mailbox/claim/claim.ts";
import { openTrays, pathIn, type Trays } from "../../src/mailbox/files/trays.ts";
import { findRecoverable } from "../../src/mailbox/recover/find-recoverable.ts";
import { LeaseObserver } from "../../src/mailbox/recover/lease-observer.ts";
import { recoverStep } from "../../src/mailbox/recover/recover.ts";
import type { Recovered } from "../../src/mailbox/recover/recoverer.ts";
import { applyEdit, digestOf, readWaiting, stageEdit } from "../../src/mailbox/submit/edit.ts";
import { tempDir } from "../support/temp-dir.ts";

const owner = editingSequence();
const OLD = '{"prompt":"p","created_at":5,"payload":{"n":12345678901234567890123}}';

describe("an edit", () => {
  let trays: Trays;
  const drop = (text: string): void => fs.writeFileSync(join(trays.inbox, "t.json"), text);
  const inbox = (): string => fs.readFileSync(join(trays.inbox, "t.json"), "utf8");
  const edit = async (text: string, before = OLD): Promise<boolean> => {
    const bytes = Buffer.from(text);
    const was = digestOf(Buffer.from(before));
    return applyEdit(trays, await stageEdit(trays, { id: "t", bytes, was }), owner());
  };
  const left = (): string[] => [...fs.readdirSync(trays.tmp), ...fs.readdirSync(trays.processing)];

  beforeEach(() => {
    trays = openTrays(join(tempDir(), "mailbox"), { durability: "process" });
    drop(OLD);
  });

  it("replaces the text, keeps the age of the file, and leaves nothing behind", async () => {
    fs.utimesSync(join(trays.inbox, "t.json"), 1000, 1000);
    const next = withMembers(readWaiting(trays, "t"), { priority: 7 });
    expect(await edit(next)).toBe(true);
    expect(inbox()).toBe(next);
    expect(fs.statSync(join(trays.inbox, "t.json"))).toMatchObject({
      mtimeMs: 1_000_000,
      nlink: 1,
    });
    expect(await edit(next)).toBe(false);
    expect(left()).toEqual([]);
  });

  it("is refused when the task was changed in between, has started or is not there", async () => {
    drop('{"prompt":"other"}');
    await expect(edit('{"prompt":"q"}')).rejects.toThrow("was changed in between");
    expect(inbox()).toBe('{"prompt":"other"}');
    const ready = newSubmission(trays.clock, "t", 1);
    accept(trays, ready);
    await expect(edit('{"prompt":"q"}')).rejects.toThrow("is accepted");
    fs.unlinkSync(pathIn(trays.processing, formatName(ready)));
    await expect(edit('{"prompt":"q"}')).rejects.toMatchObject({ code: "ErrTaskNotFound" });
    expect(left()).toEqual([]);
  });

  it("is refused when the new text is no task of this id, or changes its age", async () => {
    for (const text of ["{", "{}", '{"prompt":1}', '{"prompt":"p","id":"u"}', '{"prompt":"p"}'])
      await expect(edit(text), text).rejects.toMatchObject({ code: "ErrInvalidTask" });
    expect(inbox()).toBe(OLD);
    expect(left()).toEqual([]);
  });

  it("of a dead process is put back by recovery, and uses up no run", async () => {
    const claim = withStage(newSubmission(trays.clock, "t", 1), "w", "00000000dead-1-1-E1");
    fs.renameSync(join(trays.inbox, "t.json"), pathIn(trays.processing, formatName(claim)));
    const told: Recovered[] = [];
    const r = {
      trays,
      newOwner: () => "settler-1",
      judge: () => "dead" as const,
      observer: new LeaseObserver(1e6),
      unfinished: new Set<string>(),
      excused: new Map(),
      endLease: () => Promise.resolve(),
      policyOf: () => ({ maxAttempts: 1, agentId: "a" }),
      onRecovered: (what: Recovered) => told.push(what),
      onSettled: () => {},
    };
    for (const step of findRecoverable(r, trays.storage.list(trays.processing), 1e6))
      await recoverStep(r, step);
    expect(told).toMatchObject([{ action: "resubmitted" }]);
    expect(inbox()).toBe(OLD);
    expect(left()).toEqual([]);
  });
});

describe("the members of a text", () => {
  it("are set, added and taken away, and all others stay digit for digit", () => {
    expect(withMembers(Buffer.from(OLD), { prompt: "q", created_at: undefined, title: "t" })).toBe(
      '{"prompt":"q","title":"t","payload":{"n":12345678901234567890123}}\n',
    );
  });

  it("are shown in lines, whatever the texts in them hold", () => {
    const text = '{"a":"x, {y}: \\"z\\"","b":[1,2.50,{}],"c":[],"d":{"e":null}}';
    const lines = inLines(text);
    expect(lines).toBe(
      '{\n  "a": "x, {y}: \\"z\\"",\n  "b": [\n    1,\n    2.50,\n    {}\n  ],\n  "c": [],\n  "d": {\n    "e": null\n  }\n}\n',
    );
    expect(inLines(lines)).toBe(lines);
  });
});
