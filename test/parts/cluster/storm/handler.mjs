/** Writes down that a task runs here, waits for a moment, and writes down its end; a first run may have to fail. Its storm says where: MAILCHUTE_STORM_TRACE. */
import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const note = (what, { id }) =>
  appendFileSync(process.env.MAILCHUTE_STORM_TRACE, `${what} ${id} ${Date.now()}\n`);

export default async function run(task, { signal }) {
  note("start", task);
  await wait(task.payload.ms, undefined, { signal });
  if (task.payload.fails === true && task.id.endsWith(".1")) throw new Error("the first run fails");
  note("end", task);
  return { summary: "done" };
}
