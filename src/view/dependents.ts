/** Finds the waiting tasks that depend on a task. Reads a bounded number of files, again only when the inbox has changed. Reads only. */
import { join } from "node:path";
import { type BackOffByCost, backOffByCost } from "../core/back-off.ts";
import { foldId } from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { stampOf } from "./kept.ts";
import { searchTasks } from "./page-of-tasks.ts";
import { dependencyIds, type TaskRow } from "./task-rows.ts";

/** So many of the latest tasks are looked at: 50 ms. */
const READ_MAX = 1000;
const REST: BackOffByCost = { times: 20, mostMs: 60_000 };

interface Found {
  /** By the folded id of the task that they wait for. */
  rows: ReadonlyMap<string, TaskRow[]>;
  /** False: there were more tasks than are looked at. */
  isAll: boolean;
}

export class Dependents {
  private found: Promise<Found> | undefined;
  private stamp = "";
  private againMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly tree: StateTree) {}

  async of(id: string): Promise<{ rows: readonly TaskRow[]; isAll: boolean }> {
    const { rows, isAll } = await this.look();
    return { rows: rows.get(foldId(id)) ?? [], isAll };
  }

  private look(): Promise<Found> {
    const nowMs = performance.now();
    if (this.found !== undefined && nowMs < this.againMs) return this.found;
    const stamp = stampOf(join(this.tree.mailbox, "inbox"));
    if (this.found !== undefined && stamp === this.stamp) return this.found;
    this.stamp = stamp;
    this.againMs = Number.POSITIVE_INFINITY;
    this.found = this.read().finally(() => {
      const doneMs = performance.now();
      this.againMs = doneMs + backOffByCost(doneMs - nowMs, REST);
    });
    return this.found;
  }

  private async read(): Promise<Found> {
    const rows = new Map<string, TaskRow[]>();
    const { isAll } = await searchTasks(this.tree, {
      states: ["waiting"],
      readMax: READ_MAX,
      isWanted: (row, _words, task) => {
        for (const id of dependencyIds(task)) {
          const key = foldId(id);
          rows.set(key, rows.get(key) ?? []);
          rows.get(key)?.push(row);
        }
        return false;
      },
    });
    for (const list of rows.values()) list.sort((a, b) => (a.id < b.id ? -1 : 1));
    return { rows, isAll };
  }
}
