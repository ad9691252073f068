/** What a person reads of a run: entries from streams of real programs, and lines of a terminal from entries. */
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { Conversation, type Entry } from "../../../src/agents/stream/conversation.ts";
import type { Fact } from "../../../src/agents/stream/facts.ts";
import { parseReadTimes } from "../../../src/agents/stream/read-times.ts";
import { loadKind } from "../../../src/app/agent-kinds.ts";
import { entryLines } from "../../../src/cli/text/conversation-lines.ts";
import { widthOf } from "../../../src/text/render.ts";

async function readSample(kind: "claude" | "codex", name: string): Promise<string[]> {
  const path = fileURLToPath(new URL(`../../parts/${kind}/samples/${name}.jsonl`, import.meta.url));
  const read = (await loadKind(kind))?.newReader();
  const conversation = new Conversation();
  return fs
    .readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => conversation.take(line, read?.(line) ?? []))
    .map(({ kind: what, text }) => `${what}: ${text}`);
}

const entriesOf = (...facts: Fact[]): Entry[] => new Conversation().take("{}", facts);

describe("streams of real programs", () => {
  it("shows a message that claude reads in the middle of its turn where it was read", async () => {
    expect(await readSample("claude", "mail")).toEqual([
      "session: session 42077a22-b9fd-4425-929f-fcea7cd3916c claude-sonnet-4-5",
      "asked: first job",
      "call: $ sleep 4; echo slept",
      "result: slept",
      "asked: MAIL from june: also look at X",
      "said: First job done, mail read",
      "end: end of the turn",
    ]);
  });

  it("says of a limit until when it holds, once", async () => {
    const limits = (await readSample("claude", "limit")).filter((one) => one.startsWith("limit:"));
    expect(limits).toHaveLength(1);
    expect(limits[0]).toMatch(/^limit: limit: five_hour is used up until 20\d\d-.*Z$/);
  });

  it("shows the calls and changes of codex, and the end of a turn", async () => {
    const shown = await readSample("codex", "full");
    expect(shown[0]).toMatch(/^session: session [0-9a-f-]{36}$/);
    expect(shown.some((one) => one.startsWith("call: $ "))).toBe(true);
    expect(shown.some((one) => one.startsWith("change: "))).toBe(true);
    expect(shown.at(-1)).toBe("end: end of the turn");
  });
});

describe("entries", () => {
  it("show the exit code and the last lines of a result", () => {
    const output = Array.from({ length: 20 }, (_, n) => `line ${n}`).join("\n");
    expect(
      entriesOf(
        { fact: "tool_started", id: "1", name: "Bash", input: '{"command":"make\\n  all"}' },
        { fact: "tool_ended", id: "1", output, exitCode: 2, isError: true },
      ),
    ).toEqual([
      { kind: "call", text: "$ make ⏎ all" },
      { kind: "failure", text: "exit 2, the last 3 of 20 lines:\nline 17\nline 18\nline 19" },
    ]);
  });

  it("say which of several calls has ended", () => {
    const entries = entriesOf(
      { fact: "tool_started", id: "1", name: "Read", input: '{"file_path":"a.ts"}' },
      { fact: "tool_started", id: "2", name: "Read", input: '{"file_path":"b.ts"}' },
      { fact: "tool_ended", id: "1", output: "text", exitCode: null, isError: false },
    );
    expect(entries.at(-1)).toEqual({ kind: "result", text: "Read a.ts: \ntext" });
  });

  it("show a line that is not of the protocol as it is, and leave out a type that is new", async () => {
    const conversation = new Conversation();
    const read = (await loadKind("claude"))?.newReader();
    expect(conversation.take("Segfault", read?.("Segfault") ?? [])).toEqual([
      { kind: "other", text: "Segfault" },
    ]);
    const line = '{"type":"new_thing"}';
    expect(conversation.take(line, read?.(line) ?? [])).toEqual([]);
  });
});

describe("lines", () => {
  const page = { width: 80, colour: false };

  it("fit the terminal, and a call has one", () => {
    const long = "word ".repeat(60);
    const said = entryLines({ kind: "said", text: long }, Date.now(), page);
    expect(said.length).toBeGreaterThan(3);
    for (const line of said) expect(widthOf(line)).toBeLessThanOrEqual(80);
    expect(entryLines({ kind: "call", text: `$ ${long}` }, Date.now(), page)).toHaveLength(1);
  });

  it("carry no code that steers a terminal", () => {
    const lines = entryLines({ kind: "said", text: "a\u001b]0;evil\u0007\tb" }, undefined, page);
    expect(lines).toEqual(["           a\\x1b]0;evil\\x07    b"]);
  });
});

it("tells of each place of a stream when it was read, and leaves out torn entries", () => {
  const times = parseReadTimes("10 1000\n20 2000\nrubbish\n30 30");
  expect([5, 10, 11, 20, 30, 31].map((end) => times.at(end))).toEqual([
    1000,
    1000,
    2000,
    2000,
    30,
    undefined,
  ]);
});
