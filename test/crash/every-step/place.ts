/** Where a case lies, the settings it runs with, and the book of what was promised to whom. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DEFAULT_SETTINGS, type Settings } from "../../../src/core/settings.ts";
import { type StateTree, stateTree } from "../../../src/core/state-tree.ts";
import { openTrays, type Trays } from "../../../src/mailbox/files/trays.ts";
import type { Payload } from "./handler.ts";

export type Durability = "process" | "power";

/**
 * What may be expected of the journals. "repeats": a settler that was taken for dead may write its lines a second time;
 * "lossy": the victim could not write them, and nothing rests on them.
 */
export type Journals = "strict" | "repeats" | "lossy";

/** One case: a state tree, and beside it what the test itself writes down. */
export interface Place {
  dir: string;
  state: string;
  tree: StateTree;
  /** What the victim was told is safe or done: a line each. */
  acks: string;
  /** What the handlers did: a line for each run. */
  runs: string;
}

/** @param state where the tree lies, if not in `dir` */
export function placeAt(dir: string, state = join(dir, "state")): Place {
  return {
    dir,
    state,
    tree: stateTree(state),
    acks: join(dir, "acks"),
    runs: join(dir, "runs"),
  };
}

export function quickSettings(durability: Durability = "process"): Settings {
  return {
    ...DEFAULT_SETTINGS,
    groups: { gpu: { slots: 2 } },
    workers: 2,
    durability,
    retry: { max_attempts: 3, backoff_ms: 5, backoff_max_ms: 20 },
    settle_ms: 40,
    sweep_ms: 100,
    grace_ms: 200,
    agents: [
      {
        name: "tester",
        kind: "module",
        module: fileURLToPath(new URL("./handler.js", import.meta.url)),
        default: true,
        phases: ["IMPLEMENT"],
      },
    ],
  };
}

export function traysOf(place: Place, durability: Durability = "process"): Trays {
  return openTrays(place.tree.mailbox, { durability });
}

export function controlOf(place: Place, durability: Durability = "process"): Trays {
  return openTrays(place.tree.control, { durability });
}

/** The text of a task file. */
export function taskText(
  place: Place,
  id: string,
  does: Payload["do"] = "ok",
  more: Record<string, unknown> = {},
): string {
  return JSON.stringify({ id, payload: { do: does, runs: place.runs } satisfies Payload, ...more });
}

/** Tells the test, in one write, that something was promised. */
export function acknowledge(place: Place, ...words: string[]): void {
  fs.appendFileSync(place.acks, `${words.join(" ")}\n`);
}

export function readLines(path: string): string[] {
  try {
    return fs
      .readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => line !== "");
  } catch {
    return [];
  }
}

/** Sets the status of the planner in the roadmap, as a person would. Nobody is there to run it, so it stays so. */
export function writePlanner(place: Place, status: "open" | "done"): void {
  const text = `nodes:\n  - { id: plan-000, type: plan, agent: nobody, status: ${status} }\n`;
  fs.writeFileSync(place.tree.roadmap, text, { mode: 0o600 });
}

export function isPlanning(place: Place): boolean {
  return readLines(place.tree.roadmap).some((line) => line.includes("status: open"));
}

/** What must be true of one task in the end. */
export interface Promised {
  /** The task's text; its record must hold this very task. */
  text: string;
  /** False: it is safe only once the victim acknowledged `submit ID`; until then all or nothing. */
  isSafe: boolean;
  /** Ways it may end. */
  ends: readonly ("completed" | "failed" | "cancelled" | "waiting")[];
  /** True: the four events of a finished task must be in the journal. */
  hasEvents: boolean;
}

/** What must be true of one batch in the end. */
export interface PromisedBatch {
  /** Its bytes; they must lie beside its results. */
  text: string;
  isSafe: boolean;
  ends: readonly ("completed" | "failed")[];
  hasEvents: boolean;
  /** Numbers of the lines that have a result when all ran to their end, and of those that fail. */
  lines: readonly number[];
  failing: readonly number[];
}

export interface Book {
  tasks: Record<string, Promised>;
  batches: Record<string, PromisedBatch>;
  /** How often a line (`<batch>#<line>`) had run when its result was already written down after the crash. */
  doneRuns: Record<string, number>;
  /** Texts of foreign files that must lie, whole, in `failed/` in the end. */
  refused: string[];
  /** A record that stood there before, and must stay; its task may stand beside it until it is settled. */
  foreignLease?: { id: string; lease: string };
  /** The id of a task that was dropped twice. */
  duplicated?: string;
  /** A refused file that may lie in `failed/`, or be the task of this id again. */
  reopened?: { id: string; text: string };
  /** Ids of commands, and whether they were there from the start. */
  commands: string[];
  /** Torn lines that were in the journals from the start. */
  tornLines?: number;
  /** The id of a task with callbacks. */
  calling?: string;
  /** Records that may have been swept. */
  sweptIds?: string[];
}

export function emptyBook(): Book {
  return { tasks: {}, batches: {}, doneRuns: {}, refused: [], commands: [] };
}
