/** Takes snapshots of a state tree, from its files alone. Reads only. */
import fs from "node:fs";
import { join } from "node:path";
import { failedLinesText } from "../core/batch.ts";
import type { WaitingCounts } from "../core/documents.ts";
import { systemCode } from "../core/errors.ts";
import { isMisnamed, readInboxName } from "../core/names.ts";
import { controlOf, workerOf } from "../core/saved-documents.ts";
import type { StateTree } from "../core/state-tree.ts";
import { readDocument } from "../host/documents.ts";
import { judgeSaved } from "../host/identity.ts";
import { NAMED, openToRead, tryStatOf } from "../host/regular-file.ts";
import { livesElsewhere } from "../host/tree-id.ts";
import { QuestionStore } from "../questions/question-store.ts";
import { type BatchWithFailures, batchesWithFailures, batchOfResults } from "./batches.ts";
import { liveWaiting } from "./blocked-tasks.ts";
import { chooseFiles, chosenNow } from "./choose-files.ts";
import { failureIn } from "./failure-causes.ts";
import { lookForRecord, processingPlaces, type TaskPlace } from "./find-task.ts";
import { Kept, stampOf } from "./kept.ts";
import { findObstacles } from "./obstacles.ts";
import { RunningTasks } from "./running-tasks.ts";
import { countNames, findFiles, readJsonObject } from "./scan.ts";
import { SkippedCount } from "./skipped-count.ts";
import type { FailureView, Snapshot, SupervisorView, WorkerView } from "./snapshot.ts";
import { isConfigNewer, readSupervisor } from "./supervisor.ts";
import { TrayCount } from "./tray-count.ts";

const RECORDS_LOOKED_AT_MAX = 1000;
const FAILURES_SHOWN = 5;
const COMMANDS_COUNTED_MAX = 1000;
/** How long a resent task is reported (ms). */
const DROPPED_AGAIN_MS = 24 * 60 * 60 * 1000;
/** How many accepted tasks are opened to check that they can be read. */
const READY_READ_MAX = 256;
/** How long that check holds (ms): a disk that works again changes no file, so nothing else shows it. */
const READY_AGAIN_MS = 5000;

const FOLDERS = ["processing", "inbox", "outbox", "failed"] as const;

/** Takes one snapshot. @throws like `SnapshotReader.next` */
export function takeSnapshot(tree: StateTree, nowMs: number): Snapshot {
  const reader = new SnapshotReader(tree);
  try {
    return reader.next(nowMs);
  } finally {
    reader.close();
  }
}

/**
 * Takes snapshots of one tree, several a second if necessary. It reads again only what has changed, and continues to count large
 * trays where the snapshot before stopped.
 */
export class SnapshotReader {
  readonly runs: RunningTasks;
  /** The files that the last snapshot found in `processing/`. */
  processing: Accepted = { places: [], dueMs: new Map(), unreadable: [] };
  /** The plan was saved after the last report of the supervisor. */
  isPlanNewer = false;
  private readonly questions: QuestionStore;
  private readonly inbox: TrayCount;
  private readonly outbox: TrayCount;
  private readonly failed: TrayCount;
  private readonly skipped: SkippedCount;
  private readonly accepted = new Kept<Accepted>();
  private readonly waiting = new Kept<WaitingCounts>();
  private readonly failures = new Kept<FailureView[]>();

  /** @param namesPerLook how many more names of a large tray each snapshot after the first one counts */
  constructor(
    private readonly tree: StateTree,
    namesPerLook?: number,
  ) {
    this.runs = new RunningTasks(tree);
    this.questions = new QuestionStore(tree.dir);
    this.inbox = new TrayCount(tree, "waiting", misnamedOf, namesPerLook);
    this.outbox = new TrayCount(tree, "done", batchOfResults, namesPerLook);
    this.skipped = new SkippedCount(tree);
    this.failed = new TrayCount(tree, "failed", undefined, namesPerLook, this.skipped);
  }

  /** Closes the listings that stay open between two snapshots. */
  close(): void {
    for (const tray of [this.inbox, this.outbox, this.failed]) tray.close();
  }

  /** Looks once. Throws only for directories that exist but cannot be read. */
  next(nowMs: number): Snapshot {
    const { tree } = this;
    const stamps = FOLDERS.map((name) => stampOf(join(tree.mailbox, name)));
    this.processing = this.accepted.get(`${stamps[0]} ${Math.floor(nowMs / READY_AGAIN_MS)}`, () =>
      readAccepted(tree),
    );
    const { places, dueMs, unreadable } = this.processing;
    const delayed = [...dueMs.values()].filter((ms) => ms > nowMs).length;
    const running = this.runs.look(places, nowMs);
    const elsewhere = running.filter(({ machine }) => machine !== undefined).length;
    const waiting = this.inbox.look();
    const metrics = readJsonObject(tree.metrics) ?? null;
    const snapshot: Omit<Snapshot, "obstacles"> = {
      state_dir: tree.dir,
      mailbox_dir: tree.mailbox,
      at: new Date(nowMs).toISOString(),
      supervisor: this.readSupervisor(nowMs, waiting.count, stamps.join(" ")),
      workers: readWorkers(tree, nowMs),
      control: controlOf(readJsonObject(tree.controlState)),
      counts: {
        waiting: {
          ...waiting,
          count: waiting.count + places.filter((p) => p.name?.stage === "again").length,
        },
        ready: dueMs.size - delayed,
        delayed,
        held: places.filter((place) => place.state === "held").length - elsewhere,
        running: running.length - elsewhere,
        elsewhere,
        settling: places.filter((place) => place.state === "settling").length,
        done: this.outbox.look(),
        ...this.countFailed(),
        commands_waiting: countCommands(tree),
      },
      unreadable,
      misnamed: [...this.inbox.picked].sort(),
      running,
      recent_failures: this.recentFailures(stamps.slice(2).join(" ")),
      metrics,
      dropped_again: readDroppedAgain(tree, metrics, nowMs),
      questions: this.questions.open(nowMs).map(({ id, question, who, expects, asked_at_ms }) => ({
        id,
        question,
        who,
        expects,
        asked_at_ms,
      })),
    };
    if (isConfigNewer(tree, snapshot.supervisor)) snapshot.config_newer = true;
    this.isPlanNewer = mtimeMsOf(tree.roadmap) > mtimeMsOf(tree.supervisor);
    return { ...snapshot, obstacles: findObstacles(snapshot, this.isPlanNewer) };
  }

  private countFailed(): Pick<Snapshot["counts"], "failed" | "skipped"> {
    const all = this.failed.look();
    const skipped = all.count === 0 ? { count: 0, is_exact: true } : this.skipped.look();
    const count = Math.max(0, all.count - skipped.count);
    return { failed: { ...all, count, is_exact: all.is_exact && skipped.is_exact }, skipped };
  }

  /** The supervisor, with its report of waiting tasks, which may be old by now. */
  private readSupervisor(nowMs: number, inboxCount: number, stamps: string): SupervisorView {
    const told = readSupervisor(this.tree, nowMs);
    const { document } = told;
    if (document?.waiting === undefined) return told;
    const { waiting: then } = document;
    const waiting = this.waiting.get(`${stamps} ${stampOf(this.tree.supervisor)}`, () =>
      liveWaiting(this.tree, then, inboxCount),
    );
    return { ...told, document: { ...document, waiting } };
  }

  /** The latest failures, including batches with failed lines: a person looks here to see what went wrong. */
  private recentFailures(stamps: string): FailureView[] {
    const { picked } = this.outbox;
    return this.failures.get(`${stamps} ${picked.length}`, () => {
      const batches = batchesWithFailures(this.tree, picked).slice(0, FAILURES_SHOWN);
      return [...readFailures(this.tree), ...batches.map(failureOfBatch)]
        .sort((a, b) => b.failed_at_ms - a.failed_at_ms)
        .slice(0, FAILURES_SHOWN);
    });
  }
}

function misnamedOf(name: string): string | undefined {
  return isMisnamed(name) ? name : undefined;
}

function countCommands(tree: StateTree): number {
  const isCommand = (name: string): boolean => readInboxName(name).kind === "task";
  return countNames(join(tree.control, "inbox"), isCommand, COMMANDS_COUNTED_MAX).count;
}

/** The files in `processing/`. */
export interface Accepted {
  places: TaskPlace[];
  /** When each task that no worker has claimed is due (epoch ms), by the path of its file. */
  dueMs: ReadonlyMap<string, number>;
  /** Ids of those tasks that cannot be read. */
  unreadable: string[];
}

function readAccepted(tree: StateTree): Accepted {
  const places = processingPlaces(tree);
  const ready = places.filter((place) => place.state === "ready");
  return {
    places,
    dueMs: new Map(ready.map(({ path }) => [path, mtimeMsOf(path)])),
    unreadable: ready
      .slice(0, READY_READ_MAX)
      .flatMap(({ id, path }) => (isReadable(path) ? [] : [id])),
  };
}

/** Null also when the task has run since then. */
function readDroppedAgain(
  tree: StateTree,
  metrics: Snapshot["metrics"],
  nowMs: number,
): Snapshot["dropped_again"] {
  const last = metrics?.["last_duplicate"] as { task_id?: unknown; t?: unknown } | null | undefined;
  const { task_id: id, t: atMs } = last ?? {};
  if (typeof id !== "string" || typeof atMs !== "number" || nowMs - atMs > DROPPED_AGAIN_MS)
    return null;
  const record = lookForRecord(tree, id);
  if (record?.state !== "done" && record?.state !== "failed") return null;
  return mtimeMsOf(record.path) > atMs ? null : { id, state: record.state, at_ms: atMs };
}

/** 0 when the path cannot be looked at: a link to itself, for example, must not hide everything else. */
function mtimeMsOf(path: string): number {
  return tryStatOf(path)?.mtimeMs ?? 0;
}

/** Whether a byte can be read; also true when the file has moved on. */
function isReadable(path: string): boolean {
  try {
    const fd = openToRead(path, NAMED);
    try {
      fs.readSync(fd, Buffer.alloc(1));
    } finally {
      fs.closeSync(fd);
    }
    return true;
  } catch (error) {
    return systemCode(error) === "ENOENT";
  }
}

function readWorkers(tree: StateTree, nowMs: number): WorkerView[] {
  const { files } = findFiles(
    tree.workers,
    (name) => name.endsWith(".json"),
    RECORDS_LOOKED_AT_MAX,
  );
  return files.flatMap((file): WorkerView[] => {
    const worker = readDocument(file.path, workerOf);
    if (worker === undefined || livesElsewhere(worker, tree.dir)) return [];
    return [
      {
        id: worker.id,
        pid: worker.pid,
        slots: worker.slots,
        verdict: judgeSaved(worker),
        heartbeat_age_ms: Math.max(0, Math.round(nowMs - file.mtimeMs)),
        supervisor_pid: worker.supervisor_pid ?? null,
      },
    ];
  });
}

/** The latest records of failed tasks. */
function readFailures(tree: StateTree): FailureView[] {
  const wanted = { limit: FAILURES_SHOWN, lookedAtMax: RECORDS_LOOKED_AT_MAX };
  const { files } = chosenNow(chooseFiles(tree, "failed", wanted));
  return files.flatMap((file) => {
    const record = readJsonObject(file.path);
    return record === undefined ? [] : [failureIn(record, file)];
  });
}

function failureOfBatch({ id, counts, settledMs }: BatchWithFailures): FailureView {
  return {
    id,
    code: "",
    kind: "lines",
    error: failedLinesText(counts) ?? "",
    attempts: 1,
    failed_at_ms: Math.round(settledMs),
  };
}
