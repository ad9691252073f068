/**
 * Writes down that a task runs here, that it still does, and its end; a first run may have to fail. Its storm says where:
 * MAILCHUTE_STORM_TRACE.
 */
import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

/** How often a run says that it goes on (ms). */
const ON_MS = 100;

let runs = 0;

export default async function run(task, { signal }) {
  const self = `${process.pid}-${runs++}`;
  const note = (what) =>
    appendFileSync(process.env.MAILCHUTE_STORM_TRACE, `${what} ${task.id} ${Date.now()} ${self}\n`);
  note("start");
  const beat = setInterval(() => note("on"), ON_MS);
  try {
    await wait(task.payload.ms, undefined, { signal });
    if (task.payload.fails === true && task.id.endsWith(".1"))
      throw new Error("the first run fails");
    note("end");
  } catch (error) {
    note("stop");
    throw error;
  } finally {
    clearInterval(beat);
  }
  return { summary: "done" };
}
