/**
 * How long what is ready in `processing/` has to wait still. Its file's time says when a backoff is over, and a clock that was
 * wrong for a while may have set it: no process waits for it longer than the longest backoff, counted from when it first saw it.
 */
import { decodeTask } from "../codec/task-codec.ts";
import { TASK_BYTES_MAX } from "../core/limits.ts";
import { parseName } from "../core/names.ts";
import type { Task } from "../core/task.ts";
import { pathIn, type Trays } from "./trays.ts";

/** Both must be over. */
export interface ReadyWait {
  /** What is left of its backoff (ms). */
  backoffMs: number;
  /** Epoch ms, by the wall clock: the sender's wish. 0 when there is none. */
  notBeforeMs: number;
}

/**
 * The wait of a file that this process has not seen before.
 * @param task what it holds, as far as it can be read
 * @param backoffMaxMs the longest backoff there is
 */
export function readyWait(
  trays: Trays,
  file: string,
  mtimeMs: number,
  task: Pick<Task, "not_before"> | undefined,
  backoffMaxMs: number,
): ReadyWait {
  const wallMs = trays.clock.wallMs();
  const notBeforeMs = (task?.not_before ?? 0) * 1000;
  const backoffMs = Math.min(Math.max(mtimeMs - wallMs, 0), backoffMaxMs);
  // No backoff can have set this time. It is set right, so that the process after us does not count from the start again:
  // a supervisor that dies every minute would put the task off until the wrong clock's time has come.
  const rightMs = Math.max(wallMs + backoffMs, notBeforeMs);
  if (mtimeMs > wallMs + backoffMaxMs && rightMs < mtimeMs) setTime(trays, file, rightMs);
  return { backoffMs, notBeforeMs };
}

function setTime(trays: Trays, file: string, mtimeMs: number): void {
  try {
    trays.storage.touch(pathIn(trays.processing, file), mtimeMs);
  } catch {
    // Claimed just now, or another user's file: then each process counts for itself.
  }
}

/** What a process has seen to wait, and has not claimed yet: for a process that claims without being told. */
export class ReadyWaits {
  private readonly trays: Trays;
  private readonly backoffMaxMs: number;
  /** By file. `dueMs`: monotonic. */
  private readonly seen = new Map<string, { dueMs: number; notBeforeMs: number }>();

  constructor(trays: Trays, backoffMaxMs: number) {
    this.trays = trays;
    this.backoffMaxMs = backoffMaxMs;
  }

  /** @returns ms until it may be claimed, 0: now; undefined: it is gone */
  leftMs(file: string): number | undefined {
    const { clock } = this.trays;
    const wait = this.seen.get(file) ?? this.look(file);
    if (wait === undefined) return undefined;
    return Math.max(wait.dueMs - clock.monotonicMs(), wait.notBeforeMs - clock.wallMs(), 0);
  }

  /** It is not to be claimed before `delayMs` are over, whatever its time says. */
  postpone(file: string, delayMs: number): void {
    this.seen.set(file, { dueMs: this.trays.clock.monotonicMs() + delayMs, notBeforeMs: 0 });
  }

  /** It was claimed; if it ever comes back under this name, it is looked at anew. */
  forget(file: string): void {
    this.seen.delete(file);
  }

  /** Forgets what is not in this listing any more. */
  keepOnly(files: ReadonlySet<string>): void {
    for (const file of this.seen.keys()) if (!files.has(file)) this.seen.delete(file);
  }

  private look(file: string): { dueMs: number; notBeforeMs: number } | undefined {
    const { trays } = this;
    const nowMs = trays.clock.monotonicMs();
    const facts = trays.storage.look(pathIn(trays.processing, file));
    if (facts === undefined) return undefined;
    // Only what has to wait is read, and kept in mind: what is due may be claimed and given back before the next look.
    if (facts.mtimeMs <= trays.clock.wallMs()) return { dueMs: nowMs, notBeforeMs: 0 };
    const task = readTask(trays, file);
    const wait = readyWait(trays, file, facts.mtimeMs, task, this.backoffMaxMs);
    const seen = { dueMs: nowMs + wait.backoffMs, notBeforeMs: wait.notBeforeMs };
    this.seen.set(file, seen);
    return seen;
  }
}

/** Undefined when it is a batch, or cannot be read: then only its time counts. */
function readTask(trays: Trays, file: string): Task | undefined {
  const name = parseName(file);
  if (name === undefined || name.isBatch === true) return undefined;
  try {
    const { bytes } = trays.storage.read(pathIn(trays.processing, file), TASK_BYTES_MAX);
    return bytes === undefined ? undefined : decodeTask(bytes, name.id).task;
  } catch {
    return undefined;
  }
}
