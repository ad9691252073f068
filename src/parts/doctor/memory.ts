/** Checks by the limits of this machine whether a pool can have the memory that it wants. */
import { bytesText } from "../../core/bytes-text.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../core/settings.ts";
import {
  addressSpaceMax,
  describeAddressSpace,
  describeGroupMemory,
  groupMemory,
} from "../../host/memory-room.ts";
import { type CheckResult, ok, warned } from "./check.ts";

const MIB = 2 ** 20;
const NAME = "memory";
/** Address space that Node reserves in a worker process with its threads. A function that needs much memory wants more. */
const ADDRESS_SPACE_WANTED = 1536 * MIB;
/** Memory in use by a busy supervisor or worker process, and by a small program. */
const PROCESS_BYTES = 64 * MIB;
const PROGRAM_BYTES = 8 * MIB;

/**
 * @param settings undefined when they cannot be read
 * @param isRunning true if a pool has started its processes already, so only the programs that it runs need memory
 */
export function checkMemory(settings: Settings | undefined, isRunning: boolean): CheckResult[] {
  const { processes, workers } = settings ?? DEFAULT_SETTINGS;
  const results: CheckResult[] = [];
  const max = addressSpaceMax();
  if (max !== undefined && max < ADDRESS_SPACE_WANTED)
    results.push(
      warned(
        NAME,
        `${describeAddressSpace(max)}; a worker process may want ${bytesText(ADDRESS_SPACE_WANTED)}: it lives with fewer threads, or dies`,
        "raise ulimit -v (LimitAS= of the service), or limit the memory of the container in its place",
      ),
    );
  const room = groupMemory();
  const own = isRunning ? 0 : (1 + Math.min(processes, workers)) * PROCESS_BYTES;
  const wanted = own + workers * PROGRAM_BYTES;
  if (room !== undefined && room.left < wanted)
    results.push(
      warned(
        NAME,
        `${isRunning ? `${workers} programs at once` : `a pool with ${workers} slots`} may want ${bytesText(wanted)} more; ${describeGroupMemory(room)}: the kernel ends what is too much`,
        "raise the limit of memory (MemoryMax= of the service, --memory of the container), or run less at once (workers, processes)",
      ),
    );
  if (results.length > 0) return results;
  const limits = [
    ...(max === undefined ? [] : [describeAddressSpace(max)]),
    ...(room === undefined ? [] : [describeGroupMemory(room)]),
  ];
  return [ok(NAME, limits.length === 0 ? "nothing limits it" : limits.join("; "))];
}
