/** Processes that write messages at once, also while some of them are killed. */
import fs from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { type Sent, send } from "../../../src/parts/mail/send/send.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader, type Numbered } from "../../../src/parts/mail/store/read-messages.ts";
import { type Program, startProgram } from "../../support/programs.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const SCOPE = { project: "app", branch: "main" };

function readAll(dataDir: string): { messages: Numbered[]; badCount: number } {
  const folder = new MailFolder({ dataDir, isDurable: false }, SCOPE);
  const reader = new MessageReader(folder);
  return { messages: [...reader.next()], badCount: reader.badCount };
}

/** What a sender printed of each message: whether it was new, its id, and its place among those of the sender. */
function answersOf(program: Program): { word: string; id: string; n: number }[] {
  return program
    .stdout()
    .split("\n")
    .flatMap((line) => {
      const [, word = "", id = "", n = ""] = /^(sent|known) (\S+) (\d+)$/.exec(line) ?? [];
      return word === "" ? [] : [{ word, id, n: Number(n) }];
    });
}

/** Starts senders, and lets all of them begin at once. */
async function startSenders(
  dataDir: string,
  argsOf: (n: number) => string[],
  count: number,
): Promise<Program[]> {
  const programs = Array.from({ length: count }, (_, n) =>
    startProgram("sends-messages.mjs", [dataDir, ...argsOf(n), "--wait"]),
  );
  await waitFor(() => programs.every((one) => one.stdout().startsWith("ready")), {
    what: "all senders",
    timeoutMs: 60_000,
  });
  for (const { child } of programs) child.stdin?.end("go\n");
  return programs;
}

describe("processes that write at once", () => {
  it("8 processes with 500 messages each, over the end of a segment: none is lost, torn or doubled, each sender's order stays", async () => {
    const dataDir = tempDir();
    // With 2,500 bytes each, 4,000 messages fill some segments.
    const programs = await startSenders(dataDir, (n) => [`s${n}`, "500", "--text", "2500"], 8);
    for (const program of programs)
      expect(await program.ended, program.stderr()).toMatchObject({ exitCode: 0 });
    const { messages, badCount } = readAll(dataDir);
    expect(badCount).toBe(0);
    expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
    for (const [n, program] of programs.entries()) {
      const own = messages.filter(({ from_agent: from }) => from === `s${n}`).map(({ id }) => id);
      expect(own).toEqual(answersOf(program).map(({ id }) => id));
      expect(own).toHaveLength(500);
    }
    const numbers = messages.map(({ n }) => n);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    const folder = new MailFolder({ dataDir, isDurable: false }, SCOPE);
    expect(fs.existsSync(folder.path("messages.2.jsonl"))).toBe(true);
    // They did write at the same time.
    const lastOfFirst = messages.findLastIndex(({ from_agent: from }) => from === "s0");
    expect(messages.findIndex(({ from_agent: from }) => from === "s7")).toBeLessThan(lastOfFirst);
  });

  it("8 processes, of which 4 are killed in the middle: what was answered is there, once and whole", async () => {
    const dataDir = tempDir();
    const programs = await startSenders(dataDir, (n) => [`s${n}`, "500", "--text", "1500"], 8);
    const killed = programs.slice(0, 4);
    for (const [n, program] of killed.entries()) {
      await waitFor(
        () => answersOf(program).length > 20 * (n + 1) || program.child.exitCode !== null,
        {
          what: "its first messages",
        },
      );
      program.child.kill("SIGKILL");
    }
    for (const program of programs) await program.ended;
    const { messages } = readAll(dataDir);
    const ids = messages.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [n, program] of programs.entries()) {
      const answered = answersOf(program).map(({ id }) => id);
      const own = messages.filter(({ from_agent: from }) => from === `s${n}`).map(({ id }) => id);
      // One more may be there: its sender died before its answer.
      expect(own.slice(0, answered.length)).toEqual(answered);
      expect(own.length - answered.length).toBeLessThanOrEqual(program.child.killed ? 1 : 0);
    }
  });

  it("4 processes that send messages of the same ids: each is there once, and one sender added it", async () => {
    const dataDir = tempDir();
    const programs = await startSenders(dataDir, () => ["bob", "60", "--ids", "m"], 4);
    for (const program of programs)
      expect(await program.ended, program.stderr()).toMatchObject({ exitCode: 0 });
    const all = Array.from({ length: 60 }, (_, n) => `m-${n}`);
    expect(
      readAll(dataDir)
        .messages.map(({ id }) => id)
        .sort(),
    ).toEqual([...all].sort());
    const added = programs.flatMap((one) => answersOf(one).filter(({ word }) => word === "sent"));
    expect(added.map(({ id }) => id).sort()).toEqual([...all].sort());
  });

  it("two that send the same message in the same millisecond: it is there once, and one sender added it", () => {
    const store = { dataDir: tempDir(), isDurable: false };
    const draft = {
      id: "same",
      scope: SCOPE,
      from: "bob",
      via: "cli" as const,
      to: ["june"],
      text: "hello",
    };
    const wallMs = Date.now();
    send(store, { ...draft, id: "earlier" }, wallMs);
    const { writeSync } = fs;
    let other: Sent | undefined;
    // The other one writes after this one has looked for the id, and before it writes.
    vi.spyOn(fs, "writeSync").mockImplementationOnce(((...args: Parameters<typeof writeSync>) => {
      other = send(store, draft, wallMs);
      return writeSync(...args);
    }) as typeof writeSync);
    const own = send(store, draft, wallMs);
    vi.restoreAllMocks();
    expect([own.isNew, other?.isNew]).toEqual([false, true]);
    expect(readAll(store.dataDir).messages.map(({ id }) => id)).toEqual(["earlier", "same"]);
  });
});
