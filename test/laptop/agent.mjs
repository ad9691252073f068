/**
 * Uses memory as a coding agent does, at a quarter of its size: a session that grows, then its tests, as large again, in a process of their
 * own. Arguments: how much the session and the tests take (MiB), and for how long each step lasts (ms).
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";

const [session, tests, stepMs] = process.argv.slice(2).map(Number);
const SLEEP = new Int32Array(new SharedArrayBuffer(4));
const pause = (ms) => Atomics.wait(SLEEP, 0, 0, ms);
/** Each page is written, so that it counts. */
const take = (mib) => Buffer.alloc(mib * 1024 * 1024, 1);

const kept = [];
for (let step = 0; step < 4; step++) {
  kept.push(take(session / 4));
  pause(stepMs / 4);
}
if (tests > 0) {
  const args = [process.argv[1], String(tests), "0", String(stepMs)];
  const { status, signal } = spawnSync(process.execPath, args, { stdio: "inherit" });
  if (status !== 0) {
    console.error(`the tests ended with ${status ?? signal}`);
    process.exit(1);
  }
  // Not the commit of another task.
  const made = [process.env.MAILCHUTE_TASK_ID, ...kept.map((one) => one.length)];
  fs.writeFileSync("made.txt", made.join(" "));
  const commit = "git add made.txt && git -c user.name=a -c user.email=a@b commit -qm done";
  if (spawnSync("sh", ["-c", commit], { stdio: "inherit" }).status !== 0) process.exit(1);
  console.log("done");
} else pause(stepMs);
