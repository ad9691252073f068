/**
 * Ends what the tests of a process have started when that process ends without doing so itself: killed, or interrupted. A shell in a
 * session of its own waits until its input ends, which no signal to the process can prevent. Then it kills all processes whose arguments
 * or environment name a directory of these tests, and removes these directories.
 */
import { spawn } from "node:child_process";
import os from "node:os";
import { join } from "node:path";

/** The names of all directories of this process's tests begin so. */
export const TEMP_NAME = `mailchute-test-${process.pid}-`;
/** Whether the directories stay after the tests. */
export const isKept = process.env["MAILCHUTE_TEST_KEEP"] !== undefined;

/** The text to look for comes through the pipe: in an argument, the shell and `grep` would find themselves. */
const SCRIPT = `
read -r name; read -r path; cat > /dev/null
for round in 1 2 3 4 5 6 7 8 9 10; do
  pids=$(printf '%s\\n' "$name" | grep -laF -f - /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2> /dev/null | cut -d / -f 3 | sort -u)
  [ -z "$pids" ] && break
  kill -STOP $pids; kill -KILL $pids
  sleep 0.1
done 2> /dev/null
[ -z "$path" ] || rm -rf "$path"*
`;

let hasBegun = false;

/** Call before the first directory is made. */
export function endWithThisProcess(): void {
  if (hasBegun || process.platform !== "linux") return;
  hasBegun = true;
  const child = spawn("/bin/sh", ["-c", SCRIPT], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.stdin.write(`${TEMP_NAME}\n${isKept ? "" : join(os.tmpdir(), TEMP_NAME)}\n`);
  child.unref();
  (child.stdin as unknown as { unref(): void }).unref();
}
