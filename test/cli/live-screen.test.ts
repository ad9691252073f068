/** What `--watch` does to a terminal: on one that is played, and on a real one (tmux) where there is tmux. */
import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { fitRows, frameOf, LiveScreen, type Terminal } from "../../src/cli/text/live-screen.ts";
import { cutPainted, paint, widthOf } from "../../src/text/render.ts";
import { newPool } from "../support/pool.ts";
import { hasTmux, MAILCHUTE, openTerminal, PROMPT } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

class PlayedTerminal extends EventEmitter implements Terminal {
  columns = 80;
  rows = 24;
  isBusy = false;
  text = "";
  finish(): void {}
  write(text: string): void {
    this.text += text;
  }
  resize(columns: number, rows: number): string {
    this.text = "";
    Object.assign(this, { columns, rows });
    this.emit("resize");
    return this.text;
  }
}

const SIZE = { columns: 80, rows: 24 };
const inOneUpdate = (text: string): string => `\x1b[?2026h${text}\x1b[?2026l`;

it("draws the first frame whole, and then only lines that have changed", () => {
  expect(frameOf(undefined, ["one", "two"], SIZE)).toBe(
    inOneUpdate("\x1b[1Hone\x1b[K\x1b[2Htwo\x1b[K\x1b[3H\x1b[J"),
  );
  expect(frameOf(["one", "two"], ["one", "three"], SIZE)).toBe(inOneUpdate("\x1b[2Hthree\x1b[K"));
  expect(frameOf(["one", "two"], ["one"], SIZE)).toBe(inOneUpdate("\x1b[2H\x1b[J"));
  expect(frameOf(["one"], ["one"], SIZE)).toBe("");
});

it("never scrolls, and does not erase the last cell of a full line", () => {
  const long = fitRows(
    Array.from({ length: 50 }, (_, i) => `line ${i}`),
    10,
  );
  expect(long).toHaveLength(10);
  expect(long.at(-1)).toBe("and 41 more lines: mailchute status");
  const text = frameOf(undefined, long, { columns: 80, rows: 10 });
  expect(text).not.toContain("\n");
  expect(text).not.toContain("\x1b[11H");
  expect(frameOf(undefined, ["x".repeat(80)], { columns: 80, rows: 1 })).not.toContain("\x1b[K");
});

it("lets only colours steer the terminal, whatever is in a line", () => {
  const text = frameOf(undefined, ["a\x1b[2Jb\x1b[31mc\x07\u009b2J\u202e"], SIZE);
  expect(text).toContain("a\\x1b[2Jb\x1b[31mc\\x07\\x9b2J\\u{202e}");
});

it("leaves out frames while the terminal has not taken the last one", () => {
  const terminal = new PlayedTerminal();
  const screen = new LiveScreen(terminal);
  screen.open();
  terminal.text = "";
  terminal.isBusy = true;
  screen.show(() => ["one"]);
  expect(terminal.text).toBe("");
  terminal.isBusy = false;
  screen.show(() => ["two"]);
  expect(terminal.text).toContain("two");
  screen.close();
});

it("tells its user when the terminal is taken and left, once each", () => {
  const calls: string[] = [];
  const user = { taken: () => void calls.push("taken"), left: () => void calls.push("left") };
  const screen = new LiveScreen(new PlayedTerminal(), user);
  screen.open();
  // Another program may send this signal to a process that was not stopped.
  process.emit("SIGCONT");
  screen.close();
  screen.close();
  expect(calls).toEqual(["taken", "left"]);
});

it("cuts what does not fit, in cells of the terminal and not in the codes of colours", () => {
  const line = `${paint(true, "bold", "state")}  ${paint(true, "red", "a name, 日本語")}`;
  for (let max = 1; max < 25; max++) {
    const plain = cutPainted(line, max).replaceAll(/\x1b\[\d+m/g, "");
    expect(widthOf(plain)).toBeLessThanOrEqual(max);
    expect(plain.endsWith("…")).toBe(max < 21);
  }
  expect(cutPainted(line, 21)).toBe(line);
  expect(cutPainted(line, 12).endsWith("\x1b[0m")).toBe(true);
});

it("draws anew when the width changes, in the new width, and no more after it was closed", () => {
  const terminal = new PlayedTerminal();
  const screen = new LiveScreen(terminal);
  screen.open();
  screen.show((columns) => [`${columns} columns`, "x".repeat(60)]);
  expect(terminal.text).toContain("80 columns");
  const narrow = terminal.resize(40, 24);
  expect(narrow).toContain("40 columns");
  expect(narrow).toContain(`\x1b[2H${"x".repeat(39)}…\x1b[`);
  screen.close();
  expect(terminal.resize(30, 24)).toBe("");
  expect(terminal.listenerCount("resize")).toBe(0);
});

it("gives the terminal back as it was", () => {
  const terminal = new PlayedTerminal();
  const signals = (): number =>
    ["SIGINT", "SIGTSTP", "exit", "uncaughtExceptionMonitor"].reduce(
      (sum, name) => sum + process.listenerCount(name),
      0,
    );
  const before = signals();
  const screen = new LiveScreen(terminal);
  screen.open();
  expect(terminal.text).toBe("\x1b[?1049h\x1b[?25l\x1b[?7l");
  terminal.text = "";
  screen.close();
  expect(terminal.text).toBe("\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l");
  expect(signals()).toBe(before);
});

it.skipIf(!hasTmux)("leaves nothing on a real terminal that is narrowed meanwhile", async () => {
  const pool = newPool();
  pool.drop("waiting", { exec: ["true"] });
  const terminal = openTerminal(pool.dir, 100, 30);
  terminal.press("seq 40", "Enter");
  await waitFor(() => terminal.screen().includes("\n40\n"), { what: "what was there before" });
  terminal.press(`${MAILCHUTE} status --watch`, "Enter");
  await waitFor(() => terminal.screen().includes("do: mailchute run"), { what: "a frame" });
  terminal.resize(40, 30);
  const lines = await waitFor(
    () => {
      const shown = terminal.screen().split("\n");
      return shown.some((line) => line.endsWith("…")) ? shown : undefined;
    },
    { what: "a frame in the new width" },
  );
  expect(lines.filter((line) => line.startsWith("supervisor"))).toHaveLength(1);
  terminal.press("C-c");
  await waitFor(() => terminal.screen().trimEnd().endsWith(PROMPT), { what: "the shell again" });
  const all = terminal.all();
  expect(all).toContain("\n40\n");
  expect(all).not.toContain("supervisor");
});
