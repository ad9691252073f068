/** Waits for the end of one task, and says when it can never run. Reads only. */
import { join } from "node:path";
import { decodeRecord } from "../codec/records.ts";
import { ErrTaskNotFound, ErrTaskStuck } from "../core/errors.ts";
import { RECORD_BYTES_MAX } from "../core/limits.ts";
import type { StateTree } from "../core/state-tree.ts";
import type { ErrorRecord, ResultRecord } from "../core/task.ts";
import { ChangeSignal } from "../host/change-signal.ts";
import { lookForTask, traysOf } from "../view/find-task.ts";
import { type Settled, settledOf, TaskEnds } from "../view/task-ends.ts";
import type { Why, WhyOpen } from "../view/why-open.ts";

/** How a task has ended. */
export type Ended =
  | {
      id: string;
      status: "completed";
      output: unknown;
      /** Undefined for a node of the plan without a record, and when a program has just taken the record away. */
      record: ResultRecord | undefined;
    }
  | {
      id: string;
      status: "failed";
      /** What went wrong, as a sentence. */
      error: string;
      /** A code of docs/errors.md; undefined when only the plan says that it failed. */
      code: string | undefined;
      /** For a task whose work did not land: the record of its result. */
      record: ErrorRecord | ResultRecord | undefined;
    };

export interface WaitForOptions {
  /** The wait rejects with its reason; the task continues. */
  signal?: AbortSignal | undefined;
  /**
   * Called with the reason why the task does not start, each time that the reason changes. Left out: a task that can never start,
   * however long the pool runs, is an error.
   */
  onStuck?: (why: { text: string; do?: string }) => void;
}

/** Nothing is reported earlier: a task that was just dropped, or is being moved, may start at once. */
const FIRST_MS = 500;
const AGAIN_MS = 1000;

/**
 * @param openWhy called once, when the reason why the task is open is needed
 * @throws ErrTaskNotFound, ErrTaskStuck, the reason of the signal
 */
export async function waitFor(
  tree: StateTree,
  id: string,
  { signal, onStuck }: WaitForOptions,
  openWhy: () => Promise<WhyOpen>,
): Promise<Ended> {
  signal?.throwIfAborted();
  let why: Promise<WhyOpen> | undefined;
  const look = async (): Promise<WhyOpen> => {
    why ??= openWhy();
    const opened = await why;
    await opened.refresh();
    return opened;
  };
  const ends = new TaskEnds(tree, [id], look);
  const stuck = new StuckTask(id, look);
  const change = new ChangeSignal([
    tree.dir,
    join(tree.mailbox, "outbox"),
    join(tree.mailbox, "failed"),
  ]);
  const ring = (): void => change.ring();
  signal?.addEventListener("abort", ring);
  try {
    for (;;) {
      const [settled] = await ends.take();
      signal?.throwIfAborted();
      if (settled !== undefined) return endOf(tree, settled);
      const [unknown] = ends.unknown;
      if (unknown !== undefined) throw notFound(tree, id, unknown.near);
      const reason = await stuck.look();
      if (reason !== undefined) {
        const { text, isOwn, do: todo } = reason;
        if (onStuck !== undefined) onStuck({ text, ...(todo === undefined ? {} : { do: todo }) });
        else if (isOwn === true) throw isStuck(id, reason);
      }
      await change.next(Math.max(0, stuck.inMs));
    }
  } finally {
    signal?.removeEventListener("abort", ring);
    change.close();
  }
}

/** How the task has ended; undefined while it waits, runs or lands. @throws ErrTaskNotFound */
export async function findEnd(
  tree: StateTree,
  id: string,
  openWhy: () => Promise<WhyOpen>,
): Promise<Ended | undefined> {
  const look = async (): Promise<WhyOpen> => {
    const why = await openWhy();
    await why.refresh();
    return why;
  };
  const settled = settledOf(tree, id);
  if (settled !== undefined) return endOf(tree, settled);
  if (lookForTask(tree, id) !== undefined) return undefined;
  const ends = new TaskEnds(tree, [id], look);
  const [ended] = await ends.take();
  if (ended !== undefined) return endOf(tree, ended);
  const [unknown] = ends.unknown;
  if (unknown !== undefined) throw notFound(tree, id, unknown.near);
  return undefined;
}

/** Finds out why a task does not start; a reason counts only after two looks with the same result. */
class StuckTask {
  private atMs = performance.now() + FIRST_MS;
  private before: string | undefined;
  private told: string | undefined;

  constructor(
    private readonly id: string,
    private readonly open: () => Promise<WhyOpen>,
  ) {}

  /** The time until the next look is due (ms from now). */
  get inMs(): number {
    return this.atMs - performance.now();
  }

  /** A reason that was not reported yet; undefined when there is none, or the next look is not due. */
  async look(): Promise<Why | undefined> {
    if (this.inMs > 0) return undefined;
    this.atMs = performance.now() + (this.before === undefined ? FIRST_MS : AGAIN_MS);
    const why = (await this.open()).explain(this.id);
    const text = why?.isStuck === true ? why.text : undefined;
    const isSure = text !== undefined && text === this.before;
    this.before = text;
    if (text === undefined) this.told = undefined;
    if (!isSure || text === this.told) return undefined;
    this.told = text;
    return why;
  }
}

function endOf(tree: StateTree, { id, status, error = "", record: path }: Settled): Ended {
  const record = path === undefined ? undefined : readRecord(tree, path);
  if (status === "completed") {
    const result = record?.status === "completed" ? record : undefined;
    return { id, status, output: result?.output ?? null, record: result };
  }
  const ofPlan = path === undefined ? undefined : "ErrLanding";
  return { id, status, error, code: record?.status === "failed" ? record.code : ofPlan, record };
}

/** Undefined when the record is gone: a consumer may take records away. */
function readRecord(tree: StateTree, path: string): ErrorRecord | ResultRecord | undefined {
  try {
    const { bytes } = traysOf(tree).storage.read(path, RECORD_BYTES_MAX);
    return bytes === undefined ? undefined : decodeRecord(bytes)?.record;
  } catch {
    return undefined;
  }
}

function notFound({ dir }: StateTree, id: string, near: string | null): ErrTaskNotFound {
  return new ErrTaskNotFound(`no tray and no plan has a task ${JSON.stringify(id)}`, {
    id,
    path: dir,
    phase: "wait",
    ...(near === null ? {} : { hint: `did you mean ${near}?` }),
  });
}

function isStuck(id: string, why: Why): ErrTaskStuck {
  return new ErrTaskStuck(`${id} does not start: it ${why.text}`, {
    id,
    phase: "wait",
    ...(why.do === undefined ? {} : { hint: why.do }),
  });
}
