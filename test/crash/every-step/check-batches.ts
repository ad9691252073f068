/** Compares what became of batches with what was promised: one result for each line, none lost, none run in vain. */
import fs from "node:fs";
import { join } from "node:path";
import { decodeRecord } from "../../../src/codec/records.ts";
import { parseName } from "../../../src/core/names.ts";
import { type Book, type Place, type PromisedBatch, readLines } from "./place.ts";

interface LineResult {
  line: number;
  id: string;
  status: string;
}

function list(path: string): string[] {
  return fs.existsSync(path) ? fs.readdirSync(path) : [];
}

/** Whole lines only: the last one of a killed writer may be torn. */
function wholeResults(path: string): LineResult[] {
  const lines = fs.readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as LineResult];
    } catch {
      return [];
    }
  });
}

function runsOf(place: Place, lineId: string): number {
  return readLines(place.runs).filter((line) => line.startsWith(`${lineId} `)).length;
}

/** What is true at any instant. Notes which lines have a result, and how often they had run by then. */
export function checkBatchInstant(place: Place, book: Book): string[] {
  const faults: string[] = [];
  const dir = place.tree.mailbox;
  for (const [id, promised] of Object.entries(book.batches)) {
    const isSafe = promised.isSafe || readLines(place.acks).includes(`submit ${id}`);
    const live = list(join(dir, "processing")).filter((file) => parseName(file)?.id === id);
    const isRetrying = live.some((file) => parseName(file)?.stage === "again");
    if (live.length > (isRetrying ? 2 : 1)) faults.push(`${id}: two of it: ${live.join(", ")}`);
    const records = recordsOf(place, id);
    if (records.length > 1) faults.push(`${id}: both a result and an error`);
    const waits = fs.existsSync(join(dir, "inbox", `${id}.ndjson`));
    if (isSafe && !waits && live.length + records.length === 0) faults.push(`${id}: lost`);
    // From the commit on its record, its results and itself belong together.
    for (const tray of records) {
      const hasMarker = live.some((file) => /~(?:ok|err)-/.test(file));
      if (!hasMarker && keptOf(place, tray, id) === undefined)
        faults.push(`${id}: settled, and not kept`);
    }
    for (const file of list(join(dir, ".tmp"))) {
      if (!file.startsWith(`${id}@`) || !file.endsWith("_results.ndjson")) continue;
      for (const { line, status } of wholeResults(join(dir, ".tmp", file)))
        if (status === "completed") book.doneRuns[`${id}#${line}`] = runsOf(place, `${id}#${line}`);
    }
  }
  return faults;
}

/** The batch as it was dropped. */
function keptOf(place: Place, tray: "outbox" | "failed", id: string): string | undefined {
  const dir = join(place.tree.mailbox, tray);
  const found = list(dir).filter((file) => /^[^~]+~[a-z0-9]+_batch\.ndjson$/.test(file));
  const ours = found.filter((file) => file.startsWith(`${id}~`));
  return ours.length === 1 ? join(dir, ours[0] ?? "") : undefined;
}

function recordsOf(place: Place, id: string): ("outbox" | "failed")[] {
  const dir = place.tree.mailbox;
  return [
    ...(fs.existsSync(join(dir, "outbox", `${id}_result.json`)) ? (["outbox"] as const) : []),
    ...(fs.existsSync(join(dir, "failed", `${id}_error.json`)) ? (["failed"] as const) : []),
  ];
}

/** @param isExact false: a process that was taken for dead went on, and may have run lines a second time */
export function checkBatchEnd(place: Place, book: Book, isExact: boolean): string[] {
  const faults: string[] = [];
  for (const [id, promised] of Object.entries(book.batches)) {
    const isSafe = promised.isSafe || readLines(place.acks).includes(`submit ${id}`);
    const [tray] = recordsOf(place, id);
    if (tray === undefined) {
      if (isSafe) faults.push(`${id}: never settled`);
      continue;
    }
    if (!promised.ends.includes(tray === "outbox" ? "completed" : "failed"))
      faults.push(`${id}: ended in ${tray}`);
    checkResults(place, id, tray, promised, faults);
    if (isExact)
      for (const lineOf of promised.lines) {
        const known = book.doneRuns[`${id}#${lineOf}`];
        const runs = runsOf(place, `${id}#${lineOf}`);
        if (known !== undefined && runs > known)
          faults.push(`${id}#${lineOf}: had a result, and ran again`);
      }
  }
  return faults;
}

function checkResults(
  place: Place,
  id: string,
  tray: "outbox" | "failed",
  promised: PromisedBatch,
  faults: string[],
): void {
  const path = (name: string): string => join(place.tree.mailbox, tray, name);
  const bytes = fs.readFileSync(path(tray === "outbox" ? `${id}_result.json` : `${id}_error.json`));
  const record = decodeRecord(bytes)?.record;
  const kept = keptOf(place, tray, id);
  if (kept === undefined || fs.readFileSync(kept, "utf8") !== promised.text)
    faults.push(`${id}: not kept as it was`);
  const results = path(`${id}_results.ndjson`);
  const texts = fs.existsSync(results) ? readLines(results) : [];
  const found = new Map<number, LineResult>();
  for (const text of texts) {
    let result: LineResult;
    try {
      result = JSON.parse(text) as LineResult;
    } catch {
      faults.push(`${id}: half a result: ${text.slice(0, 80)}`);
      continue;
    }
    if (found.has(result.line)) faults.push(`${id}#${result.line}: two results`);
    found.set(result.line, result);
  }
  if (record?.batch?.lines !== found.size)
    faults.push(`${id}: ${record?.batch?.lines} lines counted, ${found.size} results`);
  const isOld = record?.lease.startsWith("old") === true;
  if (isOld && readLines(place.acks).includes(`retry ${id}`))
    faults.push(`${id}: retried, but the old record is still there`);
  if (tray === "failed" || isOld) return;
  for (const line of promised.lines) {
    const status = found.get(line)?.status ?? "nothing";
    const wanted = promised.failing.includes(line) ? "failed" : "completed";
    if (status !== wanted) faults.push(`${id}#${line}: ${status}, not ${wanted}`);
  }
  if (found.size !== promised.lines.length) faults.push(`${id}: ${found.size} results`);
}
