/**
 * Looks at a state tree as a stranger would, with nothing but its files, and says what breaks the promises of the
 * protocol. Shares with the product only the grammar of names; changes nothing.
 */
import fs from "node:fs";
import { join } from "node:path";
import {
  foldId,
  leaseOfLine,
  parseName,
  parsePlainClaim,
  splitLease,
} from "../../src/core/names.ts";
import { isCancelling } from "../../src/host/identity.ts";

export interface CheckOptions {
  /** False while work goes on: then a task may be in any legal place, not only settled. Default true. */
  isDrained?: boolean;
  /** True after SIGKILLs or a full disk: torn journal lines, staged leftovers and open leases of dead attempts are legal. */
  hadCrashes?: boolean;
  /** True when settlers stood still: recovery and they may each have written the same journal lines of one settlement. */
  mayRepeat?: boolean;
  /** True after a full disk: processes then write late, each when it finds room, and only the times tell the order. */
  wroteLate?: boolean;
  /** True after a power cut or a disk that failed: journals are not synced, and what they say is not looked at. */
  lostJournals?: boolean;
}

type Json = Record<string, unknown>;

interface Place {
  where: string;
  path: string;
  ino: number;
  /** A committed marker and its record are one place. */
  isMarker: boolean;
}

/** What a settled batch has beside its record: the results of its lines, and itself. */
const BESIDE_A_BATCH = /(?:_results|~[a-z0-9]+_batch)\.ndjson$/;
const RECORD_BYTES_MAX = 16 * 1024;
const ORDER = ["selected", "assigned", "started", "completed"] as const;

/** @returns one sentence for each violation; an empty list when all is well */
export function checkState(
  stateDir: string,
  submittedIds: Iterable<string>,
  options: CheckOptions = {},
): string[] {
  const isDrained = options.isDrained !== false;
  const faults: string[] = [];
  const mailbox = join(stateDir, "mailbox");
  const submitted = new Set([...submittedIds].map(foldId));

  const places = findPlaces(mailbox, faults);
  for (const id of submitted) {
    const found = places.get(id) ?? [];
    if (isDrained && found.some((p) => p.where === "inbox" || p.where === "processing"))
      faults.push(`${id}: not settled, it is in ${found.map((p) => p.path).join(" and ")}`);
    if (countPlaces(found) !== 1) {
      const all = found.map((p) => p.path).join(" and ");
      faults.push(`${id}: in ${found.length} places, not in exactly one${all && `: ${all}`}`);
    }
  }
  for (const [id, found] of places)
    if (!submitted.has(id)) faults.push(`${id}: nobody submitted it, yet ${found[0]?.path} exists`);

  const events = readJournal(
    join(stateDir, "analytics", "supervisor_lifecycle.jsonl"),
    faults,
    options,
  );
  const leases = readJournal(join(stateDir, "supervisor_leases.jsonl"), faults, options);
  const eventsOf = groupBy(events, "task_id");
  const leasesOf = groupBy(leases, "task_id");
  for (const found of places.values()) {
    for (const { path, where } of found) {
      if (where !== "outbox" && where !== "failed") continue;
      const record = checkRecord(mailbox, path, where, faults);
      if (record === undefined || record["attempts"] === 0) continue;
      const id = String(record["task_id"]);
      if (options.lostJournals === true) continue;
      checkEvents(id, record, eventsOf.get(id) ?? [], options, faults);
      if (!wasTakenToCancel(record))
        checkLeases(id, record, leasesOf.get(id) ?? [], options, faults);
    }
  }
  if (isDrained) {
    if (options.hadCrashes !== true) checkAllLeasesClosed(leases, faults);
    checkLeftovers(stateDir, mailbox, options, faults);
  }
  return faults;
}

function findPlaces(mailbox: string, faults: string[]): Map<string, Place[]> {
  const places = new Map<string, Place[]>();
  const note = (id: string, where: string, file: string, isMarker = false): void => {
    const path = `${where}/${file}`;
    const stats = fs.lstatSync(join(mailbox, path), { throwIfNoEntry: false });
    if (stats === undefined) return;
    const key = foldId(id);
    const list = places.get(key);
    const place = { where, path, ino: stats.ino, isMarker };
    if (list === undefined) places.set(key, [place]);
    else list.push(place);
  };
  for (const file of list(join(mailbox, "inbox")))
    if (/\.(?:nd)?json$/.test(file)) note(file.replace(/\.(?:nd)?json$/, ""), "inbox", file);
  for (const file of list(join(mailbox, "processing"))) {
    const name = parseName(file);
    const id = name?.id ?? parsePlainClaim(file);
    if (id === undefined) faults.push(`processing/${file}: a name without a meaning`);
    else note(id, "processing", file, name?.stage === "ok" || name?.stage === "err");
  }
  for (const [tray, suffix] of [
    ["outbox", "_result.json"],
    ["failed", "_error.json"],
  ] as const) {
    for (const file of list(join(mailbox, tray))) {
      if (file.endsWith(suffix)) note(file.slice(0, -suffix.length), tray, file);
      else if (tray === "outbox" && !BESIDE_A_BATCH.test(file))
        faults.push(`outbox/${file}: not a result`);
    }
  }
  return places;
}

/** A file with two names, or a marker beside the record it stands for, is in one place. */
function countPlaces(found: readonly Place[]): number {
  const isPublished = found.some((p) => p.where === "outbox" || p.where === "failed");
  return new Set(found.filter((p) => !(p.isMarker && isPublished)).map((p) => p.ino)).size;
}

function checkRecord(
  mailbox: string,
  path: string,
  where: string,
  faults: string[],
): Json | undefined {
  const text = fs.readFileSync(join(mailbox, path), "utf8");
  const record = parseObject(text);
  if (record === undefined) {
    faults.push(`${path}: not a whole JSON object (${text.length} characters)`);
    return undefined;
  }
  const suffix = where === "outbox" ? "_result.json" : "_error.json";
  const id = path.slice(where.length + 1, -suffix.length);
  const status = where === "outbox" ? "completed" : "failed";
  if (record["task_id"] !== id) faults.push(`${path}: its task_id is ${show(record["task_id"])}`);
  if (record["status"] !== status) faults.push(`${path}: its status is ${show(record["status"])}`);
  if (!Number.isInteger(record["attempts"])) faults.push(`${path}: attempts is not a number`);
  const task = record["task"] as Json | undefined;
  if (record["attempts"] !== 0) {
    if (typeof record["lease"] !== "string" || record["lease"] === "")
      faults.push(`${path}: it has no lease`);
    // A batch is kept beside its record.
    if (record["batch"] !== undefined) return record;
    if (typeof task !== "object") faults.push(`${path}: the task is not in it`);
    else if (task["id"] !== undefined && task["id"] !== id)
      faults.push(`${path}: it holds the task ${show(task["id"])}`);
  }
  return record;
}

/** Cancelled for good by the supervisor: nothing was assigned or started under the lease it took for that. */
function wasTakenToCancel(record: Json): boolean {
  const owner = String(record["lease"]).split(".")[2] ?? "";
  return record["kind"] === "cancelled" && isCancelling(owner);
}

function checkEvents(
  id: string,
  record: Json,
  events: readonly Json[],
  { wroteLate, mayRepeat }: CheckOptions,
  faults: string[],
): void {
  const lease = String(record["lease"]);
  const submission = lease.slice(0, lease.indexOf(".") + 1);
  const { head } = splitLease(lease);
  let at = -1;
  for (const what of wasTakenToCancel(record) ? (["selected", "completed"] as const) : ORDER) {
    // Selected for an earlier attempt counts: a retry is the same selection.
    const isIt = (e: Json): boolean =>
      e["event"] === what &&
      (what === "selected" ? String(e["lease"]).startsWith(submission) : leaseOfLine(e) === lease);
    const first = events.findIndex(isIt);
    if (first === -1) {
      faults.push(`${id}: no ${what} event of its lease ${lease}`);
      continue;
    }
    const event = events[first] as Json;
    // The text of all events of a run, though the first comes before there is an owner. The number is the lease's: a task that is
    // cancelled before it runs again has counted one attempt less.
    const isSameRun = `${submission}${show(event["attempt"])}` === head;
    if (isSameRun && event["lease"] !== head)
      faults.push(`${id}: its ${what} event names the lease ${show(event["lease"])}`);
    const place = wroteLate === true ? Number(event["t"]) : first;
    if (place < at) faults.push(`${id}: ${what} comes before what should precede it`);
    at = Math.max(at, place);
    if (typeof event["agent_id"] !== "string" || event["agent_id"] === "")
      faults.push(`${id}: its ${what} event has no agent_id`);
    const timestamp = String(event["timestamp"]);
    if (new Date(timestamp).getTime() !== event["t"] || !timestamp.endsWith("Z"))
      faults.push(`${id}: its ${what} event has timestamp ${timestamp} and t ${show(event["t"])}`);
  }
  const ends = events.filter(
    (e) => e["event"] === "completed" && String(e["lease"]).startsWith(submission),
  );
  const isRepeat = mayRepeat === true && new Set(ends.map(leaseOfLine)).size === 1;
  if (ends.length > 1 && !isRepeat) faults.push(`${id}: ${ends.length} completed events`);
  if (ends.length === 1 && ends[0]?.["status"] !== record["status"])
    faults.push(
      `${id}: ${show(record["status"])}, but its event says ${show(ends[0]?.["status"])}`,
    );
}

function checkLeases(
  id: string,
  record: Json,
  leases: readonly Json[],
  { mayRepeat }: CheckOptions,
  faults: string[],
): void {
  const own = leases.filter((l) => leaseOfLine(l) === record["lease"]);
  const all = own.map((l) => String(l["status"]));
  const statuses = (mayRepeat === true ? [...new Set(all)] : all).join(", ");
  if (statuses !== "active, released")
    faults.push(`${id}: its lease was ${statuses || "never recorded"}, not active, released`);
  for (const l of own) {
    if (typeof l["agent_id"] !== "string" || l["agent_id"] === "")
      faults.push(`${id}: a lease record has no agent_id`);
    for (const key of ["acquired_at", "expires_at", "ts"])
      if (Number.isNaN(new Date(String(l[key])).getTime()))
        faults.push(`${id}: a lease record has ${key} ${show(l[key])}`);
  }
}

function checkAllLeasesClosed(leases: readonly Json[], faults: string[]): void {
  const open = new Set<unknown>();
  for (const l of leases) {
    if (l["status"] === "active") open.add(leaseOfLine(l));
    else open.delete(leaseOfLine(l));
  }
  for (const lease of open) faults.push(`lease ${show(lease)}: still active although all is done`);
}

function checkLeftovers(
  stateDir: string,
  mailbox: string,
  { hadCrashes }: CheckOptions,
  faults: string[],
): void {
  for (const dir of [join(mailbox, ".tmp"), join(stateDir, "control", ".tmp")]) {
    for (const file of list(dir)) {
      // What a dead process had staged is swept by age; it never was part of anything.
      if (hadCrashes !== true) faults.push(`${dir}/${file}: left over`);
    }
  }
  for (const file of list(join(stateDir, "control", "processing")))
    faults.push(`control/processing/${file}: left over`);
  const supervisor = parseObject(readText(join(stateDir, "supervisor.json")) ?? "{}");
  if (supervisor?.["status"] === "stopped")
    for (const file of list(join(stateDir, "workers")))
      if (file.endsWith(".json") && hadCrashes !== true)
        faults.push(`workers/${file}: left over although the supervisor has stopped`);
}

function readJournal(path: string, faults: string[], { hadCrashes }: CheckOptions): Json[] {
  const text = readText(path) ?? "";
  if (text !== "" && !text.endsWith("\n") && hadCrashes !== true)
    faults.push(`${path}: its last line is torn`);
  const records: Json[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line === "") continue;
    const record = parseObject(line);
    if (record !== undefined) records.push(record);
    else if (hadCrashes !== true) faults.push(`${path}:${index + 1}: not a JSON object: ${line}`);
    if (Buffer.byteLength(line) >= RECORD_BYTES_MAX)
      faults.push(`${path}:${index + 1}: longer than one write`);
  }
  return records;
}

function groupBy(records: readonly Json[], key: string): Map<string, Json[]> {
  const groups = new Map<string, Json[]>();
  for (const record of records) {
    const name = String(record[key]);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [record]);
    else group.push(record);
  }
  return groups;
}

function parseObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Json)
      : undefined;
  } catch {
    return undefined;
  }
}

function show(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "missing");
}

function readText(path: string): string | undefined {
  try {
    return fs.readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function list(dir: string): string[] {
  try {
    return fs.readdirSync(dir);
  } catch {
    return [];
  }
}
