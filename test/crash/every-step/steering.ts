/** One operation for each command: the supervisor is killed between its claim and its acknowledgement, at every call. */
import fs from "node:fs";
import { join } from "node:path";
import { withMembers } from "../../../src/codec/json-members.ts";
import { errorName, resultName } from "../../../src/core/names.ts";
import { type ControlDocument, INITIAL_CONTROL } from "../../../src/core/saved-documents.ts";
import { digestOf } from "../../../src/mailbox/submit/edit.ts";
import {
  dropTask,
  makeTree,
  type Operation,
  pause,
  putFailed,
  runTree,
  syncPath,
  until,
} from "./operations.ts";
import {
  acknowledge,
  type Book,
  isPlanning,
  type Place,
  readLines,
  writePlanner,
} from "./place.ts";

/** What an edit changes: the task need not wait any more. */
const SOON = { not_before: undefined, title: "soon" };

/** The id of the command that is struck at. */
const ID = "go";

interface Steering {
  name: string;
  command: { command: string; args?: object };
  /** Its arguments, where they depend on the tree. */
  argsOf?(place: Place): object;
  /** The `result` of its acknowledgement; for a stop: any. */
  result?: object;
  /** The event that must be there once. */
  event?: string;
  prepare(place: Place, book: Book): void;
  /** Brings the pool to where the command finds it. */
  before?(place: Place): Promise<void>;
  /** What must be true once it is acknowledged. */
  check?(place: Place): string[];
  checkEnd?(place: Place): string[];
}

type Json = Record<string, unknown>;

function readJson(path: string): Json | undefined {
  try {
    return JSON.parse(fs.readFileSync(path, "utf8")) as Json;
  } catch {
    return undefined;
  }
}

function give(place: Place, id: string, command: object): void {
  const staged = join(place.state, `${id}.command`);
  const inbox = join(place.tree.control, "inbox");
  fs.writeFileSync(staged, JSON.stringify(command), { mode: 0o600 });
  syncPath(staged);
  fs.renameSync(staged, join(inbox, `${id}.json`));
  syncPath(inbox);
}

function answersTo(place: Place, id: string): Json[] {
  const { control } = place.tree;
  const paths = [join(control, "outbox", resultName(id)), join(control, "failed", errorName(id))];
  return paths.flatMap((path): Json[] => {
    const answer = readJson(path);
    return answer === undefined ? [] : [answer];
  });
}
const isAnswered = (place: Place, id = ID): boolean => answersTo(place, id).length > 0;

function putControl(place: Place, change: Partial<ControlDocument>): void {
  fs.writeFileSync(place.tree.controlState, JSON.stringify({ ...INITIAL_CONTROL, ...change }), {
    mode: 0o600,
  });
}

function expectControl(place: Place, expected: Partial<ControlDocument>): string[] {
  const control = readJson(place.tree.controlState) ?? {};
  return Object.entries(expected).flatMap(([key, value]) =>
    JSON.stringify(control[key]) === JSON.stringify(value)
      ? []
      : [`control.json says ${key}: ${JSON.stringify(control[key])}`],
  );
}

function countEvents(place: Place, event: string): number {
  const isIt = (line: string): boolean => {
    try {
      return (JSON.parse(line) as Json)["event"] === event;
    } catch {
      return false;
    }
  };
  return readLines(place.tree.events).filter(isIt).length;
}

const list = (place: Place, tray: string): string[] =>
  fs.readdirSync(join(place.tree.mailbox, tray)).sort();

/** It waits in the inbox and nowhere else. */
function expectWaiting(place: Place, id: string): string[] {
  const inFlight = list(place, "processing").filter((file) => file.startsWith(`${id}@`));
  return [
    ...(list(place, "inbox").includes(`${id}.json`) ? [] : [`${id} does not wait in the inbox`]),
    ...inFlight.map((file) => `${id} is in flight as ${file}`),
  ];
}

function expectRuns(place: Place, id: string, count: number): string[] {
  const runs = readLines(place.runs).filter((line) => line.startsWith(`${id} `)).length;
  return runs === count ? [] : [`${id} ran ${runs} times, not ${count}`];
}

function expectAttempts(place: Place, tray: "outbox" | "failed", id: string, n: number): string[] {
  const file = tray === "outbox" ? resultName(id) : errorName(id);
  const attempts = readJson(join(place.tree.mailbox, tray, file))?.["attempts"];
  return attempts === n ? [] : [`${id}: attempts is ${String(attempts)}, not ${n}`];
}

async function untilRuns(place: Place, count: number): Promise<void> {
  await until(() => readLines(place.runs).length >= count);
}

/** The task runs, and its pool is paused: what is put back stays where it is. */
async function runPaused(place: Place): Promise<void> {
  await untilRuns(place, 2);
  give(place, "hold", { command: "pause" });
  await until(() => isAnswered(place, "hold"));
}

function steering(spec: Steering): Operation {
  const { name, command, result, event } = spec;
  return {
    name: `command-${name}`,
    isWhole: true,
    isNoted: command.command === "cancel" || command.command === "retry",
    window: {
      from: `^rename control/inbox/${ID}\\.json`,
      to: `^unlink control/\\.tmp/${ID}@[a-z0-9]+\\.subject`,
    },
    prepare(place) {
      const book = makeTree(place);
      spec.prepare(place, book);
      return book;
    },
    act: (tools) =>
      runTree(tools, async (supervisor, place) => {
        await spec.before?.(place);
        acknowledge(place, "command", ID);
        give(place, ID, { ...command, ...(spec.argsOf && { args: spec.argsOf(place) }) });
        await until(() => isAnswered(place));
        // The last step of the acknowledgement.
        await pause(20);
        fs.rmSync(`${place.runs}.wait`, { force: true });
        supervisor.stop(false);
      }),
    afterwards: {
      isAnswered,
      hasGivenUp,
      check(place, journals) {
        const [answer, ...more] = answersTo(place, ID);
        const faults = more.length > 0 ? ["two acknowledgements"] : [];
        if (answer === undefined) faults.push("no acknowledgement");
        else if (journals === "lossy" && hasGivenUp(place)) return faults;
        else if (
          answer["status"] !== "completed" ||
          (result !== undefined && JSON.stringify(answer["result"]) !== JSON.stringify(result))
        )
          faults.push(`the acknowledgement says ${JSON.stringify(answer)}`);
        const told = event === undefined ? 1 : countEvents(place, event);
        if (told !== 1 && journals !== "lossy") faults.push(`${told} events ${event}`);
        return [...faults, ...(spec.check?.(place) ?? [])];
      },
      goOn(place) {
        const control = readJson(place.tree.controlState) ?? {};
        fs.writeFileSync(
          place.tree.controlState,
          JSON.stringify({ ...INITIAL_CONTROL, ...control, paused: false }),
          { mode: 0o600 },
        );
        if (isPlanning(place)) writePlanner(place, "done");
      },
    },
    checkEnd(place, journals) {
      if (journals === "lossy" && hasGivenUp(place)) return [];
      return spec.checkEnd?.(place) ?? [];
    },
  };
}

function hasGivenUp(place: Place): boolean {
  const [answer] = answersTo(place, ID);
  return answer?.["status"] === "failed" && answer["code"] === "ErrIo";
}

const EITHER = ["completed", "failed"] as const;

function prepareTwo(place: Place, book: Book): void {
  // One attempt: a cancel that used it up would be seen.
  dropTask(place, book, "a", "wait", {}, { max_attempts: 1 });
  dropTask(place, book, "b", "wait", { ends: EITHER });
}

function prepareBusy(place: Place, book: Book): void {
  for (const id of ["a", "b"]) dropTask(place, book, id, "wait");
}

export const STEERING: readonly Operation[] = [
  steering({
    name: "pause",
    command: { command: "pause" },
    result: { paused: true },
    event: "paused",
    prepare: (place, book) => dropTask(place, book, "a", "wait"),
    before: (place) => untilRuns(place, 1),
    check: (place) => expectControl(place, { paused: true, paused_by: ID }),
  }),
  steering({
    name: "resume",
    command: { command: "resume" },
    result: { paused: false },
    event: "resumed",
    prepare(place, book) {
      dropTask(place, book, "a");
      putControl(place, { paused: true, paused_by: "somebody" });
    },
    check: (place) => expectControl(place, { paused: false, paused_by: null }),
  }),
  steering({
    name: "set-workers",
    command: { command: "set-workers", args: { workers: 1 } },
    result: { workers: 1 },
    event: "workers_changed",
    prepare: (place, book) => dropTask(place, book, "a"),
    check: (place) => expectControl(place, { max_workers: 1, max_workers_by: ID }),
  }),
  steering({
    name: "set-limit",
    command: { command: "set-limit", args: { group: "gpu", slots: 1, paused: true } },
    result: { group: "gpu", slots: 1, paused: true },
    event: "limits_changed",
    prepare: (place, book) => dropTask(place, book, "a"),
    check: (place) =>
      expectControl(place, { limit_changes: { "group:gpu": { slots: 1, paused: true } } }),
  }),
  steering({
    name: "replan",
    command: { command: "replan" },
    result: { replanPaused: true },
    event: "replan_started",
    prepare(place, book) {
      dropTask(place, book, "a");
      writePlanner(place, "done");
    },
    check: (place) => [
      ...expectControl(place, { replan_paused: true }),
      ...(isPlanning(place) ? [] : ["the planner is not open"]),
    ],
    checkEnd: (place) => {
      const ended = countEvents(place, "replan_finished");
      return ended === 1 ? [] : [`the replanning ended ${ended} times`];
    },
  }),
  steering({
    name: "cancel",
    command: { command: "cancel", args: { node: "a" } },
    result: { cancelled: "a" },
    event: "cancelled",
    prepare: prepareTwo,
    before: runPaused,
    check: (place) => expectWaiting(place, "a"),
    checkEnd: (place) => [...expectRuns(place, "a", 2), ...expectAttempts(place, "outbox", "a", 1)],
  }),
  steering({
    name: "cancel-final",
    command: { command: "cancel", args: { node: "a", final: true } },
    result: { cancelled: "a", final: true },
    event: "cancelled",
    prepare(place, book) {
      dropTask(place, book, "a", "wait", { ends: ["cancelled"] }, { max_attempts: 1 });
      dropTask(place, book, "b", "wait", { ends: EITHER });
    },
    before: runPaused,
    check: (place) => expectAttempts(place, "failed", "a", 1),
    checkEnd: (place) => expectRuns(place, "a", 1),
  }),
  steering({
    name: "cancel-final-waiting",
    command: { command: "cancel", args: { node: "a", final: true } },
    result: { cancelled: "a", final: true },
    event: "cancelled",
    prepare(place, book) {
      const later = Math.floor(Date.now() / 1000) + 3600;
      const ends = { ends: ["cancelled"], hasEvents: false } as const;
      dropTask(place, book, "a", "ok", ends, { not_before: later });
    },
    check: (place) => expectAttempts(place, "failed", "a", 0),
    checkEnd: (place) => expectRuns(place, "a", 0),
  }),
  steering({
    name: "retry",
    command: { command: "retry", args: { node: "a" } },
    result: { retried: "a" },
    prepare(place, book) {
      putFailed(place, book, "a");
      putControl(place, { paused: true, paused_by: "somebody" });
    },
    check: (place) => expectWaiting(place, "a"),
    checkEnd: (place) => [...expectRuns(place, "a", 1), ...expectAttempts(place, "outbox", "a", 1)],
  }),
  steering({
    name: "edit",
    command: { command: "edit" },
    argsOf(place) {
      const bytes = fs.readFileSync(join(place.tree.mailbox, "inbox", "a.json"));
      return { node: "a", text: withMembers(bytes, SOON), was: digestOf(bytes) };
    },
    prepare(place, book) {
      const later = Math.floor(Date.now() / 1000) + 3600;
      const text = dropTask(place, book, "a", "ok", {}, { not_before: later });
      const promised = book.tasks["a"];
      if (promised !== undefined) promised.text = withMembers(Buffer.from(text), SOON).trim();
      putControl(place, { paused: true, paused_by: "somebody" });
    },
    check: (place) => expectWaiting(place, "a"),
    checkEnd: (place) => [...expectRuns(place, "a", 1), ...expectAttempts(place, "outbox", "a", 1)],
  }),
  steering({
    name: "drain",
    command: { command: "drain" },
    prepare: prepareBusy,
    before: (place) => untilRuns(place, 2),
  }),
  steering({
    name: "stop",
    command: { command: "stop" },
    prepare: prepareBusy,
    before: (place) => untilRuns(place, 2),
  }),
];
