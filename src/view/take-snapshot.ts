/** Takes a snapshot of a state tree, from its files alone. Reads only. */
import fs from "node:fs";
import { basename, join } from "node:path";
import { failedLinesText } from "../core/batch.ts";
import { compact } from "../core/compact.ts";
import { systemCode } from "../core/errors.ts";
import { errorName, leaseOf, readInboxName, runOf } from "../core/names.ts";
import { controlOf, workerOf } from "../core/saved-documents.ts";
import type { StateTree } from "../core/state-tree.ts";
import { judge, judgeOwner, parseOwner } from "../host/identity.ts";
import { livesElsewhere } from "../host/tree-id.ts";
import { type BatchWithFailures, batchesWithFailures, readBatchProgress } from "./batches.ts";
import { liveWaiting } from "./blocked-tasks.ts";
import { lookForRecord, processingPlaces, type TaskPlace } from "./find-task.ts";
import { findObstacles } from "./obstacles.ts";
import { countNames, findFiles, readJsonObject, readTailLines, textOf } from "./scan.ts";
import type { FailureView, RunningView, Snapshot, SupervisorView, WorkerView } from "./snapshot.ts";
import { readSupervisor } from "./supervisor.ts";

/** Reading the tail of the journal and a few records must not take longer than a blink. */
const JOURNAL_TAIL_BYTES = 256 * 1024;
const RECORDS_LOOKED_AT_MAX = 1000;
const FAILURES_SHOWN = 5;
const COMMANDS_COUNTED_MAX = 1000;
/** What was dropped again is told for so long (ms). */
const DROPPED_AGAIN_MS = 24 * 60 * 60 * 1000;
/** Accepted tasks that are opened to see whether they can be. */
const READY_READ_MAX = 256;

/** Looks once. Throws only what the file system throws for directories that are there but cannot be read. */
export function takeSnapshot(tree: StateTree, nowMs: number): Snapshot {
  const told = readSupervisor(tree, nowMs);
  const control = controlOf(readJsonObject(tree.controlState));
  const places = processingPlaces(tree);
  let delayed = 0;
  let ready = 0;
  const unreadable: string[] = [];
  for (const place of places) {
    if (place.state !== "ready") continue;
    const mtimeMs = fs.statSync(place.path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (mtimeMs > nowMs) delayed++;
    else ready++;
    if (delayed + ready <= READY_READ_MAX && !isReadable(place.path)) unreadable.push(place.id);
  }
  const running = places
    .filter((place) => place.state === "running")
    .map((place) => readRunning(tree, place, nowMs));
  const isTask = (name: string): boolean => readInboxName(name).kind === "task";
  const waiting = countNames(join(tree.mailbox, "inbox"), isTask);
  const metrics = readJsonObject(tree.metrics) ?? null;
  const snapshot: Omit<Snapshot, "obstacles"> = {
    state_dir: tree.dir,
    mailbox_dir: tree.mailbox,
    at: new Date(nowMs).toISOString(),
    supervisor: withLiveWaiting(tree, told, waiting.count),
    workers: readWorkers(tree, nowMs),
    control,
    counts: {
      waiting: {
        count: waiting.count + places.filter((p) => p.name?.stage === "again").length,
        is_exact: waiting.is_exact,
      },
      ready,
      delayed,
      running: running.length,
      settling: places.filter((place) => place.state === "settling").length,
      done: countNames(join(tree.mailbox, "outbox"), (name) => name.endsWith("_result.json")),
      failed: countNames(join(tree.mailbox, "failed"), (name) => name.endsWith("_error.json")),
      commands_waiting: countNames(join(tree.control, "inbox"), isTask, COMMANDS_COUNTED_MAX).count,
    },
    unreadable,
    running: running.sort((a, b) => (b.age_ms ?? 0) - (a.age_ms ?? 0)),
    recent_failures: readFailures(tree),
    metrics,
    dropped_again: readDroppedAgain(tree, metrics, nowMs),
  };
  return {
    ...snapshot,
    obstacles: findObstacles(snapshot, isNewer(tree.roadmap, tree.supervisor)),
  };
}

/** The supervisor's own words on what waits may be old by now. */
function withLiveWaiting(
  tree: StateTree,
  told: SupervisorView,
  inboxCount: number,
): SupervisorView {
  const { document } = told;
  if (document?.waiting === undefined) return told;
  const waiting = liveWaiting(tree, document.waiting, inboxCount);
  return { ...told, document: { ...document, waiting } };
}

/** Null, too, when the task has run since then. */
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

function isNewer(path: string, than: string): boolean {
  return mtimeMsOf(path) > mtimeMsOf(than);
}

/** 0 where nothing can be seen: a link to itself, say, must not hide all the rest. */
function mtimeMsOf(path: string): number {
  try {
    return fs.statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}

/** Whether a byte can be read; also true when the file has moved on. */
function isReadable(path: string): boolean {
  try {
    const fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
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
    const worker = workerOf(readJsonObject(file.path));
    if (worker === undefined || livesElsewhere(worker, tree.dir)) return [];
    return [
      {
        id: worker.id ?? basename(file.name, ".json"),
        pid: worker.pid,
        slots: worker.slots ?? 0,
        verdict: judge({
          place: String(worker.place),
          pid: worker.pid,
          startTicks: Number(worker.start_ticks),
        }),
        heartbeat_age_ms: Math.max(0, Math.round(nowMs - file.mtimeMs)),
        supervisor_pid: worker.supervisor_pid ?? null,
      },
    ];
  });
}

function readRunning(tree: StateTree, place: TaskPlace, nowMs: number): RunningView {
  const { name } = place;
  if (name === undefined) {
    return {
      id: place.id,
      attempt: 0,
      run: null,
      lease: null,
      pid: null,
      verdict: "unknown",
      age_ms: null,
    };
  }
  const run = runOf(name);
  const batch = name.isBatch === true ? readBatchProgress(join(tree.runs, run)) : undefined;
  // The claim's own mtime is its heartbeat; the run's directory is made when the attempt begins.
  const made = fs.statSync(join(tree.runs, run), { throwIfNoEntry: false });
  const bornMs = made === undefined ? undefined : made.birthtimeMs || made.ctimeMs;
  return {
    id: place.id,
    attempt: name.attempt,
    run: made === undefined ? null : run,
    lease: leaseOf(name),
    pid: parseOwner(name.token)?.pid ?? null,
    verdict: judgeOwner(name.token),
    age_ms: bornMs === undefined ? null : Math.max(0, Math.round(nowMs - bornMs)),
    ...compact({ batch }),
  };
}

/** The latest failures: those that the end of the journal names, and those that a bounded look into the tray finds. */
function readFailures(tree: StateTree): FailureView[] {
  const dir = join(tree.mailbox, "failed");
  const { files, isAll } = findFiles(
    dir,
    (name) => name.endsWith("_error.json"),
    RECORDS_LOOKED_AT_MAX,
  );
  const byPath = new Map(files.map((file) => [file.path, file.mtimeMs]));
  if (!isAll) {
    for (const line of readTailLines(tree.events, JOURNAL_TAIL_BYTES)) {
      if (!line.includes('"failed"') && !line.includes('"quarantined"')) continue;
      const id = /"task_id":"([^"\\/]+)"/.exec(line)?.[1];
      if (id === undefined) continue;
      const path = join(dir, errorName(id));
      const stats = fs.statSync(path, { throwIfNoEntry: false });
      if (stats !== undefined) byPath.set(path, stats.mtimeMs);
    }
  }
  const latest = [...byPath].sort((a, b) => b[1] - a[1]).slice(0, FAILURES_SHOWN);
  const batches = batchesWithFailures(tree).slice(0, FAILURES_SHOWN).map(failureOfBatch);
  const failures = latest.flatMap(([path, mtimeMs]): FailureView[] => {
    const record = readJsonObject(path);
    if (record === undefined) return [];
    return [
      {
        id: textOf(record["task_id"], basename(path, "_error.json")),
        code: textOf(record["code"]),
        kind: textOf(record["kind"]),
        error: textOf(record["error"]),
        attempts: Number(record["attempts"] ?? 0),
        failed_at_ms:
          typeof record["failed_at"] === "number"
            ? record["failed_at"] * 1000
            : Math.round(mtimeMs),
      },
    ];
  });
  return [...failures, ...batches]
    .sort((a, b) => b.failed_at_ms - a.failed_at_ms)
    .slice(0, FAILURES_SHOWN);
}

/** A batch that completed with failed lines: a person looks here for what went wrong. */
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
