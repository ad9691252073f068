/** Checks whether the disks of a state tree have room for new work. Asks the system at most every 250 ms. */
import fs from "node:fs";
import { dirname } from "node:path";
import { lackOf, type Shortage, type Space } from "../core/free-space.ts";
import type { StateTree } from "../core/state-tree.ts";

/** How old the last look may be (ms): in this time a disk can take about 100 MB. */
export const ROOM_LOOK_MS = 250;

/** @returns undefined when the system cannot say now */
export type LookAtDisk = (path: string) => Space | undefined;

export class DiskRoom {
  private readonly paths: readonly string[];
  private lookAtMs = Number.NEGATIVE_INFINITY;
  private shortage: Shortage | undefined;

  /** @param bytesMin setting `free_bytes_min`; 0 = there is always room */
  constructor(
    tree: StateTree,
    private readonly bytesMin: number,
    private readonly lookAt: LookAtDisk = spaceOf,
  ) {
    // Each of these may be on another disk.
    this.paths = [...new Set([tree.mailbox, tree.runs, tree.dir, dirname(tree.events)])];
  }

  /** What the disks lacked at the last look; undefined when they had room. @param nowMs monotonic */
  shortageAt(nowMs: number): Shortage | undefined {
    if (this.bytesMin > 0 && nowMs >= this.lookAtMs) {
      this.lookAtMs = nowMs + ROOM_LOOK_MS;
      this.shortage = this.find();
    }
    return this.shortage;
  }

  private find(): Shortage | undefined {
    const wasShort = this.shortage !== undefined;
    for (const path of this.paths) {
      const space = this.lookAt(path);
      const lack = space === undefined ? undefined : lackOf(space, this.bytesMin, wasShort);
      if (lack !== undefined) return { path, ...lack };
    }
    return undefined;
  }
}

/** The space on the disk of a path, as far as users other than root may use it. */
export function spaceOf(path: string): Space | undefined {
  try {
    const { blocks, bavail, bsize, files, ffree } = fs.statfsSync(path);
    return { size: blocks * bsize, free: bavail * bsize, files, freeFiles: ffree };
  } catch {
    // The path does not exist yet.
    return undefined;
  }
}
