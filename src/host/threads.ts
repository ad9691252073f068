/**
 * Sets the number of threads in which Node waits for the disk. libuv makes all of them at their first use, and aborts the process
 * when it cannot make one. So we make them at a time when nothing can be lost, and only as many as there is room for.
 */
import fs from "node:fs";
import type { Settings } from "../core/settings.ts";
import { describeRoom, type ProcessRoom, processRoom } from "./process-room.ts";

const SIZE_VARIABLE = "UV_THREADPOOL_SIZE";
/** The number of threads that libuv makes by default. */
export const USUAL_THREADS = 4;
/** Writes that wait for the disk at the same time share its commits. More threads than this gain nothing. */
export const SYNC_THREADS = 32;

/** How many threads a worker gets when there is enough room. */
export function threadsWanted(durability: Settings["durability"]): number {
  return durability === "power" ? SYNC_THREADS : USUAL_THREADS;
}

/**
 * How many threads to make: `wanted`, or the value of UV_THREADPOOL_SIZE when it is set, but at most half of the room, and at least
 * 1.
 * @param others processes and threads that need room as well
 */
export function threadsFor(
  wanted: number,
  others = 0,
  room: ProcessRoom | undefined = processRoom(),
): number {
  const given = Number(process.env[SIZE_VARIABLE]);
  const max = given > 0 ? given : wanted;
  if (room === undefined) return max;
  return Math.max(1, Math.min(max, Math.floor((room.left - others) / 2)));
}

/**
 * Makes the threads of this process; only the first call has an effect. The environment of child processes is not changed.
 * @throws Error with code EAGAIN when there is no room for even one thread. Where the system does not show its limit, the process
 *   is aborted instead
 */
export function makeThreads(count: number): void {
  const room = processRoom();
  if (room !== undefined && room.left < 1)
    throw Object.assign(new Error(`EAGAIN: no thread can be made: ${describeRoom(room)}`), {
      code: "EAGAIN",
    });
  const given = process.env[SIZE_VARIABLE];
  process.env[SIZE_VARIABLE] = String(count);
  fs.access("/", () => {});
  if (given === undefined) delete process.env[SIZE_VARIABLE];
  else process.env[SIZE_VARIABLE] = given;
}
