/**
 * Takes the best waiting tasks, writes that to the journal, accepts them and offers them to workers. Only a few tasks are accepted
 * ahead of free slots, so that `ls inbox` shows the backlog and a new urgent task need not wait long.
 */
import type { Backlog } from "../../core/backlog.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import type { StartFilter } from "../../core/gates.ts";
import { ACCEPTS_PER_TICK_MAX, PREFETCH_MAX } from "../../core/limits.ts";
import { readAgentId } from "../../core/matching.ts";
import { formatName, headOf, type ProcessingName, parseName } from "../../core/names.ts";
import { laneOf, type WaitingTask } from "../../core/waiting-task.ts";
import { accept, letGo, newSubmission } from "../../mailbox/claim/claim.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import type { Environment } from "../environment/environment.ts";
import type { Gates } from "../environment/part.ts";
import type { Pool } from "../pool/pool.ts";
import type { AcceptedTasks } from "./accepted-tasks.ts";
import type { ProcessingTray } from "./processing-tray.ts";
import type { IdProbe } from "./taken-ids.ts";

export type DispatcherEnvironment = Pick<Environment, "trays" | "telemetry" | "alerts" | "facts">;

interface DispatcherQueue {
  readonly backlog: Backlog;
  readonly pool: Pool;
  readonly accepted: AcceptedTasks;
  readonly ids: IdProbe;
  readonly processing: Pick<ProcessingTray, "otherClaims">;
}

const isBatchFile = (file: string): boolean => file.endsWith(".ndjson");

/** Pause before a task that could not be accepted is tried again (ms). It starts at `first` and doubles up to `max`. */
const ACCEPT_AGAIN_MS = { first: 250, max: 60_000 };

export class Dispatcher {
  private readonly trays: Trays;
  /** Files that could not be accepted, and the pause before the next try of each (ms). */
  private readonly unaccepted = new Map<string, number>();
  /** How many tasks were given to workers since the start. */
  launchedCount = 0;

  /** @param gates left out: all tasks may start */
  constructor(
    private readonly env: DispatcherEnvironment,
    private readonly queue: DispatcherQueue,
    private readonly gates?: Gates,
  ) {
    this.trays = env.trays;
  }

  /** Runs one round. @param launchesMax the largest number of new tasks @returns true when there may be more to do at once */
  select(launchesMax = Number.POSITIVE_INFINITY, which: StartFilter = { kind: "all" }): boolean {
    const { accepted, backlog, pool, processing } = this.queue;
    const { workers } = pool;
    this.startAlone();
    // Tasks that were offered before the pause stay with the workers without running, so leave room beside them.
    const nowMs = this.trays.clock.monotonicMs();
    const prefetch = which.kind === "these" ? PREFETCH_MAX : workers.tasksAhead(nowMs);
    let room = Math.min(workers.freeOffers(prefetch), ACCEPTS_PER_TICK_MAX, launchesMax);
    const chosen: WaitingTask[] = [];
    for (const [file, task] of accepted.in("floating")) {
      if (room <= 0) break;
      accepted.take(file);
      chosen.push(task);
      room--;
    }
    const claimed = processing.otherClaims + accepted.count("floating");
    const otherRoom = workers.hasOthers ? Math.max(0, workers.otherSlots + prefetch - claimed) : 0;
    const taken = this.take(Math.min(room + otherRoom, launchesMax), which);
    if (taken.length === 0 && chosen.length === 0) return false;
    // Choose these before any task is accepted, because that changes its tray.
    const waiting = taken.filter((task) => task.tray === "processing");
    const fresh = this.acceptAll(taken.filter((task) => task.tray === "inbox"));
    const ready = waiting.flatMap((task) => this.letGo(task) ?? []);
    this.offer([...chosen, ...ready, ...fresh], prefetch);
    this.launchedCount += ready.length + fresh.length;
    return taken.length > 0 && backlog.count("runnable") > 0 && workers.freeOffers(prefetch) > 0;
  }

  private offer(tasks: readonly WaitingTask[], prefetch: number): void {
    const { accepted, pool } = this.queue;
    const toOffer: WaitingTask[] = [];
    for (const task of tasks) {
      if (!task.isSelected) this.writeSelected(task, parseName(task.file));
      if (task.runsAlone === true && pool.runsSeveral) accepted.put(task.file, task, "alone");
      else toOffer.push(task);
    }
    this.env.telemetry.flush();
    const files = toOffer.map((task) => task.file);
    const left = new Set(pool.workers.offer(files, prefetch));
    for (const task of toOffer)
      accepted.put(task.file, task, left.has(task.file) ? "floating" : "offered");
    this.startAlone();
  }

  private startAlone(): void {
    const { accepted, pool } = this.queue;
    for (const [file, task] of accepted.in("alone")) {
      if (!pool.startAlone(file)) return;
      accepted.put(file, task, "offered");
    }
  }

  private take(max: number, which: StartFilter): WaitingTask[] {
    const taken: WaitingTask[] = [];
    // If no part counts the starts of a lane, the parts are asked about it once, and not for each of its tasks.
    const free = new Set<string>();
    const mayStart = (lane: string): boolean =>
      free.has(lane) || this.gates?.mayStart(lane) !== false;
    const ids = "ids" in which ? [...which.ids] : [];
    while (taken.length < max) {
      const task =
        this.takeLaunched(ids) ??
        (which.kind === "these" ? undefined : this.queue.backlog.takeBest(which.kind, mayStart));
      if (task === undefined) break;
      if (!this.isFree(task)) continue;
      const lane = laneOf(task);
      if (task.agentId !== undefined && readAgentId(task.agentId).fallbacks.length > 0)
        task.chosenAgent = this.gates?.agentFor(lane);
      if (!free.has(lane) && this.gates?.noteStart(lane, task.id) !== true) free.add(lane);
      taken.push(task);
    }
    return taken;
  }

  /** Whether a task may be taken. If its id is in use, or that cannot be said now, it is left to others or waits. */
  private isFree(task: WaitingTask): boolean {
    if (task.tray !== "inbox") return true;
    const { ids } = this.queue;
    try {
      const isTaken =
        ids.isTaken(task.id) || (isBatchFile(task.file) && ids.hasLeftResults(task.id));
      if (isTaken) this.env.facts.emit("task:duplicate", task.file);
      return !isTaken;
    } catch (error) {
      this.postpone(task, error);
      return false;
    }
  }

  /** The next of these tasks that can begin its first run. @param ids each id that was looked at is removed from this list */
  private takeLaunched(ids: string[]): WaitingTask | undefined {
    const { backlog } = this.queue;
    for (let id = ids.shift(); id !== undefined; id = ids.shift()) {
      const task = backlog.stateOfId(id) === "runnable" ? backlog.get(id) : undefined;
      if (task?.attempt !== 1 || this.gates?.mayStart(laneOf(task)) === false) continue;
      backlog.remove(id);
      return task;
    }
    return undefined;
  }

  /** Writes events first, then moves the files: a crash in between repeats an event, but never loses one. */
  private acceptAll(tasks: readonly WaitingTask[]): WaitingTask[] {
    const { accepted, ids } = this.queue;
    const names = tasks.map((task) =>
      newSubmission(this.trays.clock, task.id, task.attempt, isBatchFile(task.file)),
    );
    for (const [index, task] of tasks.entries()) this.writeSelected(task, names[index]);
    this.env.telemetry.flush();
    return tasks.filter((task, index) => {
      const name = names[index];
      if (name === undefined) return false;
      try {
        ids.freeRefused(task.id);
        if (!accept(this.trays, name)) return false;
      } catch (error) {
        if (systemCode(error) !== "ENOENT") this.postpone(task, error);
        return false;
      }
      this.unaccepted.delete(task.file);
      accepted.add(task.id);
      this.env.facts.emit("task:accepted", task.id, task.file);
      // Change the task itself: each copy by spread would get a hidden class of its own.
      task.file = formatName(name);
      task.tray = "processing";
      return true;
    });
  }

  /** Makes a held task ready. @returns the task under its new name; undefined when it does not start now */
  private letGo(task: WaitingTask): WaitingTask | undefined {
    const name = parseName(task.file);
    if (name?.stage !== "hold") return task;
    try {
      const next = letGo(this.trays, name);
      return next && { ...task, file: formatName(next) };
    } catch (error) {
      this.postpone(task, error);
      return undefined;
    }
  }

  /** The disk refuses the task: it waits with a growing delay, and the others continue. */
  private postpone(task: WaitingTask, error: unknown): void {
    const what = `cannot accept ${task.file}: ${messageOf(error)}`;
    this.env.alerts.report(`accept:${systemCode(error)}`, what);
    const { clock } = this.trays;
    const pauseMs = this.unaccepted.get(task.file) ?? ACCEPT_AGAIN_MS.first;
    this.unaccepted.set(task.file, Math.min(2 * pauseMs, ACCEPT_AGAIN_MS.max));
    const nowMs = clock.monotonicMs();
    this.queue.backlog.add({ ...task, dueMs: nowMs + pauseMs }, clock.wallMs(), nowMs);
  }

  private writeSelected(task: WaitingTask, name: ProcessingName | undefined): void {
    const subject = {
      task_id: task.id,
      agent_id: task.chosenAgent ?? task.agentId ?? "",
      attempt: task.attempt,
      lease: name === undefined ? "" : headOf(name),
      group: task.told?.group,
    };
    // 0: the task was in processing/ before this supervisor started, so its time of arrival is not known.
    const waitedMs = Math.max(0, Math.round(this.trays.clock.wallMs() - task.arrivedMs));
    const details: Record<string, unknown> = {};
    if (task.arrivedMs > 0) details["queue_ms"] = waitedMs;
    if (task.told?.title !== undefined) details["title"] = task.told.title;
    this.env.telemetry.event("selected", subject, details);
    task.isSelected = true;
  }
}
