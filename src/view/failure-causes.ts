/** The latest failures, without skipped tasks, grouped by their cause. Reads each record once, and a bounded number of records in one look. */
import { headlineOf } from "../core/outcome.ts";
import { isSkippedKind } from "../core/skipped.ts";
import type { StateTree } from "../core/state-tree.ts";
import { type Cause, type Failure, groupByCause } from "./causes.ts";
import { type ChosenFile, chooseFiles, chosenNow } from "./choose-files.ts";
import { stampOf } from "./kept.ts";
import { readJsonObject, textOf } from "./scan.ts";
import type { FailureView } from "./snapshot.ts";
import { titleOfRecord } from "./task-rows.ts";

/** At most so many of the latest failures are grouped. */
const FAILURES_MAX = 1000;
const LOOKED_AT_MAX = 2000;
/** How many records one look reads (60 µs each). */
const READS_MAX = 200;
/** The least time between two looks at a changed tray (ms). */
const AGAIN_MS = 1000;
const BYTES_MAX = 1024 * 1024;
const TITLE_CHARS_MAX = 120;

export interface FailureCauses {
  /** The cause with the most failures first. */
  causes: Cause[];
  /** The beginnings of the titles of these tasks, by id; those without a title are left out. */
  titles: Record<string, string>;
  /** How many failures are in these groups. */
  grouped: number;
  /** False when the tray holds more than these. */
  is_all: boolean;
}

export class FailureCausesReader {
  private known = new Map<string, Titled>();
  private stamp = "";
  private lookedAtMs = Number.NEGATIVE_INFINITY;
  private isComplete = false;
  private last: FailureCauses = { causes: [], titles: {}, grouped: 0, is_all: true };

  constructor(private readonly tree: StateTree) {}

  /** @throws ErrIo when the tray exists and cannot be read */
  look(): FailureCauses {
    const stamp = stampOf(`${this.tree.mailbox}/failed`);
    if (stamp === this.stamp && this.isComplete) return this.last;
    const nowMs = performance.now();
    if (this.isComplete && nowMs - this.lookedAtMs < AGAIN_MS) return this.last;
    this.lookedAtMs = nowMs;
    this.stamp = stamp;
    this.read();
    return this.last;
  }

  private read(): void {
    const wanted = { limit: FAILURES_MAX, lookedAtMax: LOOKED_AT_MAX };
    const { files, next, isAll } = chosenNow(chooseFiles(this.tree, "failed", wanted));
    const known = new Map<string, Titled>();
    let reads = 0;
    for (const file of files) {
      // A record is never changed in its place: a new record has another time.
      const key = `${file.name} ${file.mtimeMs}`;
      const before = this.known.get(key);
      if (before === undefined && ++reads > READS_MAX) continue;
      const failure = before ?? readFailure(file);
      if (failure !== undefined) known.set(key, failure);
    }
    this.isComplete = reads <= READS_MAX;
    this.known = known;
    const failures = [...known.values()]
      .filter(({ kind }) => !isSkippedKind(kind))
      .sort((a, b) => a.atMs - b.atMs);
    this.last = {
      causes: groupByCause(failures),
      titles: Object.fromEntries(
        failures.flatMap(({ id, title }) => (title === "" ? [] : [[id, title]])),
      ),
      grouped: failures.length,
      is_all: this.isComplete && isAll && next === undefined,
    };
  }
}

type Titled = Failure & { title: string };

function readFailure(file: ChosenFile): Titled | undefined {
  const record = readJsonObject(file.path, BYTES_MAX);
  if (record === undefined) return undefined;
  const { id, kind, error, failed_at_ms: atMs } = failureIn(record, file);
  const title = headlineOf(titleOfRecord(record)).slice(0, TITLE_CHARS_MAX);
  return { id, kind: kind || "unknown", error, title, atMs };
}

/** How a task has failed, from its record. */
export function failureIn(
  record: Record<string, unknown>,
  { id, mtimeMs }: ChosenFile,
): FailureView {
  const { failed_at: at } = record;
  return {
    id: textOf(record["task_id"], id),
    code: textOf(record["code"]),
    kind: textOf(record["kind"]),
    error: textOf(record["error"]),
    attempts: Number(record["attempts"] ?? 0),
    failed_at_ms: typeof at === "number" ? at * 1000 : Math.round(mtimeMs),
  };
}
