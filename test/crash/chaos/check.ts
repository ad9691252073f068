/** What a pool under chaos must have come to: none lost, one settlement each, and it stays. */
import fs from "node:fs";
import { basename, join } from "node:path";
import { checkState } from "../../support/check-state.ts";
import { type Pool, readJson } from "../../support/pool.ts";
import { type End, traceIn, type Work } from "./work.ts";

interface Settled {
  lease: string;
  path: string;
  ino: number;
}

/** Looks on while it goes on, and remembers each settlement: none may change later, but for a retry. */
export class Witness {
  readonly commands = new Set<string>();
  /** Ids of tasks that were cancelled for good, or tried again. */
  readonly cancelled = new Set<string>();
  readonly retried = new Set<string>();
  private readonly halves = new Set<string>();
  private readonly seen = new Map<string, Settled>();
  private readonly mailbox: string;

  constructor(state: string) {
    this.mailbox = join(state, "mailbox");
  }

  get settled(): number {
    return this.seen.size;
  }

  look(): void {
    for (const [tray, suffix] of [
      ["outbox", "_result.json"],
      ["failed", "_error.json"],
    ] as const) {
      for (const file of list(join(this.mailbox, tray))) {
        if (!file.endsWith(suffix)) continue;
        const id = file.slice(0, -suffix.length);
        if (!this.seen.has(id)) this.note(id, join(this.mailbox, tray, file));
      }
    }
  }

  /** Compares what was seen with what is there now. */
  compare(): string[] {
    const faults = [...this.halves].map((path) => `half a record was seen: ${path}`);
    for (const [id, { path, ino, lease }] of this.seen) {
      if (this.retried.has(id)) continue;
      const now = readJson<{ lease: string }>(path);
      if (now === undefined) faults.push(`${id}: its record ${path} is gone`);
      else if (now.lease !== lease || fs.statSync(path).ino !== ino)
        faults.push(`${id}: settled as ${lease}, and then as ${now.lease}`);
    }
    return faults;
  }

  private note(id: string, path: string): void {
    const stats = fs.statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return;
    const record = readJson<{ lease: string }>(path);
    if (record !== undefined) this.seen.set(id, { lease: record.lease, path, ino: stats.ino });
    else if (fs.existsSync(path)) this.halves.add(path);
  }
}

export interface Verdict {
  problems: string[];
  runs: number;
  runsNeeded: number;
}

export function checkChaos(pool: Pool, work: readonly Work[], witness: Witness): Verdict {
  const problems = witness.compare();
  const ids = work.map(({ id }) => id);
  problems.push(...checkState(pool.state, ids, { hadCrashes: true, mayRepeat: true }));
  const runs = countRuns(traceIn(pool.dir));
  for (const one of work) {
    const end = endOf(pool, one.id);
    if (end === undefined) continue;
    const isEither = witness.cancelled.has(one.id);
    if (!isEither && !one.ends.includes(end))
      problems.push(`${one.id}: ${end}, not ${one.ends.join(" or ")}`);
    if (one.lines !== undefined) problems.push(...checkLines(pool, one.id, end, one.lines));
    else if (end === "completed" && (runs.ended.get(one.id) ?? 0) === 0)
      if (one.kind !== "program past its time")
        problems.push(`${one.id}: completed, but never ran to its end`);
  }
  problems.push(...checkCommands(pool, witness.commands));
  return {
    problems,
    runs: runs.count,
    runsNeeded: work.reduce((sum, { runs: needed }) => sum + needed, 0),
  };
}

function endOf(pool: Pool, id: string): End | undefined {
  if (fs.existsSync(join(pool.outbox, `${id}_result.json`))) return "completed";
  return fs.existsSync(join(pool.failed, `${id}_error.json`)) ? "failed" : undefined;
}

/** One result a line, each as it should be. */
function checkLines(pool: Pool, id: string, end: End, lines: readonly End[]): string[] {
  const path = join(end === "completed" ? pool.outbox : pool.failed, `${id}_results.ndjson`);
  if (!fs.existsSync(path)) return [`${id}: its results are missing`];
  const problems: string[] = [];
  const results = new Map<number, string>();
  for (const text of fs.readFileSync(path, "utf8").trimEnd().split("\n")) {
    const { line, status } = resultOf(text);
    if (line === undefined || status === undefined) {
      problems.push(`${id}: half a record of a line: ${text}`);
      continue;
    }
    if (results.has(line)) problems.push(`${id}: line ${line} has two results`);
    results.set(line, status);
  }
  for (const [index, wanted] of lines.entries()) {
    const status = results.get(index + 1);
    if (status !== wanted)
      problems.push(`${id}: line ${index + 1} is ${status ?? "missing"}, not ${wanted}`);
  }
  if (results.size > lines.length) problems.push(`${id}: more results than lines`);
  return problems;
}

function resultOf(text: string): { line?: number; status?: string } {
  try {
    return JSON.parse(text) as { line?: number; status?: string };
  } catch {
    return {};
  }
}

/** Each command has one acknowledgement. */
function checkCommands(pool: Pool, commands: ReadonlySet<string>): string[] {
  const control = join(pool.state, "control");
  const answers = ["outbox", "failed"].flatMap((tray) =>
    list(join(control, tray)).map((file) => join(control, tray, file)),
  );
  const idOf = (path: string): string => basename(path).replace(/_(?:result|error)\.json$/, "");
  const counts = new Map<string, number>();
  for (const path of answers)
    if (readJson(path) !== undefined) counts.set(idOf(path), (counts.get(idOf(path)) ?? 0) + 1);
  return [...commands].flatMap((id) => {
    const count = counts.get(id) ?? 0;
    return count === 1 ? [] : [`command ${id}: ${count} acknowledgements, not one whole one`];
  });
}

function countRuns(path: string): { count: number; ended: Map<string, number> } {
  const ended = new Map<string, number>();
  let count = 0;
  if (!fs.existsSync(path)) return { count, ended };
  for (const line of fs.readFileSync(path, "utf8").split("\n")) {
    const [what, id = ""] = line.split(" ");
    if (what === "start") count += 1;
    if (what === "end") ended.set(id, (ended.get(id) ?? 0) + 1);
  }
  return { count, ended };
}

function list(dir: string): string[] {
  return fs.existsSync(dir) ? fs.readdirSync(dir) : [];
}
