/**
 * Opens a link in the user's browser. All users see the words of a command, and the link holds a secret: so the browser is given a file
 * that only its user can read, and that leads to the link.
 */
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The link works no longer than this (ms). */
const KEPT_MS = 60_000;

/** @param onFault what is wrong, when no browser opens @returns a function that removes the file */
export function openBrowser(link: string, onFault: (text: string) => void): () => void {
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-open-"));
  const path = join(dir, "open.html");
  const page = `<!doctype html><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=${link}"><title>mailchute</title>\n`;
  fs.writeFileSync(path, page, { mode: 0o600, flag: "wx" });
  const remove = (): void => {
    clearTimeout(timer);
    fs.rmSync(dir, { recursive: true, force: true });
  };
  const timer = setTimeout(remove, KEPT_MS);
  timer.unref();
  const program = process.platform === "darwin" ? "open" : "xdg-open";
  const child = spawn(program, [pathToFileURL(path).href], { stdio: "ignore", detached: true });
  const fail = (why: string): void =>
    onFault(`${program} opens no browser (${why}): open the link yourself`);
  child.on("error", (error) => fail(error.message));
  child.on("exit", (code) => {
    if (code !== 0 && code !== null) fail(`it ended with exit code ${code}`);
  });
  child.unref();
  return remove;
}
