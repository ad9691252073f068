/** What stands in `processing/`: who runs what, and tasks that wait there although this supervisor did not put them there. */
import { decodeTask } from "../../codec/task-codec.ts";
import type { Backlog } from "../../core/backlog.ts";
import { systemCode } from "../../core/errors.ts";
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
import { waitingBatch } from "../../core/waiting-task.ts";
import { readyWait } from "../../mailbox/ready-waits.ts";
import { pathIn } from "../../mailbox/trays.ts";
import type { Environment } from "../environment/environment.ts";
import type { Workers } from "../pool/workers.ts";
import type { Dispatcher } from "./dispatcher.ts";

export type TrayEnvironment = Pick<Environment, "trays" | "settings" | "facts" | "wake">;

export class ProcessingTray {
  private readonly env: TrayEnvironment;
  private readonly backlog: Backlog;
  private readonly dispatcher: Dispatcher;
  private readonly workers: Pick<Workers, "ownPrefixes">;
  /** The names in the tray, now; undefined when it cannot be listed. */
  private readonly list: () => string[] | undefined;

  constructor(
    env: TrayEnvironment,
    backlog: Backlog,
    dispatcher: Dispatcher,
    workers: Pick<Workers, "ownPrefixes">,
    list: () => string[] | undefined,
  ) {
    this.env = env;
    this.backlog = backlog;
    this.dispatcher = dispatcher;
    this.workers = workers;
    this.list = list;
    env.facts.on("task:returned", (name, isLastRun) => {
      this.admit(name, formatName(name), isLastRun);
      env.wake();
    });
  }

  /** Takes over a listing: what no process has claimed and is unknown joins the backlog. */
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
      // It takes the place of the file that waits under this id; that one is a duplicate now, to be dealt with.
      if (known?.tray === "inbox") this.env.facts.emit("inbox:written", known.file);
    }
    dispatcher.onListing(names, plainIds, workers.ownPrefixes());
  }

  /**
   * A ready or held task that is new to us: left by a dead supervisor, or put back by a worker we cannot speak to.
   * @param runsAlone the next run is to have a process of its own
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
    // Beyond its last run it has one in a process that it does not share, also after a restart of the supervisor.
    const isBeyond = name.attempt > retryPolicyOf(settings, task).maxAttempts;
    const waiting = {
      id: name.id,
      file,
      tray: "processing" as const,
      attempt: name.attempt,
      priority: task?.priority ?? 0,
      // It was chosen before: it goes on before what waits is begun.
      createdAt: task?.created_at ?? 0,
      arrivedMs: 0,
      agentId: agent?.name ?? "none",
      isSelected: false,
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

  /** How much each process runs, by what its leases begin with; undefined when the tray cannot be listed. */
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

  /** Whether a retry or a refusal stands half-way; recovery brings it to its end. */
  hasHalfMoves(): boolean {
    return this.hasAny((stage) => stage === "again" || stage === "bad");
  }

  /** Whether anything is claimed, or being settled. */
  isBusy(): boolean {
    return this.hasAny((stage) => !isUnclaimed({ stage }));
  }

  /** True, too, when the tray cannot be listed. */
  private hasAny(isIt: (stage: ProcessingName["stage"]) => boolean): boolean {
    const files = this.list();
    if (files === undefined) return true;
    return files.some((file) => {
      const stage = parseName(file)?.stage;
      return stage !== undefined && isIt(stage);
    });
  }
}
