/** Keeps the machine awake while this process lives. Uses systemd-inhibit; on macOS caffeinate. */
import { spawn } from "./spawn.ts";

const IS_MACOS = process.platform === "darwin";
const PROGRAM = IS_MACOS ? "caffeinate" : "systemd-inhibit";
const STDERR_LENGTH_MAX = 200;

/**
 * @param why the text that `systemd-inhibit --list` shows
 * @param onCannot called once when the machine cannot be kept awake, with the reason
 * @returns a function that lets the machine sleep again
 */
export function keepAwake(why: string, onCannot: (reason: string) => void): () => void {
  // The lock is held until cat ends. cat ends when its input ends, so also when this process is killed.
  const wish = IS_MACOS
    ? ["-im"]
    : ["--what=sleep:idle:handle-lid-switch", "--who=mailchute", `--why=${why}`];
  const child = spawn(PROGRAM, [...wish, "cat"], {
    stdio: ["pipe", "ignore", "pipe"],
    detached: true,
  });
  let isWanted = true;
  let words = "";
  const fail = (reason: string): void => {
    if (isWanted) onCannot(reason);
    isWanted = false;
  };
  child.stdin.on("error", () => {});
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    words = (words + text).slice(0, STDERR_LENGTH_MAX);
  });
  child.once("error", ({ message }) => fail(message));
  child.once("close", (exitCode) => fail(words.trim() || `${PROGRAM} ended (${exitCode})`));
  // The child must not keep this process alive.
  child.unref();
  return () => {
    isWanted = false;
    child.stdin.end();
  };
}
