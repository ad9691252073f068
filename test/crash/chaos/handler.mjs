/** A task's function under chaos. `payload`: `does` (ok | fail for good | third: fails until its third run), `ms`, `trace`. */
import fs from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

export default async function handle(task, context) {
  const { does, ms, trace } = task.payload;
  const note = (what) =>
    fs.appendFileSync(trace, `${what} ${task.id} ${context.attempt} ${context.lease}\n`);
  note("start");
  if (ms > 0) await wait(ms, undefined, { signal: context.signal });
  if (does === "fail") throw Object.assign(new Error("told to fail"), { canRetry: false });
  if (does === "third" && context.attempt < 3) throw new Error("told to fail until the third run");
  note("end");
  return { id: task.id, attempt: context.attempt };
}
