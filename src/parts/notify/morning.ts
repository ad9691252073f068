/** The morning report: when it is due, and its text. */
import { execFile } from "node:child_process";
import { messageOf } from "../../core/errors.ts";
import { pathInPackage } from "../../host/package.ts";
import { localTime } from "../../text/local-time.ts";

const LIMIT_MS = 120_000;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
/** Receivers refuse longer texts: ntfy takes 4,096 bytes. */
const CHARS_MAX = 3500;

/** True if this local time of the day, such as "07:00", has come. */
export function isMorning(at: string, wallMs: number): boolean {
  return localTime(wallMs).slice(11) >= at;
}

export function localDate(wallMs: number): string {
  return localTime(wallMs).slice(0, 10);
}

/** Never rejects: if the report cannot be made, the text says so. */
export function readReport(stateDir: string): Promise<string> {
  const args = [pathInPackage("bin/mailchute.js"), "report", "--since", "24h", "--state", stateDir];
  return new Promise((resolve) => {
    const options = { timeout: LIMIT_MS, maxBuffer: OUTPUT_BYTES_MAX };
    execFile(process.execPath, args, options, (error, stdout) => {
      if (error !== null) resolve(`the report cannot be made: ${messageOf(error)}`);
      else
        resolve(
          stdout.length > CHARS_MAX
            ? `${stdout.slice(0, CHARS_MAX)}…\nAll of it: mailchute report --since 24h`
            : stdout.trim(),
        );
    });
  });
}
