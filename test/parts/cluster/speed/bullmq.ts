/** The same peers as `npm run bench` has. Their packages are those of its folder. */
import fs from "node:fs";
import { fileURLToPath } from "node:url";

const BENCH = fileURLToPath(new URL("../../../../bench/", import.meta.url));

export interface Bullmq {
  drain(dir: string, count: number, processes: number): Promise<{ rate: number }>;
  /** @returns from before each add to the start of its handler (ms) */
  pickUp(dir: string, times: number, pause: () => Promise<unknown>): Promise<number[]>;
}

/** Undefined where it is not installed, with a line that says what to do. */
export async function openBullmq(): Promise<Bullmq | undefined> {
  const { findProgram } = await import(`${BENCH}machine.mjs`);
  const missing =
    findProgram("redis-server") === undefined
      ? "apt-get install redis-server"
      : fs.existsSync(`${BENCH}node_modules/bullmq`)
        ? undefined
        : "npm ci --prefix bench";
  if (missing !== undefined) {
    console.log(`BullMQ is not measured: ${missing}`);
    return undefined;
  }
  const { drainBullmq, pickUpBullmq } = await import(`${BENCH}peers/bullmq.mjs`);
  return {
    drain: (dir, count, processes) => drainBullmq(dir, count, "always", { processes }),
    pickUp: (dir, times, pause) => pickUpBullmq(dir, times, pause, "always"),
  };
}
