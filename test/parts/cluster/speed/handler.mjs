/**
 * Notes where and when it began, if it is asked to, and sleeps as long as it is asked to; with `once` a later run of the task does not
 * sleep. Its measurement says where it notes: MAILCHUTE_SPEED_TRACE.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const path = process.env.MAILCHUTE_SPEED_TRACE;

export default async function run({ payload }, { signal }) {
  const { mark, ms, once } = payload ?? {};
  let isFirst = true;
  if (mark !== undefined) {
    // The machine's one monotonic clock, so that the times of several processes compare.
    const us = process.hrtime.bigint() / 1000n;
    isFirst = once !== true || !readFileSync(path, "utf8").includes(`${mark} `);
    appendFileSync(path, `${mark} ${process.env.MAILCHUTE_SPEED_MACHINE} ${us}\n`);
  }
  if (ms !== undefined && isFirst) await wait(ms, undefined, { signal });
  return null;
}
