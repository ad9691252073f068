/**
 * Takes the best waiting tasks, writes that to the journal, accepts them and offers them to workers. Only a few tasks are accepted
 * ahead of free slots, so that `ls inbox` shows the backlog and a new urgent task need not wait long.
 */
import type { Backlog } from "../../core/backlog.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import { ACCEPTS_PER_TICK_MAX, PREFETCH_MAX } from "../../core/limits.ts";
import {
  errorName,
  foldId,
  formatName,
  headOf,
  type ProcessingName,
  parseName,
  resultName,
  resultsName,
} from "../../core/names.ts";
import type { Choice } from "../../core/pool-gates.ts";
import { laneOf, type WaitingTask } from "../../core/waiting-task.ts";
import { isEditing } from "../../host/identity.ts";
import type { Telemetry } from "../../journal/telemetry.ts";
import { accept, letGo, newSubmission } from "../../mailbox/claim/claim.ts";
import { pathIn, type Trays } from "../../mailbox/files/trays.ts";
import { isRefusal } from "../../mailbox/find/settled-record.ts";
import { freeRefusedId } from "../../mailbox/settle/quarantine.ts";
import type { Environment } from "../environment/environment.ts";
import type { Gates } from "../environment/part.ts";
import type { Pool } from "../pool/pool.ts";
import type { FinishedIds } from "./finished-ids.ts";

export type DispatcherEnvironment = Pick<Environment, "trays" | "telemetry" | "alerts" | "facts">;

const isBatchFile = (file: string): boolean => file.endsWith(".ndjson");

/** Workers get this much work in advance (seconds, at the recent rate), so that they never wait for us. */
const AHEAD_S = { process: 0.06, power: 0.3 };
const RATE_WINDOW_MS = 200;
/** Minimum time that a task is held (ms): a task at a gate that no part knows must not be let go and held again without a pause. */
const HELD_MS_MIN = 1000;
/** Pause before a task that could not be accepted is tried again (ms). It starts at `first` and doubles up to `max`. */
const ACCEPT_AGAIN_MS = { first: 250, max: 60_000 };

/** A run says after this time that it waits for a claim of a process that it does not know (ms). */
const STRANGE_MS = 2000;

/** Answers whether files of an id exist. */
export interface IdLooks {
  /** Whether a program that knows only the four trays has claimed it. */
  hasPlainClaim(id: string): boolean;
  hasResult(id: string): boolean;
}

export class Dispatcher {
  private readonly trays: Trays;
  private readonly telemetry: Telemetry;
  private readonly gates: Gates | undefined;
  /** Known ids in `processing/`, by folded id. */
  readonly inFlight = new Map<string, string>();
  private absentOnce = new Set<string>();
  private missingOnce = new Set<string>();
  /** Ids whose record in failed/ is about a refused file: the record moves aside when a task with the id is accepted. */
  private readonly refused = new Set<string>();
  /** Offered files and their tasks, until a worker has ended them. */
  private readonly offered = new Map<string, WaitingTask>();
  /** Tasks accepted for workers that we cannot send messages to; they find the tasks. */
  private floating = new Map<string, WaitingTask>();
  /** Accepted tasks that must run in a process of their own. */
  private readonly alone = new Map<string, WaitingTask>();
  /** Files that could not be accepted, and the pause before the next try of each (ms). */
  private readonly unaccepted = new Map<string, number>();
  private otherClaims = 0;
  /** Ids that a process claims which is no worker that we know, and since when (monotonic ms). */
  private strange = new Map<string, number>();
  private settledInWindow = 0;
  private windowStartMs = 0;
  private ratePerS = 0;
  /** How many tasks were given to workers since the start. */
  launchedCount = 0;
  private readonly singleLooks: IdLooks = {
    hasPlainClaim: (id) => this.isThere(this.trays.processing, `${id}.json`),
    hasResult: (id) => this.isThere(this.trays.outbox, resultName(id)),
  };

  /** @param gates left out: all tasks may start */
  constructor(
    private readonly env: DispatcherEnvironment,
    private readonly backlog: Backlog,
    private readonly pool: Pool,
    private readonly settledIds: FinishedIds,
    gates?: Gates,
  ) {
    this.gates = gates;
    this.trays = env.trays;
    this.telemetry = env.telemetry;
  }

  get offeredCount(): number {
    return this.offered.size;
  }

  isKnown(file: string): boolean {
    return this.offered.has(file) || this.floating.has(file) || this.alone.has(file);
  }

  /**
   * Whether this id (ignoring case) is being worked on or has settled. "unsure": that is not known yet, ask again.
   * @param looks left out: each name is looked for
   */
  isTaken(id: string, looks: IdLooks = this.singleLooks): boolean | "unsure" {
    if (this.inFlight.has(foldId(id))) return true;
    // A foreign program's claim may be there before a listing has shown it.
    if (looks.hasPlainClaim(id) || looks.hasResult(id)) return true;
    const failed = pathIn(this.trays.failed, errorName(id));
    if (this.trays.storage.look(failed) !== undefined) {
      if (!isRefusal(this.trays, failed)) return true;
      this.refused.add(id);
    }
    return this.settledIds.has(id);
  }

  /** Call it before this id, which is not taken, leaves the inbox: a refused file may have the name of its record. */
  freeRefused(id: string): void {
    if (this.refused.delete(id)) freeRefusedId(this.trays, id);
  }

  private isThere(dir: string, name: string): boolean {
    return this.trays.storage.look(pathIn(dir, name)) !== undefined;
  }

  /** Runs one round. @param launchesMax the largest number of new tasks @returns true when there may be more to do at once */
  select(launchesMax = Number.POSITIVE_INFINITY, which: Choice = { kind: "all" }): boolean {
    this.startAlone();
    // Tasks that were offered before the pause stay with the workers without running, so leave room beside them.
    const prefetch = which.kind === "these" ? PREFETCH_MAX : this.prefetch();
    let room = Math.min(this.pool.workers.freeOffers(prefetch), ACCEPTS_PER_TICK_MAX, launchesMax);
    const chosen: WaitingTask[] = [];
    for (const [file, task] of this.floating) {
      if (room <= 0) break;
      this.floating.delete(file);
      chosen.push(task);
      room--;
    }
    const otherRoom = this.pool.workers.hasOthers
      ? Math.max(0, this.pool.workers.otherSlots + prefetch - this.otherClaims - this.floating.size)
      : 0;
    const taken = this.take(Math.min(room + otherRoom, launchesMax), which);
    if (taken.length === 0 && chosen.length === 0) return false;
    // Choose these before any task is accepted, because that changes its tray.
    const waiting = taken.filter((task) => task.tray === "processing");
    const accepted = this.acceptAll(taken.filter((task) => task.tray === "inbox"));
    const ready = waiting.flatMap((task) => this.letGo(task) ?? []);
    chosen.push(...ready, ...accepted);
    const toOffer: WaitingTask[] = [];
    for (const task of chosen) {
      if (!task.isSelected) this.writeSelected(task, parseName(task.file));
      if (task.runsAlone === true && this.pool.runsSeveral) this.alone.set(task.file, task);
      else toOffer.push(task);
    }
    this.telemetry.flush();
    const left = new Set(
      this.pool.workers.offer(
        toOffer.map((task) => task.file),
        prefetch,
      ),
    );
    for (const task of toOffer)
      (left.has(task.file) ? this.floating : this.offered).set(task.file, task);
    this.startAlone();
    this.launchedCount += ready.length + accepted.length;
    return (
      taken.length > 0 &&
      this.backlog.count("runnable") > 0 &&
      this.pool.workers.freeOffers(prefetch) > 0
    );
  }

  private startAlone(): void {
    for (const [file, task] of this.alone) {
      if (!this.pool.startAlone(file)) return;
      this.alone.delete(file);
      this.offered.set(file, task);
    }
  }

  /** A worker has ended the tasks of these files. */
  onDone(files: readonly string[]): void {
    for (const file of files) this.offered.delete(file);
  }

  onSettled(id: string): void {
    this.inFlight.delete(foldId(id));
    this.settledIds.add(id);
    this.settledInWindow++;
  }

  onSkipped(id: string): void {
    this.inFlight.delete(foldId(id));
    // The dependents of this task are judged next, and each asks for this id.
    this.settledIds.add(id, pathIn(this.trays.failed, errorName(id)));
  }

  /** A task waits again in `processing/`: for its retry, or because it was given back. */
  onReturned(file: string, delayMs: number, known: WaitingTask | undefined): boolean {
    const name = parseName(file);
    const before = known ?? [...this.offered.values()].find((task) => task.id === name?.id);
    if (name === undefined || before === undefined) return false;
    this.addReady(name, file, { ...before, isSelected: true }, delayMs);
    return true;
  }

  /**
   * Adds a ready or held task to the backlog.
   * @param delayMs the rest of its backoff
   * @param notBeforeMs epoch ms: it does not start earlier
   */
  addReady(
    name: ProcessingName,
    file: string,
    like: WaitingTask,
    delayMs: number,
    notBeforeMs = 0,
  ): void {
    const { clock } = this.trays;
    const nowMs = clock.monotonicMs();
    const wallMs = clock.wallMs();
    const leftMs = name.stage === "hold" ? Math.max(delayMs, HELD_MS_MIN) : delayMs;
    const {
      dependencies: _all,
      unmet: _unmet,
      notBeforeMs: _notBefore,
      dueMs: _due,
      gate: _gate,
      ...rest
    } = like;
    this.inFlight.set(foldId(name.id), name.id);
    this.backlog.add(
      {
        ...rest,
        id: name.id,
        file,
        tray: "processing",
        attempt: name.attempt,
        ...(name.stage === "hold" ? { gate: name.token } : {}),
        // A landing that waited for its fix comes before others that would move the target again.
        ...(name.stage === "hold" && like.finishing === 1 ? { finishing: 2 as const } : {}),
        ...(leftMs > 0 ? { dueMs: nowMs + leftMs } : {}),
        ...(notBeforeMs > wallMs ? { notBeforeMs } : {}),
      },
      wallMs,
      nowMs,
    );
  }

  /** The task of an offered file. */
  offeredTask(file: string): WaitingTask | undefined {
    return this.offered.get(file);
  }

  /** A worker died: the tasks that it was offered and did not claim wait again. */
  reoffer(files: readonly string[]): void {
    for (const file of files) {
      const task = this.offered.get(file);
      this.offered.delete(file);
      const name = parseName(file);
      if (task === undefined || name === undefined) continue;
      if (this.trays.storage.look(pathIn(this.trays.processing, file)) !== undefined)
        this.addReady(name, file, { ...task, isSelected: true }, 0);
    }
  }

  /** Takes over a listing of `processing/`. @param ownPrefixes the owner prefixes of our own worker processes */
  onListing(
    names: readonly ProcessingName[],
    plainIds: readonly string[],
    ownPrefixes: ReadonlySet<string>,
  ): void {
    const present = new Map(plainIds.map((id) => [foldId(id), id]));
    const ready = new Set<string>();
    this.otherClaims = 0;
    const strangeIds = new Set(plainIds);
    for (const name of names) {
      // An unfinished retry or refusal does not use an id: the file in the inbox is the task itself, not a duplicate of it.
      if (name.stage === "again" || name.stage === "bad") continue;
      // A task that is being changed goes back into the inbox.
      if (name.stage === "w" && isEditing(name.token)) continue;
      present.set(foldId(name.id), name.id);
      if (name.stage === "ready") ready.add(formatName(name));
      const prefix = name.token.slice(0, name.token.lastIndexOf("-"));
      if (name.stage !== "w" || ownPrefixes.has(prefix)) continue;
      this.otherClaims++;
      if (!this.pool.workers.isKnown(prefix)) strangeIds.add(name.id);
    }
    const nowMs = this.trays.clock.monotonicMs();
    this.strange = new Map([...strangeIds].map((id) => [id, this.strange.get(id) ?? nowMs]));
    // One listing may miss a name that is being renamed; two in a row hardly ever do.
    const absent = new Set<string>();
    for (const [key, id] of this.inFlight) {
      if (present.has(key)) continue;
      if (!this.absentOnce.has(key)) absent.add(key);
      else {
        this.inFlight.delete(key);
        // It may have been settled by a process that does not report to us.
        this.settledIds.add(key);
        this.env.facts.emit("task:vanished", id);
      }
    }
    this.absentOnce = absent;
    for (const [key, id] of present) this.inFlight.set(key, id);
    for (const unclaimed of [this.floating, this.alone])
      for (const file of unclaimed.keys()) if (!ready.has(file)) unclaimed.delete(file);
    this.forgetLost(present, ready);
  }

  /** Tells once of each claim for which a run waits although no worker of this pool has it. A dead process is noticed before that. */
  tellStrange(): void {
    const { alerts } = this.env;
    const nowMs = this.trays.clock.monotonicMs();
    for (const [id, sinceMs] of this.strange)
      if (nowMs - sinceMs >= STRANGE_MS)
        alerts.report(
          `strange:${id}`,
          `this run waits for ${id}, which a process has claimed that is no worker of this pool: it goes on when ${id} has ended, or is taken back after lease_ttl_ms without a sign of life`,
          Number.POSITIVE_INFINITY,
        );
  }

  /** Forgets offered tasks that two listings did not show: they were handled, and the message about that was lost. */
  private forgetLost(present: ReadonlyMap<string, string>, ready: ReadonlySet<string>): void {
    const missing = new Set<string>();
    for (const [file, task] of this.offered)
      if (!ready.has(file) && !present.has(foldId(task.id))) missing.add(file);
    const lost = new Set([...missing].filter((file) => this.missingOnce.has(file)));
    this.missingOnce = missing;
    if (lost.size === 0) return;
    for (const file of lost) this.offered.delete(file);
    this.pool.workers.forget(lost);
  }

  private take(max: number, which: Choice): WaitingTask[] {
    const taken: WaitingTask[] = [];
    // If no part counts the starts of a lane, the parts are asked about it once, and not for each of its tasks.
    const free = new Set<string>();
    const mayStart = (lane: string): boolean =>
      free.has(lane) || this.gates?.mayStart(lane) !== false;
    const ids = "ids" in which ? [...which.ids] : [];
    while (taken.length < max) {
      const task = this.takeLaunched(ids) ?? this.takeBest(which, mayStart);
      if (task === undefined) break;
      if (!this.isFree(task)) continue;
      const lane = laneOf(task);
      if (!free.has(lane) && this.gates?.noteStart(lane, task.id) !== true) free.add(lane);
      taken.push(task);
    }
    return taken;
  }

  /** Whether a task may be taken. If its id is in use, or that cannot be said now, it is left to others or waits. */
  private isFree(task: WaitingTask): boolean {
    if (task.tray !== "inbox") return true;
    try {
      const isTaken =
        this.isTaken(task.id) || (isBatchFile(task.file) && this.hasLeftResults(task.id));
      if (isTaken) this.env.facts.emit("task:duplicate", task.file);
      return !isTaken;
    } catch (error) {
      this.postpone(task, error);
      return false;
    }
  }

  private takeBest({ kind }: Choice, mayStart: (lane: string) => boolean): WaitingTask | undefined {
    return kind === "these" ? undefined : this.backlog.takeBest(kind, mayStart);
  }

  /** The next of these tasks that can begin its first run. @param ids each id that was looked at is removed from this list */
  private takeLaunched(ids: string[]): WaitingTask | undefined {
    for (let id = ids.shift(); id !== undefined; id = ids.shift()) {
      const task = this.backlog.stateOfId(id) === "runnable" ? this.backlog.get(id) : undefined;
      if (task?.attempt !== 1 || this.gates?.mayStart(laneOf(task)) === false) continue;
      this.backlog.remove(id);
      return task;
    }
    return undefined;
  }

  /** Whether results of this id were left without a record: a program removed only the record. They must not count for another batch. */
  hasLeftResults(id: string): boolean {
    return [this.trays.outbox, this.trays.failed].some(
      (dir) => this.trays.storage.look(pathIn(dir, resultsName(id))) !== undefined,
    );
  }

  /** Writes events first, then moves the files: a crash in between repeats an event, but never loses one. */
  private acceptAll(tasks: readonly WaitingTask[]): WaitingTask[] {
    const accepted: WaitingTask[] = [];
    const names = tasks.map((task) =>
      newSubmission(this.trays.clock, task.id, task.attempt, isBatchFile(task.file)),
    );
    for (const [index, task] of tasks.entries()) this.writeSelected(task, names[index]);
    this.telemetry.flush();
    tasks.forEach((task, index) => {
      const name = names[index];
      if (name === undefined) return;
      try {
        this.freeRefused(task.id);
        if (!accept(this.trays, name)) return;
      } catch (error) {
        if (systemCode(error) === "ENOENT") return;
        this.postpone(task, error);
        return;
      }
      this.unaccepted.delete(task.file);
      this.inFlight.set(foldId(task.id), task.id);
      this.env.facts.emit("task:accepted", task.id, task.file);
      // Change the task itself: each copy by spread would get a hidden class of its own.
      task.file = formatName(name);
      task.tray = "processing";
      accepted.push(task);
    });
    return accepted;
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
    this.env.alerts.report(
      `accept:${systemCode(error)}`,
      `cannot accept ${task.file}: ${messageOf(error)}`,
    );
    const { clock } = this.trays;
    const pauseMs = this.unaccepted.get(task.file) ?? ACCEPT_AGAIN_MS.first;
    this.unaccepted.set(task.file, Math.min(2 * pauseMs, ACCEPT_AGAIN_MS.max));
    const nowMs = clock.monotonicMs();
    this.backlog.add({ ...task, dueMs: nowMs + pauseMs }, clock.wallMs(), nowMs);
  }

  private writeSelected(task: WaitingTask, name: ProcessingName | undefined): void {
    const subject = {
      task_id: task.id,
      agent_id: task.agentId ?? "",
      attempt: task.attempt,
      lease: name === undefined ? "" : headOf(name),
      group: task.told?.group,
    };
    // 0: the task was in processing/ before this supervisor started, so its time of arrival is not known.
    const waitedMs = Math.max(0, Math.round(this.trays.clock.wallMs() - task.arrivedMs));
    const details: Record<string, unknown> = {};
    if (task.arrivedMs > 0) details["queue_ms"] = waitedMs;
    if (task.told?.title !== undefined) details["title"] = task.told.title;
    this.telemetry.event("selected", subject, details);
    task.isSelected = true;
  }

  private prefetch(): number {
    const nowMs = this.trays.clock.monotonicMs();
    const elapsedMs = nowMs - this.windowStartMs;
    // One task a slot may have run for hours. Only more of them show that tasks are short, and that workers need some in advance.
    const shortCount = Math.max(0, this.settledInWindow - this.pool.workers.readySlots);
    if (elapsedMs >= RATE_WINDOW_MS) {
      this.ratePerS = (shortCount * 1000) / elapsedMs;
      this.settledInWindow = 0;
      this.windowStartMs = nowMs;
    } else if (elapsedMs > 10) {
      this.ratePerS = Math.max(this.ratePerS, (shortCount * 1000) / Math.max(elapsedMs, 50));
    }
    return Math.min(
      PREFETCH_MAX,
      Math.floor(
        (this.ratePerS * AHEAD_S[this.trays.durability]) / Math.max(1, this.pool.workers.size),
      ),
    );
  }
}
