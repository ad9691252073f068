/** The contents of `processing/`: which process runs what, and tasks that wait there although this supervisor did not put them there. */
import { decodeTask } from "../../codec/task-codec.ts";
import type { Backlog } from "../../core/backlog.ts";
import { systemCode } from "../../core/errors.ts";
import { finishingOf } from "../../core/landing.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { isPlannerWork, matchAgent } from "../../core/matching.ts";
import {
  formatName,
  isUnclaimed,
  type ProcessingName,
  parseName,
  parsePlainClaim,
} from "../../core/names.ts";
import { retryPolicyOf } from "../../core/outcome.ts";
import type { Task } from "../../core/task.ts";
import { limitsOf, toldOf, waitingBatch } from "../../core/waiting-task.ts";
import { pathIn } from "../../mailbox/files/trays.ts";
import { readyWait } from "../../mailbox/find/ready-waits.ts";
import type { Environment } from "../environment/environment.ts";
import type { Workers } from "../pool/workers.ts";
import type { Dispatcher } from "./dispatcher.ts";

export type TrayEnvironment = Pick<Environment, "trays" | "settings" | "facts" | "wake">;

const HALF_WAY: ReadonlySet<ProcessingName["stage"]> = new Set(["again", "bad", "ok", "err"]);

export class ProcessingTray {
  constructor(
    private readonly env: TrayEnvironment,
    private readonly backlog: Backlog,
    private readonly dispatcher: Dispatcher,
    private readonly workers: Pick<Workers, "ownPrefixes">,
    /** Lists the tray now; undefined when it cannot be listed. */
    private readonly list: () => string[] | undefined,
  ) {
    env.facts.on("task:returned", (name, isLastRun) => {
      this.admit(name, formatName(name), isLastRun);
      env.wake();
    });
  }

  /** Takes over a listing: unknown tasks that no process has claimed join the backlog. */
  take(files: readonly string[]): void {
    const { backlog, dispatcher, workers } = this;
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
      if (!isUnclaimed(name) || known?.file === file || dispatcher.isKnown(file)) continue;
      this.admit(name, file);
      // This task replaces the inbox file with the same id, which is now a duplicate and must be looked at.
      if (known?.tray === "inbox") this.env.facts.emit("inbox:written", known.file);
    }
    dispatcher.onListing(names, plainIds, workers.ownPrefixes());
  }

  /**
   * Adds a ready or held task that is new to us: a dead supervisor left it, or a worker that we cannot send messages to put it
   * back.
   * @param runsAlone the next run must have its own process
   */
  admit(name: ProcessingName, file: string, runsAlone = false): void {
    const { dispatcher } = this;
    const { trays, settings } = this.env;
    if (dispatcher.isKnown(file)) return;
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
    const { agent } = matchAgent(task ?? {}, settings.agents);
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
      agentId: agent?.name ?? "none",
      isSelected: false,
      ...limitsOf(task ?? {}),
      ...(told === undefined ? {} : { told }),
      ...(finishing === undefined ? {} : { finishing }),
      ...(isPlannerWork(task ?? {}, agent) ? { isPlanner: true } : {}),
      ...(runsAlone || isBeyond ? { runsAlone: true } : {}),
    };
    const { backoff_max_ms: backoffMaxMs } = settings.retry;
    const wait = readyWait(trays, file, mtimeMs, task, backoffMaxMs);
    dispatcher.addReady(name, file, waiting, wait.backoffMs, wait.notBeforeMs);
  }

  private admitBatch(name: ProcessingName, file: string): void {
    const { dispatcher } = this;
    const { trays, settings } = this.env;
    const facts = trays.storage.look(pathIn(trays.processing, file));
    if (facts === undefined) return;
    const { id, attempt } = name;
    const { mtimeMs, ctimeMs } = facts;
    const place = { id, file, tray: "processing", attempt, mtimeMs, ctimeMs } as const;
    const waiting = { ...waitingBatch(place), createdAt: 0, arrivedMs: 0 };
    const { backoff_max_ms: backoffMaxMs } = settings.retry;
    const { backoffMs } = readyWait(trays, file, mtimeMs, undefined, backoffMaxMs);
    dispatcher.addReady(name, file, waiting, backoffMs);
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
