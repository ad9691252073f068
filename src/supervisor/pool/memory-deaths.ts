/** Finds out whether a worker process died for lack of memory, and which limit caused that. */
import { bytesText } from "../../core/bytes-text.ts";
import {
  addressSpaceMax,
  countMemoryKills,
  describeAddressSpace,
  groupMemory,
} from "../../host/memory-room.ts";

/** A process that the kernel has killed is gone within this time (ms). */
const KILLED_MS = 2000;

export class MemoryDeaths {
  private kills = countMemoryKills();
  private killedAtMs = Number.NEGATIVE_INFINITY;

  /** @returns the limit that was reached, for people; undefined when the process died of another cause */
  explain(signal: NodeJS.Signals | null): string | undefined {
    // V8 and the C library end a process with these signals when it gets no memory. Without a system limit it was V8's own limit,
    // which the running tasks have used up.
    if (signal === "SIGABRT" || signal === "SIGTRAP") {
      const max = addressSpaceMax();
      return max === undefined ? undefined : describeAddressSpace(max);
    }
    return signal === "SIGKILL" && this.hasKernelKilled() ? describeGroup() : undefined;
  }

  private hasKernelKilled(): boolean {
    const kills = countMemoryKills();
    const nowMs = performance.now();
    // When several processes die at once, the first report already sees the new number of kills.
    if (kills > this.kills) this.killedAtMs = nowMs;
    this.kills = kills;
    return nowMs - this.killedAtMs < KILLED_MS;
  }
}

function describeGroup(): string {
  const room = groupMemory();
  return room === undefined
    ? "the kernel killed a process"
    : `${room.limit} allows ${bytesText(room.max)}`;
}
