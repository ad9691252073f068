/**
 * Opens a link in the user's browser. The link holds a secret, and all users of the machine can see the arguments of a command. So
 * the browser opens a file that only its user can read, and the file leads to the link.
 */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { writeNew } from "../../host/regular-file.ts";
import { spawn } from "../../host/spawn.ts";

/** The file is removed after this time, when the link no longer works (ms). */
const KEPT_MS = 60_000;

/** @param onFault called with the reason when no browser opens. @returns a function that removes the file */
export function openBrowser(link: string, onFault: (text: string) => void): () => void {
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-open-"));
  const path = join(dir, "open.html");
  const page = `<!doctype html><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=${link}"><title>mailchute</title>\n`;
  writeNew(path, page);
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
