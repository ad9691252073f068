/** A read-only snapshot of a state tree, from its files alone: who runs it, what it holds, why nothing moves. */
import fs from "node:fs";
import { basename, join } from "node:path";
import type { BatchProgress } from "../core/batch.ts";
import {
  type ControlDocument,
  INITIAL_CONTROL,
  type SupervisorDocument,
  type WorkerDocument,
} from "../core/documents.ts";
import { systemCode } from "../core/errors.ts";
import { errorName, leaseOf, readInboxName, runOf } from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { judge, judgeOwner, parseOwner, type Verdict } from "../host/identity.ts";
import { readBatchProgress } from "./batch-bar.ts";
import { processingPlaces } from "./find-task.ts";
import {
  type Count,
  countNames,
  findFiles,
  readJsonObject,
  readTailLines,
  textOf,
} from "./scan.ts";

/** Reading the tail of the journal and a few records must not take longer than a blink. */
const JOURNAL_TAIL_BYTES = 256 * 1024;
const RECORDS_LOOKED_AT_MAX = 1000;
const FAILURES_SHOWN = 5;
/** Accepted tasks that are opened to see whether they can be. */
const READY_READ_MAX = 256;
/** A heartbeat older than this from a live process means that it is stuck (ms). */
const HEARTBEAT_LATE_MS = 60_000;

export interface SupervisorView {
  /** `none`: never started or its file is gone. `dead`: it died without a word. `unknown`: on another host or container. */
  state: SupervisorDocument["status"] | "dead" | "unknown" | "none";
  document: SupervisorDocument | null;
  heartbeat_age_ms: number | null;
}

export interface WorkerView {
  id: string;
  pid: number;
  slots: number;
  verdict: Verdict;
  heartbeat_age_ms: number;
  supervisor_pid: number | null;
}

export interface RunningView {
  id: string;
  /** 0 for the plain claim of a foreign worker. */
  attempt: number;
  run: string | null;
  lease: string | null;
  pid: number | null;
  verdict: Verdict;
  /** Since the attempt began; null when that left no trace. */
  age_ms: number | null;
  /** How far a batch has come; left out for a task. */
  batch?: BatchProgress;
}

export interface FailureView {
  id: string;
  code: string;
  kind: string;
  error: string;
  attempts: number;
  /** Epoch ms. */
  failed_at_ms: number;
}

/** Why nothing, or not everything, moves. */
export interface Obstacle {
  what: string;
  do: string;
}

export interface Snapshot {
  state_dir: string;
  mailbox_dir: string;
  /** ISO 8601. */
  at: string;
  supervisor: SupervisorView;
  workers: WorkerView[];
  control: ControlDocument;
  counts: {
    waiting: Count;
    ready: number;
    delayed: number;
    running: number;
    settling: number;
    done: Count;
    failed: Count;
    commands_waiting: number;
  };
  /** Accepted tasks that wait because their files cannot be read. */
  unreadable: string[];
  running: RunningView[];
  recent_failures: FailureView[];
  metrics: Record<string, unknown> | null;
  obstacles: Obstacle[];
}

/** Looks once. Throws only what the file system throws for directories that are there but cannot be read. */
export function takeSnapshot(tree: StateTree, nowMs: number): Snapshot {
  const supervisor = readSupervisor(tree, nowMs);
  const control: ControlDocument = {
    ...INITIAL_CONTROL,
    ...(readJsonObject(tree.controlState) as Partial<ControlDocument> | undefined),
  };
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
  const waiting = countNames(
    join(tree.mailbox, "inbox"),
    (name) => readInboxName(name).kind === "task",
  );
  const snapshot: Omit<Snapshot, "obstacles"> = {
    state_dir: tree.dir,
    mailbox_dir: tree.mailbox,
    at: new Date(nowMs).toISOString(),
    supervisor,
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
      commands_waiting: countNames(
        join(tree.control, "inbox"),
        (name) => readInboxName(name).kind === "task",
        1000,
      ).count,
    },
    unreadable,
    running: running.sort((a, b) => (b.age_ms ?? 0) - (a.age_ms ?? 0)),
    recent_failures: readFailures(tree),
    metrics: readJsonObject(tree.metrics) ?? null,
  };
  return { ...snapshot, obstacles: findObstacles(snapshot) };
}

/** Whether a byte can be read; true when the file has moved on meanwhile. */
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

/** Who runs this tree, judged by the process itself and not by what its file says. */
export function readSupervisor(tree: StateTree, nowMs: number): SupervisorView {
  const raw = readJsonObject(tree.supervisor);
  if (raw === undefined || typeof raw["pid"] !== "number" || typeof raw["place"] !== "string") {
    return { state: "none", document: null, heartbeat_age_ms: null };
  }
  const document = raw as unknown as SupervisorDocument;
  const heartbeatAgeMs = Math.max(
    0,
    nowMs - (fs.statSync(tree.supervisor, { throwIfNoEntry: false })?.mtimeMs ?? nowMs),
  );
  if (document.status === "stopped")
    return { state: "stopped", document, heartbeat_age_ms: heartbeatAgeMs };
  const verdict = judge({
    place: document.place,
    pid: document.pid,
    startTicks: document.start_ticks,
  });
  const state = verdict === "alive" ? document.status : verdict;
  return { state, document, heartbeat_age_ms: heartbeatAgeMs };
}

/** True when somebody looks after the tree, as far as can be told from here. */
export function isAttended(view: SupervisorView): boolean {
  return (
    view.state === "running" ||
    view.state === "draining" ||
    view.state === "stopping" ||
    view.state === "unknown"
  );
}

function readWorkers(tree: StateTree, nowMs: number): WorkerView[] {
  const { files } = findFiles(
    tree.workers,
    (name) => name.endsWith(".json"),
    RECORDS_LOOKED_AT_MAX,
  );
  return files.flatMap((file): WorkerView[] => {
    const raw = readJsonObject(file.path);
    if (raw === undefined || typeof raw["pid"] !== "number") return [];
    const worker = raw as unknown as WorkerDocument;
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

function readRunning(
  tree: StateTree,
  place: ReturnType<typeof processingPlaces>[number],
  nowMs: number,
): RunningView {
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
    ...(batch === undefined ? {} : { batch }),
  };
}

/** The latest failures: what the journal's tail names, and whatever a bounded look into the tray finds. */
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
  return latest.flatMap(([path, mtimeMs]): FailureView[] => {
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
}

/** In the order in which a person would look. */
function findObstacles(s: Omit<Snapshot, "obstacles">): Obstacle[] {
  const found: Obstacle[] = [];
  const say = (what: string, todo: string): void => void found.push({ what, do: todo });
  const backlog = s.counts.waiting.count + s.counts.ready + s.counts.delayed;
  const { state, document, heartbeat_age_ms: lateMs } = s.supervisor;
  const isOn = isAttended(s.supervisor);
  if (state === "dead")
    say(
      `the supervisor (pid ${document?.pid}) died without stopping`,
      "start it again: mailchute run; it takes back what was running",
    );
  else if (!isOn && (backlog > 0 || s.counts.running > 0))
    say("no supervisor runs on this state tree", "mailchute run");
  if (state === "unknown")
    say(
      `the supervisor runs on another host or in a container (${document?.host})`,
      "look at it there",
    );
  if (isOn && state !== "unknown" && lateMs !== null && lateMs > HEARTBEAT_LATE_MS) {
    say(
      "the supervisor is alive but its heartbeat is late: it may be stuck, or the disk full",
      "mailchute doctor; then stop and run it again",
    );
  }
  if (state === "draining")
    say("the supervisor drains: it ends when nothing is left", "wait, or mailchute stop");
  if (state === "stopping") say("the supervisor is stopping", "wait until it has ended");
  if (s.control.paused) {
    const by = s.control.paused_by === null ? "" : ` by command ${s.control.paused_by}`;
    say(
      `claiming is paused since ${s.control.paused_at ?? "an unknown time"}${by}`,
      "mailchute resume",
    );
  }
  if (s.control.replan_paused) say("replanning is paused", "mailchute control resume");
  if (s.control.max_workers === 0)
    say("the number of slots is set to 0", "mailchute set-workers N");
  const hands = s.workers.filter((worker) => worker.verdict !== "dead");
  if (isOn && state !== "unknown" && hands.length === 0 && backlog > 0) {
    say(
      "no worker process is alive",
      "it should be started again within seconds; see mailchute events",
    );
  }
  if (backlog > 0 && isOn && document !== null) sayWaiting(document, say);
  if (s.unreadable.length > 0)
    say(
      `${s.unreadable.length} accepted ${s.unreadable.length === 1 ? "task" : "tasks"} cannot be read: ${s.unreadable.slice(0, 3).join(", ")}`,
      `check the disk, and the owner and rights of the files in ${join(s.mailbox_dir, "processing")}; they are tried again by themselves`,
    );
  const orphans = s.running.filter((one) => one.verdict === "dead").length;
  if (orphans > 0)
    say(
      `${orphans} running ${orphans === 1 ? "task is" : "tasks are"} held by processes that are dead`,
      isOn ? "they are taken back within seconds" : "mailchute run, or mailchute recover",
    );
  return found;
}

function sayWaiting(document: SupervisorDocument, say: (what: string, todo: string) => void): void {
  const waiting = document.waiting ?? {};
  const more = waiting.is_complete === false ? " or more" : "";
  const tasks = (count: number, one: string, many: string): string =>
    `${count}${more} ${count === 1 && more === "" ? `task ${one}` : `tasks ${many}`}`;
  if (waiting.blocked > 0)
    say(
      tasks(
        waiting.blocked,
        "waits for others that it depends on",
        "wait for others that they depend on",
      ),
      "mailchute show ID names them",
    );
  if (waiting.delayed > 0)
    say(
      tasks(
        waiting.delayed,
        "waits for its time (not_before, backoff)",
        "wait for their time (not_before, backoff)",
      ),
      "wait, or mailchute ls --state-is waiting",
    );
  if (waiting.unmatched > 0)
    say(
      tasks(waiting.unmatched, "fits no configured agent", "fit no configured agent"),
      "configure an agent in config.yaml, see mailchute config",
    );
  if (waiting.unsettled > 0)
    say(
      tasks(
        waiting.unsettled,
        "is still being written, or does not parse",
        "are still being written, or do not parse",
      ),
      "they are refused with a reason when they stay as they are",
    );
}
