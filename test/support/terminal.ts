/** A real terminal with a shell in it, where tmux is installed. */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export const hasTmux = spawnSync("tmux", ["-V"]).status === 0;
/** How to call the built command line in a shell. */
export const MAILCHUTE = `'${process.execPath}' '${fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url))}'`;
export const PROMPT = "ready>";

export interface Terminal {
  /** What can be seen. */
  screen(): string;
  /** That, and all that has scrolled out of sight. */
  all(): string;
  /** Keys by tmux's names (`Enter`, `C-c`, `Tab`), or text: all of them at once. */
  press(...keys: string[]): void;
  resize(columns: number, rows: number): void;
  /** Writes on the screen, at the begin of its last line, as another program does. */
  scribble(text: string): void;
  /** What can be seen, with the sequences of its colours. */
  painted(): string;
  /** Closes the terminal while programs run in it. */
  close(): void;
}

let count = 0;

/** Goes away with the test. */
export function openTerminal(dir: string, columns: number, rows: number): Terminal {
  const server = `mailchute-test-${process.pid}-${++count}`;
  const tmux = (...args: string[]): string =>
    execFileSync("tmux", ["-L", server, "-f", "/dev/null", ...args], { encoding: "utf8" });
  onTestFinished(() => void spawnSync("tmux", ["-L", server, "kill-server"]));
  const size = ["-x", String(columns), "-y", String(rows)];
  tmux("new-session", "-d", ...size, "-c", dir, `env PS1='${PROMPT} ' sh`);
  return {
    screen: () => tmux("capture-pane", "-p"),
    all: () => tmux("capture-pane", "-p", "-S", "-"),
    press: (...keys) => void tmux("send-keys", ...keys),
    scribble: (text) =>
      fs.writeFileSync(tmux("display-message", "-p", "#{pane_tty}").trim(), `\x1b[999;1H${text}`),
    painted: () => tmux("capture-pane", "-p", "-e"),
    close: () => void spawnSync("tmux", ["-L", server, "kill-server"]),
    resize: (x, y) => void tmux("resize-window", "-x", String(x), "-y", String(y)),
  };
}
