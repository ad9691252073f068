/** How many slots of the pool of this machine are left for tasks of others. Reads only. */
import { parseName } from "../../../core/names.ts";
import { controlOf } from "../../../core/saved-documents.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";
import { readJsonObject } from "../../../view/scan.ts";
import { intakeStopped, readSupervisor } from "../../../view/supervisor.ts";

/** For so long an answer holds (ms). */
const KEPT_MS = 500;

export class PoolRoom {
  private readonly tree: StateTree;
  private readonly trays: Trays;
  private readonly isOfOthers: (id: string) => boolean;
  private room = 0;
  private readMs = Number.NEGATIVE_INFINITY;

  constructor(tree: StateTree, trays: Trays, isOfOthers: (id: string) => boolean) {
    this.tree = tree;
    this.trays = trays;
    this.isOfOthers = isOfOthers;
  }

  /** Slots that no task of this tree has; 0 when no pool runs here, or it starts nothing. */
  now(): number {
    const nowMs = performance.now();
    if (nowMs - this.readMs >= KEPT_MS) {
      this.readMs = nowMs;
      this.room = this.read();
    }
    return this.room;
  }

  private read(): number {
    const supervisor = readSupervisor(this.tree, Date.now());
    // It may run on another host, where it is not seen whether it lives.
    const isOn = supervisor.state === "running" || supervisor.state === "unknown";
    if (!isOn || intakeStopped(supervisor) !== undefined) return 0;
    const { paused, max_workers: wanted } = controlOf(readJsonObject(this.tree.controlState));
    if (paused) return 0;
    const slots = wanted ?? supervisor.document?.workers ?? 0;
    const own = this.trays.storage.list(this.trays.processing).filter((file) => {
      const name = file.includes("~w-") ? parseName(file) : undefined;
      return name?.stage === "w" && !this.isOfOthers(name.id);
    });
    return Math.max(0, slots - own.length);
  }
}
