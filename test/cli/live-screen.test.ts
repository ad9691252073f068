/** What `--watch` does to a terminal: on one that is played, and on a real one (tmux) where there is tmux. */
import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { frameOf, LiveScreen, type Terminal } from "../../src/cli/text/live-screen.ts";
import { cutPainted, paint, widthOf } from "../../src/text/render.ts";
import { newPool } from "../support/pool.ts";
import { hasTmux, MAILCHUTE, openTerminal, PROMPT } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

class PlayedTerminal extends EventEmitter implements Terminal {
  columns = 80;
  rows = 24;
  text = "";
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

it("draws over the frame before: it wipes no screen, and never scrolls", () => {
  expect(frameOf(["one", "two"], 80, 24)).toBe("\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J");
  const long = frameOf(
    Array.from({ length: 50 }, (_, i) => `line ${i}`),
    80,
    10,
  );
  expect(long.match(/\n/g)).toHaveLength(9);
  expect(long).toContain("line 7\x1b[K\nand 42 more lines");
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
  expect(narrow).toContain(`${"x".repeat(39)}…\x1b[K`);
  screen.close();
  expect(terminal.resize(30, 24)).toBe("");
  expect(terminal.listenerCount("resize")).toBe(0);
});

it("gives the terminal back as it was", () => {
  const terminal = new PlayedTerminal();
  const signals = (): number => process.listenerCount("SIGINT") + process.listenerCount("SIGTSTP");
  const before = signals();
  const screen = new LiveScreen(terminal);
  screen.open();
  expect(terminal.text).toBe("\x1b[?1049h\x1b[?25l");
  terminal.text = "";
  screen.close();
  expect(terminal.text).toBe("\x1b[?25h\x1b[?1049l");
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
