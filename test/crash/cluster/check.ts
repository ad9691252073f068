/** What must be true when a walk of the bridges has come to rest. It reads files, and nothing else. */
import fs from "node:fs";
import { join } from "node:path";
import { stateTree } from "../../../src/core/state-tree.ts";
import { cleanDocuments } from "../../../src/supervisor/maintenance/clean-documents.ts";
import type { Case } from "./cases.ts";
import { MACHINES, Notes, ORIGIN, TASK, worldOf } from "./places.ts";

const LATER_MS = 24 * 3600 * 1000;

/** @param mayRunAgain the bridge of a machine was away for longer than `ack_wait` */
export function faultsOfEnd(dir: string, about: Case, mayRunAgain: boolean): string[] {
  return [
    ...faultsOfRecord(dir, about),
    ...faultsOfRuns(dir, about, mayRunAgain),
    ...[ORIGIN, ...MACHINES].flatMap((name) => leftIn(dir, name)),
  ];
}

function faultsOfRecord(dir: string, { ends }: Case): string[] {
  const state = join(worldOf(dir), ORIGIN);
  const { mailbox, events } = stateTree(state);
  const files = ["outbox", "failed", "processing", "inbox"].flatMap((tray) =>
    fs.readdirSync(join(mailbox, tray)).map((file) => `${tray}/${file}`),
  );
  const { tray, attempts, kind, code } = ends;
  const name = `${tray}/${TASK}_${tray === "outbox" ? "result" : "error"}.json`;
  if (files.length !== 1 || files[0] !== name)
    return [`not settled as ${name}: ${files.join(", ")}`];
  const faults: string[] = [];
  const record = JSON.parse(fs.readFileSync(join(mailbox, name), "utf8")) as Record<
    string,
    unknown
  >;
  const expectIt = (what: string, is: unknown, wanted: unknown): void => {
    if (is !== wanted) faults.push(`${what} is ${String(is)}, and not ${String(wanted)}`);
  };
  expectIt("attempts", record["attempts"], attempts);
  if (kind !== undefined) expectIt("kind", record["kind"], kind);
  if (code !== undefined) expectIt("code", record["code"], code);
  if (tray === "outbox")
    expectIt("the run it tells of", String(record["output"]).endsWith(`.${attempts}`), true);
  const ended = linesOf(events).filter(({ event }) => event === "completed");
  if (ended.length > 1) faults.push(`${ended.length} events say that it has ended`);
  return faults;
}

/** @returns how many runs there were beyond those of a life without kills */
export function runsAgain(dir: string): number {
  const ids = new Notes(dir).runs().map(({ id }) => id);
  return ids.length - new Set(ids).size;
}

function faultsOfRuns(dir: string, { runs }: Case, mayRunAgain: boolean): string[] {
  const all = new Notes(dir).runs();
  const text = all.map(({ machine, id }) => `${id} at ${machine}`).join(", ");
  const faults: string[] = [];
  for (const id of new Set(all.map((run) => run.id))) {
    const here = all.filter((run) => run.id === id);
    const max = runs[Number(id.split(".").at(-1)) - 1] ?? 0;
    if (here.length > max + (mayRunAgain ? 1 : 0)) faults.push(`run too often: ${text}`);
    // No machine runs the same dispatch twice.
    if (new Set(here.map(({ machine }) => machine)).size < here.length)
      faults.push(`run twice at one machine: ${text}`);
  }
  return faults;
}

/** Staged files of the dead go in time. */
function leftIn(dir: string, name: string): string[] {
  const state = join(worldOf(dir), name);
  if (!fs.existsSync(state)) return [];
  const tree = stateTree(state);
  cleanDocuments(tree, Date.now() + LATER_MS);
  const left = [
    "cluster",
    "cluster/.tmp",
    "cluster/jobs",
    "control/inbox",
    "control/processing",
  ].flatMap((folder) =>
    fs.existsSync(join(state, folder))
      ? fs.readdirSync(join(state, folder)).map((file) => `${folder}/${file}`)
      : [],
  );
  const legal = new Set(["cluster/.tmp", "cluster/jobs", "cluster/tree.json"]);
  return left.filter((path) => !legal.has(path)).map((path) => `${name}: ${path} is left over`);
}

function linesOf(path: string): Record<string, unknown>[] {
  if (!fs.existsSync(path)) return [];
  return fs
    .readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => {
      try {
        return line === "" ? [] : [JSON.parse(line) as Record<string, unknown>];
      } catch {
        // A process was killed while it wrote it.
        return [];
      }
    });
}
