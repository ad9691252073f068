/** Tells how many slots of this machine's pool are left for tasks of others. Only reads. */
import { parseName } from "../../../core/names.ts";
import { controlOf } from "../../../core/saved-documents.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";
import { readJsonObject } from "../../../view/scan.ts";
import { intakeStopped, readSupervisor } from "../../../view/supervisor.ts";

/** An answer is used again for this long (ms). */
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

  /** The slots that no task of this tree has; 0 when no pool runs here, or when it starts nothing. */
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
    // The supervisor may run on another host, where we cannot see whether it lives.
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
