/** The contents of `processing/`: which process runs what, and tasks that wait there although this supervisor did not put them there. */
import { decodeTask } from "../../codec/task-codec.ts";
import type { Backlog } from "../../core/backlog.ts";
import { systemCode } from "../../core/errors.ts";
import { finishingOf } from "../../core/landing.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { agentFirst, agentIdOf, isPlannerWork, matchAgent } from "../../core/matching.ts";
import {
  foldId,
  formatName,
  isUnclaimed,
  type ProcessingName,
  parseName,
  parsePlainClaim,
} from "../../core/names.ts";
import { retryPolicyOf } from "../../core/outcome.ts";
import type { Task } from "../../core/task.ts";
import { limitsOf, toldOf, type WaitingTask, waitingBatch } from "../../core/waiting-task.ts";
import { isEditing } from "../../host/identity.ts";
import { pathIn } from "../../mailbox/files/trays.ts";
import { readyWait } from "../../mailbox/find/ready-waits.ts";
import type { Environment } from "../environment/environment.ts";
import type { Workers } from "../pool/workers.ts";
import type { AcceptedTasks } from "./accepted-tasks.ts";
import { StrangeClaims } from "./strange-claims.ts";
import type { FinishedIds } from "./taken-ids.ts";

export type TrayEnvironment = Pick<Environment, "trays" | "settings" | "facts" | "wake" | "alerts">;

/** Minimum time that a task is held (ms): a task at a gate that no part knows must not be let go and held again without a pause. */
const HELD_MS_MIN = 1000;

interface TrayQueue {
  readonly backlog: Backlog;
  readonly accepted: AcceptedTasks;
  readonly finishedIds: Pick<FinishedIds, "add">;
  readonly workers: Pick<Workers, "ownPrefixes" | "isKnown" | "forget">;
}

const HALF_WAY: ReadonlySet<ProcessingName["stage"]> = new Set(["again", "bad", "ok", "err"]);

export class ProcessingTray {
  private readonly strange: StrangeClaims;
  /** How many tasks are claimed by workers that are no children of ours. */
  otherClaims = 0;

  constructor(
    private readonly env: TrayEnvironment,
    private readonly queue: TrayQueue,
    /** Lists the tray now; undefined when it cannot be listed. */
    private readonly list: () => string[] | undefined,
  ) {
    this.strange = new StrangeClaims(env);
    env.facts.on("task:returned", (name, isLastRun) => {
      this.admit(name, formatName(name), isLastRun);
      env.wake();
    });
  }

  /** Takes over a listing: unknown tasks that no process has claimed join the backlog. */
  take(files: readonly string[]): void {
    const { backlog, accepted } = this.queue;
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
      if (!isUnclaimed(name) || known?.file === file || accepted.isPlaced(file)) continue;
      this.admit(name, file);
      // This task replaces the inbox file with the same id, which is now a duplicate and must be looked at.
      if (known?.tray === "inbox") this.env.facts.emit("inbox:written", known.file);
    }
    this.compare(names, plainIds);
  }

  private compare(names: readonly ProcessingName[], plainIds: readonly string[]): void {
    const { accepted, finishedIds, workers } = this.queue;
    const ownPrefixes = workers.ownPrefixes();
    const present = new Map(plainIds.map((id) => [foldId(id), id]));
    const ready = new Set<string>();
    const strangeIds = new Set(plainIds);
    this.otherClaims = 0;
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
      if (!workers.isKnown(prefix)) strangeIds.add(name.id);
    }
    this.strange.update(strangeIds);
    const { vanished, lost } = accepted.compare(present, ready);
    for (const id of vanished) {
      // It may have been settled by a process that does not report to us.
      finishedIds.add(id);
      this.env.facts.emit("task:vanished", id);
    }
    if (lost.size > 0) workers.forget(lost);
  }

  /** A run waits although no worker of this pool has these tasks. */
  tellStrange(): void {
    this.strange.tell();
  }

  /** A task waits again: for its retry, or because it was given back. @returns false when it is not known here */
  putBack(file: string, delayMs: number, known: WaitingTask | undefined): boolean {
    const name = parseName(file);
    const before = known ?? this.queue.accepted.offeredOf(name?.id);
    if (name === undefined || before === undefined) return false;
    this.add(name, file, { ...before, isSelected: true }, delayMs);
    return true;
  }

  /** A worker died: the tasks that it was offered and did not claim wait again. */
  reoffer(files: readonly string[]): void {
    const { trays } = this.env;
    for (const file of files) {
      const task = this.queue.accepted.take(file);
      const name = parseName(file);
      if (task === undefined || name === undefined) continue;
      if (trays.storage.look(pathIn(trays.processing, file)) !== undefined)
        this.add(name, file, { ...task, isSelected: true }, 0);
    }
  }

  /**
   * Adds a ready or held task to the backlog.
   * @param delayMs the rest of its backoff
   * @param notBeforeMs epoch ms: it does not start earlier
   */
  private add(
    name: ProcessingName,
    file: string,
    like: WaitingTask,
    delayMs: number,
    notBeforeMs = 0,
  ): void {
    const { clock } = this.env.trays;
    const nowMs = clock.monotonicMs();
    const wallMs = clock.wallMs();
    const isHeld = name.stage === "hold";
    const leftMs = isHeld ? Math.max(delayMs, HELD_MS_MIN) : delayMs;
    const {
      dependencies: _all,
      unmet: _unmet,
      notBeforeMs: _notBefore,
      dueMs: _due,
      gate: _gate,
      ...rest
    } = like;
    this.queue.accepted.add(name.id);
    this.queue.backlog.add(
      {
        ...rest,
        // A task in work stays with its agent while that is open. One that is held may go to any.
        ...(isHeld || like.chosenAgent === undefined
          ? {}
          : { agentId: agentFirst(like.agentId, like.chosenAgent) }),
        id: name.id,
        file,
        tray: "processing",
        attempt: name.attempt,
        ...(isHeld ? { gate: name.token } : {}),
        // A landing that waited for its fix comes before others that would move the target again.
        ...(isHeld && like.finishing === 1 ? { finishing: 2 as const } : {}),
        ...(leftMs > 0 ? { dueMs: nowMs + leftMs } : {}),
        ...(notBeforeMs > wallMs ? { notBeforeMs } : {}),
      },
      wallMs,
      nowMs,
    );
  }

  /**
   * Adds a ready or held task that is new to us: a dead supervisor left it, or a worker that we cannot send messages to put it
   * back.
   * @param runsAlone the next run must have its own process
   */
  admit(name: ProcessingName, file: string, runsAlone = false): void {
    const { trays, settings } = this.env;
    if (this.queue.accepted.isPlaced(file)) return;
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
      // A task that became unreadable is still offered: the worker that claims it settles it as failed.
    }
    const match = matchAgent(task ?? {}, settings.agents);
    // A run after the last regular one needs its own process, also after a restart of the supervisor.
    const isBeyond = name.attempt > retryPolicyOf(settings, task).maxAttempts;
    const finishing = finishingOf(task ?? {});
    const told = toldOf(task ?? {});
    const waiting = {
      id: name.id,
      file,
      tray: "processing" as const,
      attempt: name.attempt,
      priority: task?.priority ?? 0,
      // It was chosen before, so it comes before waiting tasks that have not begun.
      createdAt: task?.created_at ?? 0,
      arrivedMs: 0,
      agentId: agentIdOf(match) ?? "none",
      isSelected: false,
      ...limitsOf(task ?? {}),
      ...(told === undefined ? {} : { told }),
      ...(finishing === undefined ? {} : { finishing }),
      ...(isPlannerWork(task ?? {}, match.agent) ? { isPlanner: true } : {}),
      ...(runsAlone || isBeyond ? { runsAlone: true } : {}),
    };
    const { backoff_max_ms: backoffMaxMs } = settings.retry;
    const wait = readyWait(trays, file, mtimeMs, task, backoffMaxMs);
    this.add(name, file, waiting, wait.backoffMs, wait.notBeforeMs);
  }

  private admitBatch(name: ProcessingName, file: string): void {
    const { trays, settings } = this.env;
    const facts = trays.storage.look(pathIn(trays.processing, file));
    if (facts === undefined) return;
    const { id, attempt } = name;
    const { mtimeMs, ctimeMs } = facts;
    const place = { id, file, tray: "processing", attempt, mtimeMs, ctimeMs } as const;
    const waiting = { ...waitingBatch(place), createdAt: 0, arrivedMs: 0 };
    const { backoff_max_ms: backoffMaxMs } = settings.retry;
    const { backoffMs } = readyWait(trays, file, mtimeMs, undefined, backoffMaxMs);
    this.add(name, file, waiting, backoffMs);
  }

  /** How many tasks each process runs, by the prefix of its leases; undefined when the tray cannot be listed. */
  runningByOwner(): Map<string, number> | undefined {
    const running = new Map<string, number>();
    const files = this.list();
    if (files === undefined) return undefined;
    for (const file of files) {
      const name = parseName(file);
      if (name?.stage !== "w") continue;
      const prefix = name.token.slice(0, name.token.lastIndexOf("-"));
      running.set(prefix, (running.get(prefix) ?? 0) + 1);
    }
    return running;
  }

  /** Whether a retry, a refusal or a settlement is unfinished. If its process is dead, recovery finishes it. */
  hasHalfMoves(): boolean {
    return this.hasAny((stage) => HALF_WAY.has(stage));
  }

  /** Whether any task is claimed, or being settled. */
  isBusy(): boolean {
    return this.hasAny((stage) => !isUnclaimed({ stage }));
  }

  /** True also when the tray cannot be listed. */
  private hasAny(isIt: (stage: ProcessingName["stage"]) => boolean): boolean {
    const files = this.list();
    if (files === undefined) return true;
    return files.some((file) => {
      const stage = parseName(file)?.stage;
      return stage !== undefined && isIt(stage);
    });
  }
}
