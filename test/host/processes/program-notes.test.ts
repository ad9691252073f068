/** Notes of programs: of which process they are, and when they go. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { ProcessRow } from "../../../src/host/processes/process-source.ts";
import { noteProgram, readNotes } from "../../../src/host/processes/program-notes.ts";
import { tempDir } from "../../support/temp-dir.ts";

const NOW_S = Math.floor(Date.now() / 1000);

function stateHome(): string {
  const before = process.env["XDG_STATE_HOME"];
  onTestFinished(() => {
    if (before === undefined) delete process.env["XDG_STATE_HOME"];
    else process.env["XDG_STATE_HOME"] = before;
  });
  const dir = tempDir();
  process.env["XDG_STATE_HOME"] = dir;
  return join(dir, "mailchute", "running");
}

const row = (pid: number, startTicks: number): ProcessRow => {
  return { pid, parent: 1, group: pid, session: 0, threads: 0, startTicks };
};

it("a note holds what says whose a process is, and no secret; it goes with the program", () => {
  const dir = stateHome();
  const env = { MAILCHUTE_LEASE: "a.1.x", MAILCHUTE_STATE: "/t/\u00e9 e", API_KEY: "secret" };
  const forget = noteProgram(4_000_000, env, Date.now());
  expect(fs.readFileSync(join(dir, "4000000"), "utf8")).not.toContain("secret");
  const state = Buffer.from("/t/\u00e9 e").toString("latin1");
  expect([...readNotes([row(4_000_000, NOW_S)])]).toEqual([
    [4_000_000, `MAILCHUTE_LEASE=a.1.x\0MAILCHUTE_STATE=${state}\0`],
  ]);
  forget();
  forget();
  expect(fs.readdirSync(dir)).toEqual([]);
});

it("a process that began at another time has no note; an old note of a program that is gone is removed", () => {
  const dir = stateHome();
  noteProgram(4_000_000, { MAILCHUTE_LEASE: "a.1.x" }, Date.now());
  // The table may be older than the note.
  expect(readNotes([]).size).toBe(0);
  expect(readNotes([row(4_000_000, NOW_S - 100)]).size).toBe(0);
  expect(fs.readdirSync(dir)).toEqual(["4000000"]);
  fs.writeFileSync(join(dir, "4000001"), `${NOW_S - 100} ${NOW_S - 100}\nMAILCHUTE_LEASE=a\0`);
  fs.writeFileSync(join(dir, "4000002"), "torn");
  expect(readNotes([row(4_000_001, NOW_S - 99)]).size).toBe(1);
  expect(readNotes([row(4_000_001, NOW_S)]).size).toBe(0);
  expect(fs.readdirSync(dir).sort()).toEqual(["4000000", "4000002"]);
});

it("a folder that cannot be written stops no program", () => {
  const dir = stateHome();
  fs.mkdirSync(join(dir, ".."), { recursive: true });
  fs.writeFileSync(dir, "no folder");
  noteProgram(4_000_000, { MAILCHUTE_LEASE: "a.1.x" }, Date.now())();
  expect(readNotes([row(4_000_000, NOW_S)]).size).toBe(0);
});
