/**
 * How long a ready task in `processing/` still has to wait. The time of its file says when a backoff is over, but a wrong clock may
 * have set it. So a process never waits longer than the longest backoff, counted from when it first saw the file.
 */
import { decodeTask } from "../../codec/task-codec.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { parseName } from "../../core/names.ts";
import type { Task } from "../../core/task.ts";
import { pathIn, type Trays } from "../files/trays.ts";

/** The two waits of a ready task; both must be over. */
export interface ReadyWait {
  /** The rest of its backoff (ms). */
  backoffMs: number;
  /** The task's `not_before` (epoch ms, wall clock); 0 when it has none. */
  notBeforeMs: number;
}

/**
 * The wait of a file that this process has not seen before.
 * @param task the task in the file, if it can be read
 * @param backoffMaxMs the longest possible backoff
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
  // No backoff can have set this time, so it is corrected. Otherwise each new process would start to count again, and a supervisor
  // that dies every minute would delay the task until the time that the wrong clock set.
  const rightMs = Math.max(wallMs + backoffMs, notBeforeMs);
  if (mtimeMs > wallMs + backoffMaxMs && rightMs < mtimeMs) setTime(trays, file, rightMs);
  return { backoffMs, notBeforeMs };
}

function setTime(trays: Trays, file: string, mtimeMs: number): void {
  try {
    trays.storage.touch(pathIn(trays.processing, file), mtimeMs);
  } catch {
    // The task was claimed just now, or the file belongs to another user: each process then counts for itself.
  }
}

/** The waits of tasks that a process has seen and not claimed. For a process without a supervisor that offers tasks. */
export class ReadyWaits {
  /** By file name. `dueMs` is monotonic. */
  private readonly seen = new Map<string, { dueMs: number; notBeforeMs: number }>();

  constructor(
    private readonly trays: Trays,
    private readonly backoffMaxMs: number,
  ) {}

  /** @returns ms until the file may be claimed, 0 when it may be claimed now; undefined when it is gone */
  leftMs(file: string): number | undefined {
    const { clock } = this.trays;
    const wait = this.seen.get(file) ?? this.look(file);
    if (wait === undefined) return undefined;
    return Math.max(wait.dueMs - clock.monotonicMs(), wait.notBeforeMs - clock.wallMs(), 0);
  }

  /** The file must not be claimed for `delayMs`, whatever its time says. */
  postpone(file: string, delayMs: number): void {
    this.seen.set(file, { dueMs: this.trays.clock.monotonicMs() + delayMs, notBeforeMs: 0 });
  }

  /** Forgets a file that was claimed. If it comes back under this name, it is looked at again. */
  forget(file: string): void {
    this.seen.delete(file);
  }

  /** Forgets all files that are not in this listing. */
  keepOnly(files: ReadonlySet<string>): void {
    for (const file of this.seen.keys()) if (!files.has(file)) this.seen.delete(file);
  }

  private look(file: string): { dueMs: number; notBeforeMs: number } | undefined {
    const { trays } = this;
    const nowMs = trays.clock.monotonicMs();
    const facts = trays.storage.look(pathIn(trays.processing, file));
    if (facts === undefined) return undefined;
    // Only a file that has to wait is read and remembered. A file that is due may be claimed and given back before the next look.
    if (facts.mtimeMs <= trays.clock.wallMs()) return { dueMs: nowMs, notBeforeMs: 0 };
    const task = readTask(trays, file);
    const wait = readyWait(trays, file, facts.mtimeMs, task, this.backoffMaxMs);
    const seen = { dueMs: nowMs + wait.backoffMs, notBeforeMs: wait.notBeforeMs };
    this.seen.set(file, seen);
    return seen;
  }
}

/** Undefined for a batch or an unreadable file: then only the file's time counts. */
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
