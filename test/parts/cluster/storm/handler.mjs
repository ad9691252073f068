/** Writes down that a task runs here, waits for a moment, and writes down its end. Its storm says where: MAILCHUTE_STORM_TRACE. */
import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const note = (what, { id }) =>
  appendFileSync(process.env.MAILCHUTE_STORM_TRACE, `${what} ${id} ${Date.now()}\n`);

export default async function run(task, { signal }) {
  note("start", task);
  await wait(task.payload.ms, undefined, { signal });
  note("end", task);
  return { summary: "done" };
}
