/** Finds out which of the awaited tasks have ended, and how, by looking into the trays and the plan. Reads only. */
import { join } from "node:path";
import { errorName, inboxName, parseBesideName, resultName } from "../core/names.ts";
import { isSkippedKind } from "../core/skipped.ts";
import type { StateTree } from "../core/state-tree.ts";
import { failedLines } from "./batches.ts";
import { nearestId } from "./blocked-tasks.ts";
import { findTask, lookBeside, lookForRecord, lookForTask } from "./find-task.ts";
import { lookForLanding } from "./landing.ts";
import { eachName, readJsonObject, textOf } from "./scan.ts";
import type { WhyOpen } from "./why-open.ts";

export interface Settled {
  id: string;
  status: "completed" | "failed";
  error?: string;
  /** True when it did not run, because a task that it depends on had failed. */
  skipped?: true;
  /** For a completed batch with failed lines: the number of failed lines, and of all lines. */
  failed_lines?: number;
  lines?: number;
  /** Path of its record; missing for a node that has none. */
  record?: string;
}

export interface EndsOptions {
  /** True when the caller has just submitted the tasks, so that none can be unknown. */
  areKnown?: boolean;
  /** Epoch ms. An older record with a longer name does not belong to these tasks. Left out: any such record counts. */
  sinceMs?: number;
}

/** How often records with a longer name are looked for (ms). It is rare, because it lists the trays. */
const BESIDE_MS = 1000;

/** From this many tasks on, one listing of the trays is cheaper than a look for each. */
const LISTING_FROM = 100;

export class TaskEnds {
  /** The tasks that have not ended yet. */
  readonly pending: Set<string>;
  /** Ids that are in no tray and not in the plan, each with the most similar id. */
  readonly unknown: { id: string; near: string | null }[] = [];
  private readonly sinceMs: number;
  /** Ids that no tray had at the start: nodes that were not launched yet. */
  private readonly nodes = new Set<string>();
  private readonly beganMs = Date.now();
  private mayBeUnknown: boolean;
  private besideAtMs = 0;

  /** @param look reads the plan; it is called only for ids that are in no tray */
  constructor(
    private readonly tree: StateTree,
    ids: readonly string[],
    private readonly look: () => Promise<WhyOpen>,
    { areKnown = false, sinceMs = 0 }: EndsOptions = {},
  ) {
    this.pending = new Set(ids);
    this.mayBeUnknown = !areKnown;
    this.sinceMs = sinceMs;
  }

  /** Looks once. @returns the tasks that have ended since the last look; they are not pending any more */
  async take(): Promise<Settled[]> {
    const settled = this.takeSettled();
    if (this.mayBeUnknown) await this.dropUnknown();
    this.mayBeUnknown = false;
    if (this.nodes.size > 0) settled.push(...this.takeEnded(await this.look()));
    if (this.pending.size > 0 && performance.now() >= this.besideAtMs) {
      this.besideAtMs = performance.now() + BESIDE_MS;
      settled.push(...(await this.takeBeside()));
    }
    return settled;
  }

  private takeSettled(): Settled[] {
    const { tree, pending } = this;
    const listed = pending.size >= LISTING_FROM ? listRecords(tree) : undefined;
    const settled: Settled[] = [];
    for (const id of pending) {
      if (listed !== undefined && !listed.has(resultName(id)) && !listed.has(errorName(id)))
        continue;
      const one = settledOf(tree, id);
      if (one === undefined) continue;
      pending.delete(id);
      settled.push(one);
    }
    return settled;
  }

  /** Nodes that ended without a record in the trays: a program removed it, or the node only groups others. */
  private takeEnded({ others }: WhyOpen): Settled[] {
    const { nodes, pending } = this;
    const ended: Settled[] = [];
    for (const id of nodes) {
      const standing = pending.has(id) ? others.standing(id) : undefined;
      const isDone = standing?.is === "met";
      if (pending.has(id) && !isDone && standing?.how !== "failed") continue;
      nodes.delete(id);
      if (!pending.delete(id)) continue;
      ended.push(
        isDone
          ? { id, status: "completed" }
          : { id, status: "failed", error: "the plan says that it failed" },
      );
    }
    return ended;
  }

  /**
   * Tasks whose record has a longer name: the file was refused while another task had its id, perhaps in another case, or another
   * file had the final name.
   */
  private async takeBeside(): Promise<Settled[]> {
    const { tree, pending } = this;
    const found: { id: string; path: string }[] = [];
    for (const dir of [join(tree.mailbox, "failed"), join(tree.mailbox, "outbox")])
      eachName(dir, (name) => {
        const id = parseBesideName(name);
        if (id !== undefined && pending.has(id)) found.push({ id, path: join(dir, name) });
        return true;
      });
    const settled: Settled[] = [];
    for (const { id, path } of found) {
      const record = readJsonObject(path);
      const ours: unknown[] = [undefined, inboxName({ id }), inboxName({ id, isBatch: true })];
      if (!pending.has(id) || record === undefined || !ours.includes(record["dropped_as"]))
        continue;
      const endedAt = record["failed_at"] ?? record["completed_at"];
      // A node that has not run yet may have an older record with a longer name, left by an earlier task.
      const sinceMs = this.nodes.has(id) ? this.beganMs : this.sinceMs;
      if (Number(endedAt) < Math.floor(sinceMs / 1000)) continue;
      // When a task with exactly this id is here, the refused file came from another sender.
      if ((await findTask(tree, id))?.id === id) continue;
      pending.delete(id);
      if (record["status"] === "completed") settled.push({ id, status: "completed", record: path });
      else settled.push({ id, status: "failed", error: textOf(record["error"]), record: path });
    }
    return settled;
  }

  private async dropUnknown(): Promise<void> {
    const { tree, pending, nodes } = this;
    for (const id of pending) {
      if ((await findTask(tree, id))?.id === id) continue;
      const { others } = await this.look();
      if (others.standing(id) !== undefined) {
        nodes.add(id);
        continue;
      }
      if (lookBeside(tree, id) !== undefined) continue;
      // While the plan is being replaced, a look finds no plan. `membership` then reads it a moment later.
      if ((await others.membership())?.(id) === true) {
        nodes.add(id);
        continue;
      }
      pending.delete(id);
      const near = nearestId(tree, id, others.ids());
      this.unknown.push({ id, near: near ?? null });
    }
  }
}

/** How the task has ended; undefined when it has not, or its record is not there. */
export function settledOf(tree: StateTree, id: string): Settled | undefined {
  const record = lookForRecord(tree, id);
  if (record === undefined) return undefined;
  // A failed task that was put back keeps its record until the retry is complete.
  if (record.state === "failed" && lookForTask(tree, id)?.state !== "failed") return undefined;
  // A task whose work must land has ended only when the work has landed.
  const landing = record.state === "done" ? lookForLanding(tree, id) : undefined;
  if (landing?.state === "open") return undefined;
  const { path } = record;
  if (landing?.state === "failed")
    return { id, status: "failed", error: `it did not land: ${landing.why}`, record: path };
  if (record.state === "done") {
    const counts = failedLines(tree, id);
    const lines =
      counts === undefined ? {} : { failed_lines: counts.failures, lines: counts.lines };
    return { id, status: "completed", ...lines, record: path };
  }
  const { error, kind } = readJsonObject(path) ?? {};
  const skipped = isSkippedKind(kind) ? { skipped: true as const } : {};
  return { id, status: "failed", error: textOf(error), ...skipped, record: path };
}

function listRecords(tree: StateTree): Set<string> {
  const names = new Set<string>();
  for (const tray of ["outbox", "failed"]) {
    eachName(join(tree.mailbox, tray), (name) => {
      names.add(name);
      return true;
    });
  }
  return names;
}
