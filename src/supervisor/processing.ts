/** What stands in `processing/`: who runs what, and tasks that wait there although this supervisor did not put them there. */
import { decodeTask } from "../codec/task-codec.ts";
import type { Backlog } from "../core/backlog.ts";
import { systemCode } from "../core/errors.ts";
import { READY_WAIT_MS_MAX, TASK_BYTES_MAX } from "../core/limits.ts";
import { isPlannerWork, matchAgent } from "../core/matching.ts";
import { type ProcessingName, parseName, parsePlainClaim } from "../core/names.ts";
import type { Settings } from "../core/settings.ts";
import type { Task } from "../core/task.ts";
import { waitingBatch } from "../core/waiting-task.ts";
import { pathIn, type Trays } from "../mailbox/trays.ts";
import type { Pool } from "./pool.ts";
import type { Selection } from "./selection.ts";

export interface ProcessingParts {
  trays: Trays;
  settings: Settings;
  backlog: Backlog;
  selection: Selection;
  pool: Pool;
  /** The names in the tray, now; undefined when it cannot be listed. */
  list: () => string[] | undefined;
  /** A file of the inbox is to be looked at again. */
  hint: (file: string) => void;
}

export class Processing {
  private readonly p: ProcessingParts;

  constructor(parts: ProcessingParts) {
    this.p = parts;
  }

  /** Takes over a listing: what is ready and unknown joins the backlog. */
  take(files: readonly string[]): void {
    const { backlog, selection, pool } = this.p;
    const names: ProcessingName[] = [];
    const plainIds: string[] = [];
    for (const file of files) {
      const name = parseName(file);
      if (name === undefined) {
        const id = parsePlainClaim(file);
        if (id !== undefined) plainIds.push(id);
        continue;
      }
      names.push(name);
      const known = backlog.get(name.id);
      if (name.stage !== "ready" || known?.file === file || selection.isKnown(file)) continue;
      this.admit(name, file);
      // It takes the place of the file that waits under this id; that one is a duplicate now, to be dealt with.
      if (known?.tray === "inbox") this.p.hint(known.file);
    }
    selection.onListing(names, plainIds, pool.ownPrefixes());
  }

  /**
   * A ready task we did not accept ourselves: left by a dead supervisor, or put back by a worker we cannot speak to.
   * @param runsAlone the next run is to have a process of its own
   */
  admit(name: ProcessingName, file: string, runsAlone = false): void {
    const { trays, settings, selection } = this.p;
    if (selection.isKnown(file)) return;
    if (name.isBatch === true) {
      this.admitBatch(name, file);
      return;
    }
    let task: Task | undefined;
    let mtimeMs = 0;
    try {
      const { facts, bytes } = trays.storage.read(pathIn(trays.processing, file), TASK_BYTES_MAX);
      mtimeMs = facts.mtimeMs;
      if (bytes !== undefined) task = decodeTask(bytes, name.id).task;
    } catch (error) {
      if (systemCode(error) === "ENOENT") return;
      // A task that became unreadable is offered all the same: the worker that claims it settles it as failed.
    }
    const { agent } = matchAgent(task ?? {}, settings.agents);
    const waiting = {
      id: name.id,
      file,
      tray: "processing" as const,
      attempt: name.attempt,
      priority: task?.priority ?? 0,
      // It was chosen before: it goes on before what waits is begun.
      createdAt: task?.created_at ?? 0,
      agentId: agent?.name ?? "none",
      isSelected: false,
      ...(isPlannerWork(task ?? {}, agent) ? { isPlanner: true } : {}),
      ...(runsAlone ? { runsAlone } : {}),
    };
    const delayMs = Math.min(Math.max(mtimeMs - trays.clock.wallMs(), 0), READY_WAIT_MS_MAX);
    selection.addReady(name, file, waiting, delayMs);
  }

  private admitBatch(name: ProcessingName, file: string): void {
    const { trays, selection } = this.p;
    const facts = trays.storage.look(pathIn(trays.processing, file));
    if (facts === undefined) return;
    const { id, attempt } = name;
    const { mtimeMs } = facts;
    const place = { id, file, tray: "processing", attempt, mtimeMs } as const;
    const waiting = { ...waitingBatch(place), createdAt: 0 };
    const delayMs = Math.min(Math.max(mtimeMs - trays.clock.wallMs(), 0), READY_WAIT_MS_MAX);
    selection.addReady(name, file, waiting, delayMs);
  }

  /** How much each process runs, by what its leases begin with; undefined when nobody can say. */
  runningByOwner(): Map<string, number> | undefined {
    const running = new Map<string, number>();
    const files = this.p.list();
    if (files === undefined) return undefined;
    for (const file of files) {
      const name = parseName(file);
      if (name?.stage !== "w") continue;
      const prefix = name.token.slice(0, name.token.lastIndexOf("-"));
      running.set(prefix, (running.get(prefix) ?? 0) + 1);
    }
    return running;
  }

  /** Whether a retry or a refusal stands half-way; recovery brings it to its end. */
  hasHalfMoves(): boolean {
    return this.hasAny((stage) => stage === "again" || stage === "bad");
  }

  /** Whether anything is claimed, or being settled. */
  isBusy(): boolean {
    return this.hasAny((stage) => stage !== "ready");
  }

  /** True, too, when nobody can say. */
  private hasAny(isIt: (stage: ProcessingName["stage"]) => boolean): boolean {
    const files = this.p.list();
    if (files === undefined) return true;
    return files.some((file) => {
      const stage = parseName(file)?.stage;
      return stage !== undefined && isIt(stage);
    });
  }
}
