/** The line that a command shows while it waits, as text and on a real terminal (tmux) where there is tmux. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { standingOf } from "../../src/cli/wait/run-lines.ts";
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
  expect(of(0, 0, 2)).toBe("[--------------------] 0 of 2 tasks ended  nothing runs");
  expect(of(0, 0, 1, "build runs")).toBe("build runs  (12 s)");
  expect(of(0, 0, 0)).toContain("0 of 0 tasks");
});

it("of a run that still reads its inbox it says that there are more, and of many at work no words", () => {
  const progress = {
    completed: 1,
    failed: 1,
    skipped: 0,
    left: 999,
    accepted: 3,
    isAllKnown: false,
  };
  const few = standingOf(progress);
  expect(few?.isWanted?.("any")).toBe(true);
  const many = standingOf({ ...progress, accepted: 5000 });
  expect(waitText(many!, "", 0)).toBe("[--------------------] 2 of 1,001+ tasks ended, 1 failed");
  expect(many?.isWanted).toBeUndefined();
  expect(standingOf({ ...progress, completed: 0, failed: 0, left: 0 })).toBeUndefined();
});

it("the bar is full when all have ended, and not before", () => {
  const of = (ended: number): string => waitText({ ended, failed: 0, all: 1000, isWanted }, "", 0);
  expect(of(999)).toBe(`[${"#".repeat(19)}-] 999 of 1,000 tasks ended`);
  expect(of(1000)).toBe(`[${"#".repeat(20)}] 1,000 of 1,000 tasks ended`);
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
      rawError: async () => {},
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
    const script = `echo "::progress 40 half way"; until test -e ${go}; do sleep 0.1; done`;
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

describe.skipIf(!hasTmux)("run --drain", () => {
  it("counts each task once, also between two runs, and leaves its last line nowhere", async () => {
    const pool = newPool({
      config:
        "workers: 4\ndurability: process\nsweep_ms: 200\ngrace_ms: 500\nretry: {backoff_ms: 300000}\n",
    });
    const go = join(pool.dir, "go");
    const loop = `echo "::progress 40 half way"; until test -e ${go}; do sleep 0.1; done`;
    pool.drop("slow", { exec: ["sh", "-c", loop] });
    pool.drop("good", { exec: ["true"] });
    pool.drop("bad", { exec: ["false"], max_attempts: 1 });
    pool.drop("again", { exec: ["false"], max_attempts: 2 });
    pool.drop("child", { exec: ["true"], metadata: { dependencies: ["slow"] } });
    const node = `exec: [sh, -c, 'until test -e ${go}; do sleep 0.1; done']`;
    const plan = `nodes:\n  - { id: n, ${node} }\n  - { id: o, exec: ['true'], dependencies: [n] }\n`;
    fs.writeFileSync(join(pool.state, "roadmap.yaml"), plan);
    const terminal = openTerminal(pool.dir, 80, 24);
    await waitFor(() => terminal.screen().startsWith(PROMPT), { what: "the shell" });
    terminal.press(`${MAILCHUTE} run --drain`, "Enter");
    const shown = "[#####---------------] 2 of 7 tasks ended, 1 failed  slow  40 %  half way";
    await waitFor(() => terminal.screen().includes(shown), {
      what: `the line on\n${terminal.screen()}`,
    });
    const isAgain = () => terminal.screen().includes("again failed and runs again in");
    await waitFor(isAgain, { what: "the wait for its second run" });
    await waitFor(() => terminal.screen().includes(shown), { what: "the same counts" });
    fs.writeFileSync(go, "");
    await waitFor(() => terminal.screen().includes("6 of 7 tasks ended, 1 failed  nothing runs"), {
      what: "the others",
    });
    terminal.press("C-c");
    await waitFor(() => terminal.screen().includes("5 completed, 1 failed"), { what: "its end" });
    expect(terminal.all()).not.toContain("tasks ended");
  });

  it("leaves nothing on the terminal when it is told twice to stop", async () => {
    const pool = newPool({ config: "durability: process\ngrace_ms: 60000\n" });
    const deaf = (id: string): string => join(pool.dir, `${id}-is-deaf`);
    for (const id of ["one", "two"]) {
      const script = `trap '' TERM; touch '${deaf(id)}'; while :; do sleep 0.1; done`;
      pool.drop(id, { exec: ["sh", "-c", script] });
    }
    const terminal = openTerminal(pool.dir, 80, 24);
    await waitFor(() => terminal.screen().startsWith(PROMPT), { what: "the shell" });
    terminal.press(`${MAILCHUTE} run --drain --no-color`, "Enter");
    const sees = (text: string) =>
      waitFor(() => terminal.screen().includes(text), { what: `${text} on\n${terminal.screen()}` });
    await sees("0 of 2 tasks ended");
    const areDeaf = () => ["one", "two"].every((id) => fs.existsSync(deaf(id)));
    await waitFor(areDeaf, { what: "both programs" });
    terminal.press("C-c");
    await sees("stopping: running tasks are given back");
    await sees("0 of 2 tasks ended");
    terminal.press("C-c");
    await waitFor(() => terminal.screen().trimEnd().endsWith(PROMPT), { what: "the shell again" });
    expect(terminal.all()).not.toContain("tasks ended");
  });
});
