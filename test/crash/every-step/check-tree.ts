/** Compares a whole state tree with the invariants of the protocol. Returns what is wrong, in words. */
import fs from "node:fs";
import { join } from "node:path";
import { decodeRecord } from "../../../src/codec/records.ts";
import type { SupervisorDocument } from "../../../src/core/documents.ts";
import { leaseOfLine, parseName } from "../../../src/core/names.ts";
import type { ErrorRecord, ResultRecord } from "../../../src/core/task.ts";
import { sweepAll } from "../../../src/mailbox/clean/sweep.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { checkBatchEnd, checkBatchInstant } from "./check-batches.ts";
import { type Book, type Journals, type Place, type Promised, readLines } from "./place.ts";

type Record_ = (ResultRecord | ErrorRecord) & { task?: unknown };

interface Seen {
  inbox: string[];
  processing: string[];
  outbox: string[];
  failed: string[];
}

function list(path: string): string[] {
  try {
    return fs.readdirSync(path).sort();
  } catch {
    return [];
  }
}

function see(dir: string): Seen {
  return {
    inbox: list(join(dir, "inbox")),
    processing: list(join(dir, "processing")),
    outbox: list(join(dir, "outbox")),
    failed: list(join(dir, "failed")),
  };
}

function read(path: string): Buffer | undefined {
  try {
    return fs.readFileSync(path);
  } catch {
    return undefined;
  }
}

function isWholeJson(path: string): boolean {
  try {
    const value: unknown = JSON.parse(fs.readFileSync(path, "utf8"));
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}

const EMPTY = Buffer.alloc(0);
const inode = (path: string): number | undefined =>
  fs.statSync(path, { throwIfNoEntry: false })?.ino;

/**
 * What is true at any instant, also in the moment after a crash.
 * @param isLossy after errors: whoever could not look may have sent a task a second time, which is dropped
 */
export function checkInstant(place: Place, book: Book, isLossy = false): string[] {
  const faults: string[] = [];
  const dir = place.tree.mailbox;
  const seen = see(dir);
  const acks = readLines(place.acks);
  for (const [id, promised] of Object.entries(book.tasks)) {
    const isSafe = promised.isSafe || acks.includes(`submit ${id}`);
    const waits = seen.inbox.includes(`${id}.json`);
    const live = seen.processing.filter(
      (file) => parseName(file)?.id === id && parseName(file)?.stage !== "bad",
    );
    const hasResult = seen.outbox.includes(`${id}_result.json`);
    const hasError = seen.failed.includes(`${id}_error.json`);
    if (hasResult && hasError) faults.push(`${id}: both a result and an error`);
    // A retry that died half-way is done again, also when what it brought back goes its way already: a duplicate, dropped.
    const isRetrying = live.some((file) => parseName(file)?.stage === "again");
    if (live.length > (isRetrying ? 2 : 1))
      faults.push(`${id}: ${live.length} files in processing: ${live.join(", ")}`);
    const count = (waits ? 1 : 0) + live.length + (hasResult ? 1 : 0) + (hasError ? 1 : 0);
    const isSwept = book.sweptIds?.includes(id) === true;
    if (isSafe && count === 0 && !isSwept && !isAside(place, id)) faults.push(`${id}: lost`);
    if (hasResult || hasError) {
      const final = hasResult
        ? join(dir, "outbox", `${id}_result.json`)
        : join(dir, "failed", `${id}_error.json`);
      const bytes = read(final);
      if (bytes !== undefined && decodeRecord(bytes) === undefined)
        faults.push(`${id}: half a record`);
      // Besides a settled task only its own marker may stand.
      for (const file of book.foreignLease?.id === id ? [] : live) {
        const stage = parseName(file)?.stage;
        // Nor does it harm when a retry's own marker outlasts what came of it: recovery drops the duplicate it makes.
        if (stage !== "ok" && stage !== "err" && stage !== "again")
          faults.push(`${id}: settled, and yet ${file} in processing`);
      }
    }
    for (const file of live) {
      const stage = parseName(file)?.stage;
      // A requeue or a reclaim that died half-way leaves two names of one file; the one in the inbox is dropped as a duplicate.
      const isOneFile =
        inode(join(dir, "inbox", `${id}.json`)) === inode(join(dir, "processing", file));
      const waiting = read(join(dir, "inbox", `${id}.json`));
      const isResend =
        book.duplicated === id ||
        (isLossy && waiting?.equals(read(join(dir, "processing", file)) ?? EMPTY));
      if (waits && !isOneFile && stage !== "w" && stage !== "again" && !isResend)
        faults.push(`${id}: in the inbox and as ${file}`);
      if (
        waits &&
        stage === "w" &&
        !live.some((f) => parseName(f)?.stage === "again") &&
        inode(join(dir, "inbox", `${id}.json`)) !== inode(join(dir, "processing", file))
      )
        faults.push(`${id}: two different files of one task`);
    }
    for (const file of live.map((f) => join(dir, "processing", f))) {
      if (!isWholeJson(file)) faults.push(`${file}: not whole`);
    }
    if (waits && !isWholeJson(join(dir, "inbox", `${id}.json`)))
      faults.push(`${id}: half a task in the inbox`);
  }
  faults.push(...checkBatchInstant(place, book));
  const documents = [place.tree.supervisor, place.tree.controlState, place.tree.metrics];
  for (const path of documents)
    if (fs.existsSync(path) && !isWholeJson(path)) faults.push(`${path}: half a document`);
  return faults;
}

/** A duplicate is taken aside for a moment before it goes; its first is elsewhere. */
function isAside(place: Place, id: string): boolean {
  return list(join(place.tree.mailbox, ".tmp")).some(
    (f) => f.startsWith(`${id}-`) && f.endsWith(".duplicate.tmp"),
  );
}

/** What is true when a supervisor has recovered, drained and ended. @param kills how often a process was killed: each may tear one line */
export function checkEnd(
  place: Place,
  book: Book,
  kills: number,
  journals: Journals = "strict",
): string[] {
  const faults = checkInstant(place, book);
  const dir = place.tree.mailbox;
  const seen = see(dir);
  const acks = readLines(place.acks);
  const runs = readLines(place.runs);
  for (const file of seen.processing) faults.push(`left in processing: ${file}`);
  const waitingOk = new Set<string>();
  for (const [id, promised] of Object.entries(book.tasks)) {
    const isSafe = promised.isSafe || acks.includes(`submit ${id}`);
    const status = endOf(place, id);
    if (promised.ends.includes("waiting")) waitingOk.add(`${id}.json`);
    if (status === undefined) {
      if (seen.inbox.includes(`${id}.json`) && promised.ends.includes("waiting")) continue;
      if (isSafe && book.sweptIds?.includes(id) !== true) faults.push(`${id}: never settled`);
      continue;
    }
    checkRecord(id, promised, status, acks, runs, faults);
  }
  const foreign = book.foreignLease;
  if (foreign !== undefined) checkConflict(place, book, foreign, seen, acks, faults);
  for (const file of seen.inbox)
    if (!waitingOk.has(file)) faults.push(`left in the inbox: ${file}`);
  faults.push(...checkBatchEnd(place, book, journals === "strict"));
  checkStrangers(place, book, seen, faults);
  checkCommands(place, book, acks, faults);
  checkJournals(place, book, kills, journals, faults);
  checkLeftovers(place, faults);
  return faults;
}

/** Both records are there: the foreign one where it was, and beside it ours, once. */
function checkConflict(
  place: Place,
  book: Book,
  { id, lease }: { id: string; lease: string },
  seen: Seen,
  acks: readonly string[],
  faults: string[],
): void {
  if (endOf(place, id)?.record.lease !== lease) faults.push(`${id}: a foreign record was replaced`);
  const kept = [...seen.outbox, ...seen.failed].filter((file) => isBeside(id, file));
  const bytes = read(join(place.tree.mailbox, "outbox", kept[0] ?? "none")) ?? EMPTY;
  const record = decodeRecord(bytes)?.record;
  if (kept.length !== 1) faults.push(`${id}: ${kept.length} records beside the foreign one`);
  else if (JSON.stringify(record?.task) !== JSON.stringify(JSON.parse(book.tasks[id]?.text ?? "")))
    faults.push(`${id}: ${kept[0]} holds another task`);
  for (const ack of acks)
    if (ack.startsWith(`lease ${id} `) && ack !== `lease ${id} ${record?.lease}`)
      faults.push(`${id}: ${ack}, but ${kept[0]} is of ${record?.lease}`);
}

function isCallOf(id: string, file: string): boolean {
  return file.startsWith(`${id}.`) && /\.on_(?:success|failure|settled)_result\.json$/.test(file);
}

function isBeside(id: string, file: string): boolean {
  return file.startsWith(`${id}~`) && /~[a-z0-9]+_(?:result|error)\.json$/.test(file);
}

interface End {
  path: string;
  record: Record_;
}

function endOf(place: Place, id: string): End | undefined {
  for (const path of [
    join(place.tree.mailbox, "outbox", `${id}_result.json`),
    join(place.tree.mailbox, "failed", `${id}_error.json`),
  ]) {
    const bytes = read(path);
    const record = bytes === undefined ? undefined : decodeRecord(bytes)?.record;
    const isRefusal =
      record?.status === "failed" && record.kind === "invalid" && record.attempts === 0;
    if (record !== undefined && !isRefusal) return { path, record };
  }
  return undefined;
}

function checkRecord(
  id: string,
  promised: Promised,
  { record, path }: End,
  acks: readonly string[],
  runs: readonly string[],
  faults: string[],
): void {
  const end =
    record.status === "failed" && record.kind === "cancelled" ? "cancelled" : record.status;
  if (!promised.ends.includes(end)) faults.push(`${id}: ended as ${end}`);
  if (record.task_id !== id) faults.push(`${id}: the record of ${record.task_id}`);
  if (path.includes("/outbox/") !== (record.status === "completed"))
    faults.push(`${id}: a ${record.status} record in ${path}`);
  // The library adds a time of its own.
  const { created_at: _createdAt, ...task } = (record.task ?? {}) as Record<string, unknown>;
  if (JSON.stringify(task) !== JSON.stringify(JSON.parse(promised.text)))
    faults.push(`${id}: the record holds another task: ${JSON.stringify(record.task)}`);
  if (!/^[a-z0-9]+\.\d+\.[A-Za-z0-9-]+$/.test(record.lease))
    faults.push(`${id}: bad lease ${record.lease}`);
  for (const ack of acks) {
    const [verb, of, what] = ack.split(" ");
    if (of !== id) continue;
    if (verb === "settle" && what !== record.status)
      faults.push(`${id}: acknowledged as ${what}, but the record says ${record.status}`);
    if (verb === "lease" && what !== record.lease)
      faults.push(`${id}: settled by ${what}, but the record is of ${record.lease}`);
    if (verb === "cancel" && end !== "cancelled") faults.push(`${id}: cancelled, but ${end}`);
    if (verb === "retry" && record.lease.startsWith("old"))
      faults.push(`${id}: retried, but the old record is still there`);
  }
  const isHandled = (JSON.parse(promised.text) as { payload?: unknown }).payload !== undefined;
  const didRun = runs.some((line) => line.startsWith(`${id} `));
  const byLibrary = record.agent_id === "by-hand" || record.lease.startsWith("old");
  if (end === "completed" && isHandled && !byLibrary && !didRun)
    faults.push(`${id}: completed without a run`);
}

/** Files nobody accounts for, and foreign files that must be there. */
function checkStrangers(place: Place, book: Book, seen: Seen, faults: string[]): void {
  const known = new Set<string>();
  for (const id of Object.keys(book.tasks)) {
    known.add(`${id}_result.json`);
    known.add(`${id}_error.json`);
  }
  for (const id of Object.keys(book.batches))
    for (const end of ["_result.json", "_error.json", "_results.ndjson"]) known.add(`${id}${end}`);
  for (const file of [...seen.outbox, ...seen.failed]) {
    // One for each batch: the checks of batches look at them.
    const id = /^(.+)~[a-z0-9]+_batch\.ndjson$/.exec(file)?.[1];
    if (id !== undefined && id in book.batches) known.add(file);
    if (book.foreignLease !== undefined && isBeside(book.foreignLease.id, file)) known.add(file);
    if (book.calling !== undefined && isCallOf(book.calling, file)) known.add(file);
  }
  for (const file of seen.outbox) if (!known.has(file)) faults.push(`stranger in outbox: ${file}`);
  const texts = new Map<string, number>();
  let records = 0;
  let files = 0;
  for (const file of seen.failed) {
    const bytes = read(join(place.tree.mailbox, "failed", file)) ?? Buffer.alloc(0);
    if (file.endsWith("_error.json")) {
      const record = decodeRecord(bytes)?.record as (ErrorRecord & { file?: string }) | undefined;
      if (record === undefined) faults.push(`half a record: ${file}`);
      else if (record.kind === "invalid" && record.attempts === 0) {
        records += 1;
        const refused = join(place.tree.mailbox, String(record.file));
        if (!fs.existsSync(refused))
          faults.push(`${file} speaks of ${record.file}, which is not there`);
      } else if (!known.has(file)) faults.push(`stranger in failed: ${file}`);
    } else if (!known.has(file)) {
      files += 1;
      const text = bytes.toString("utf8");
      texts.set(text, (texts.get(text) ?? 0) + 1);
    }
  }
  for (const text of book.refused) {
    const count = texts.get(text) ?? 0;
    if (count !== 1)
      faults.push(`a refused file is in failed/ ${count} times: ${text.slice(0, 60)}`);
  }
  if (files !== records) faults.push(`${files} refused files but ${records} records of refusals`);
  const { reopened } = book;
  const stays = reopened === undefined ? 0 : (texts.get(reopened.text) ?? 0);
  if (reopened !== undefined && stays + (endOf(place, reopened.id) === undefined ? 0 : 1) === 0)
    faults.push(`${reopened.id}: neither refused nor settled`);
  const expected = book.refused.length + Math.min(stays, 1);
  if (files > expected) faults.push(`${files} refused files, ${expected} expected`);
}

function checkCommands(place: Place, book: Book, acks: readonly string[], faults: string[]): void {
  const { inbox, processing, outbox, failed } = see(place.tree.control);
  for (const file of [...inbox, ...processing]) faults.push(`command left: ${file}`);
  const asked = acks.flatMap((ack) => (ack.startsWith("command ") ? [ack.slice(8)] : []));
  for (const id of [...book.commands, ...asked]) {
    const count =
      (outbox.includes(`${id}_result.json`) ? 1 : 0) +
      (failed.includes(`${id}_error.json`) ? 1 : 0);
    if (count !== 1) faults.push(`command ${id}: ${count} acknowledgements`);
  }
  for (const file of [...outbox, ...failed]) {
    const path = join(place.tree.control, outbox.includes(file) ? "outbox" : "failed", file);
    if (!isWholeJson(path)) faults.push(`half an acknowledgement: ${file}`);
  }
}

interface Line {
  event?: string;
  status?: string;
  task_id?: string;
  lease?: string;
  owner?: string;
}

function journalLines(path: string): { lines: Line[]; bad: number } {
  const dir = join(path, "..");
  const base = path.slice(dir.length + 1).replace(/\.jsonl$/, "");
  const files = list(dir).filter((f) => f.startsWith(`${base}.`) && f.endsWith(".jsonl"));
  // Rotated files carry a time stamp and sort before the current one.
  files.sort(
    (a, b) => Number(a === `${base}.jsonl`) - Number(b === `${base}.jsonl`) || (a < b ? -1 : 1),
  );
  const lines: Line[] = [];
  let bad = 0;
  for (const file of files)
    for (const text of readLines(join(dir, file))) {
      try {
        lines.push(JSON.parse(text) as Line);
      } catch {
        bad += 1;
      }
    }
  return { lines, bad };
}

const FOUR = ["selected", "assigned", "started", "completed"];

function checkJournals(
  place: Place,
  book: Book,
  kills: number,
  mode: Journals,
  faults: string[],
): void {
  const events = journalLines(place.tree.events);
  const leases = journalLines(place.tree.leases);
  if (events.bad > kills) faults.push(`${events.bad} bad lines in the events, ${kills} kills`);
  if (leases.bad > kills) faults.push(`${leases.bad} bad lines in the leases, ${kills} kills`);
  if (mode === "lossy") return;
  const isMany = (count: number): boolean => count < 1 || (mode === "strict" && count > 1);
  for (const [id, promised] of Object.entries({ ...book.tasks, ...book.batches })) {
    const end = endOf(place, id);
    if (!promised.hasEvents || end === undefined || end.record.lease.startsWith("old")) continue;
    const ours = events.lines.filter((line) => line.task_id === id);
    const names = ours.map((line) => line.event ?? "");
    const isCancelledUnrun =
      end.record.status === "failed" &&
      end.record.kind === "cancelled" &&
      end.record.attempts === 0;
    const wanted = isCancelledUnrun ? ["completed"] : FOUR;
    let at = 0;
    for (const name of names) if (name === wanted[at]) at += 1;
    if (at < wanted.length) faults.push(`${id}: no ${wanted[at]} in its order: ${names.join(" ")}`);
    const completed = ours.filter((line) => line.event === "completed");
    if (isMany(completed.length)) faults.push(`${id}: ${completed.length} completed events`);
    if (completed[0] !== undefined && leaseOfLine(completed[0]) !== end.record.lease)
      faults.push(`${id}: the completed event is of another lease`);
    const released = leases.lines.filter(
      (line) => leaseOfLine(line) === end.record.lease && line.status === "released",
    );
    if (isMany(released.length))
      faults.push(`${id}: its lease was released ${released.length} times in the journal`);
  }
}

/** After an hour nothing but the trays' own files is left. */
function checkLeftovers(place: Place, faults: string[]): void {
  const hourAgoS = Date.now() / 1000 - 2 * 60 * 60;
  for (const dir of [place.tree.mailbox, place.tree.control]) {
    if (!fs.existsSync(dir)) continue;
    const trays = openTrays(dir, { durability: "process" });
    for (const name of list(trays.tmp)) fs.utimesSync(join(trays.tmp, name), hourAgoS, hourAgoS);
    const before = JSON.stringify(see(dir));
    sweepAll(trays, { outboxDays: 100_000, failedDays: 100_000 });
    if (JSON.stringify(see(dir)) !== before) faults.push(`a sweep of staged files changed ${dir}`);
    const left = list(trays.tmp);
    if (left.length > 0) faults.push(`left in .tmp after an hour: ${left.join(", ")}`);
  }
  if (fs.existsSync(place.tree.supervisor)) {
    const document = JSON.parse(
      fs.readFileSync(place.tree.supervisor, "utf8"),
    ) as SupervisorDocument;
    if (document.status !== "stopped") faults.push(`supervisor.json says ${document.status}`);
  }
  const workers = list(place.tree.workers).filter((f) => f.endsWith(".json"));
  if (workers.length > 0) faults.push(`workers/ still names ${workers.join(", ")}`);
}
