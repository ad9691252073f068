/** The line that a command shows while it waits, as text and on a real terminal (tmux) where there is tmux. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { StatusLine } from "../../src/cli/wait/status-line.ts";
import { waitText } from "../../src/cli/wait/wait-line.ts";
import { newPool } from "../support/pool.ts";
import { hasTmux, MAILCHUTE, openTerminal, PROMPT } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const isWanted = (): boolean => true;

it("counts what has ended, and says what runs", () => {
  const of = (ended: number, failed: number, all: number, saying?: string): string =>
    waitText({ ended, failed, all, isWanted }, saying, 12_000);
  expect(of(3, 1, 12, "build  40 %")).toBe(
    "[#####---------------] 3 of 12 tasks ended, 1 failed  build  40 %",
  );
  expect(of(0, 0, 2)).toBe("[--------------------] 0 of 2 tasks ended  nothing runs yet");
  expect(of(0, 0, 1, "build runs")).toBe("build runs  (12 s)");
  expect(of(0, 0, 0)).toContain("0 of 0 tasks");
});

describe("the line", () => {
  function played(columns: number) {
    const written: string[] = [];
    const stream = { columns, write: (text: string) => written.push(text) > 0 };
    return { written, line: new StatusLine(stream as never) };
  }

  it("is one line of text, whatever is in it, and is drawn only when it changes", () => {
    const { written, line } = played(23);
    line.show("a\n\x1b[2Jb \u202e日本語日本語日本語");
    line.show("a\n\x1b[2Jb \u202e日本語日本語日本語");
    expect(written).toEqual(["\r\x1b[Ka\\n\\x1b[2Jb \\u{202e}…"]);
    line.hide();
    line.hide();
    expect(written.slice(1)).toEqual(["\r\x1b[K"]);
  });

  it("goes away before something else is printed", () => {
    const { written, line } = played(80);
    const printed: string[] = [];
    const out = line.beside({
      line: (text = "") => void printed.push(`${written.length} ${text}`),
      json: () => {},
      raw: async () => {},
      note: (text) => void printed.push(`${written.length} ${text}`),
    });
    line.show("waits");
    out.note("a note");
    out.line("a line");
    expect(printed).toEqual(["2 a note", "2 a line"]);
    expect(written).toEqual(["\r\x1b[Kwaits", "\r\x1b[K"]);
  });
});

it.skipIf(!hasTmux)(
  "shows the progress of a task, and leaves nothing of it on the terminal",
  async () => {
    const pool = newPool();
    await pool.start();
    const go = join(pool.dir, "go");
    const script = `echo "::progress 40 half way"; until test -e ${go}; do sleep 0.05; done`;
    pool.drop("slow", { exec: ["sh", "-c", script] });
    const terminal = openTerminal(pool.dir, 80, 24);
    await waitFor(() => terminal.screen().startsWith(PROMPT), { what: "the shell" });
    terminal.press(`${MAILCHUTE} wait slow`, "Enter");
    await waitFor(
      () => terminal.screen().includes("slow  [########------------]  40 %  half way"),
      {
        what: "its progress",
      },
    );
    fs.writeFileSync(go, "");
    await waitFor(() => terminal.screen().includes("slow  completed"), { what: "its end" });
    expect(terminal.all()).not.toContain("half way");
    await pool.stop();
  },
);
