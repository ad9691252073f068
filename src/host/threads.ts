/**
 * The threads in which Node waits for the disk. libuv makes all of them at their first use, and aborts the process when one
 * cannot be made: so they are made at a moment when nothing can be lost, and no more than there is room for.
 */
import fs from "node:fs";
import type { Settings } from "../core/settings.ts";
import { describeRoom, type ProcessRoom, processRoom } from "./process-room.ts";

const SIZE_VARIABLE = "UV_THREADPOOL_SIZE";
/** As many as libuv makes when nothing is said. */
export const USUAL_THREADS = 4;
/** Results that wait for the disk at the same time share its commits; more threads than that win no more. */
export const SYNC_THREADS = 32;

/** How many threads a worker has where there is room for them. */
export function threadsWanted(durability: Settings["durability"]): number {
  return durability === "power" ? SYNC_THREADS : USUAL_THREADS;
}

/**
 * How many threads to make: `wanted`, or what the environment says (UV_THREADPOOL_SIZE), or half of the room, whichever is less;
 * at least 1.
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
 * Makes the threads of this process, once: later calls change nothing. Not the environment of what it starts.
 * @throws Error with code EAGAIN when there is no room for a single one; where the system does not tell of its limit the process
 *   is aborted then
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
