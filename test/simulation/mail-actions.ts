/**
 * What may happen to the mail of `ann`, besides the looks of the supervisor: people send and read, tasks are accepted, begin, get
 * messages and end. Each action is made by the production functions; the moves of the mailbox itself are taken as one step.
 */
import { TaskMessages } from "../../src/agents/stream/task-messages.ts";
import { encodeRecord } from "../../src/codec/records.ts";
import { formatName, leaseOf, type ProcessingName, parseName } from "../../src/core/names.ts";
import type { AttemptOutcome } from "../../src/core/outcome.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import type { Task } from "../../src/core/task.ts";
import { accept, claimReady, putBack } from "../../src/mailbox/claim/claim.ts";
import { closeTickets } from "../../src/mailbox/files/tickets.ts";
import { runWake } from "../../src/parts/mail/delivery/wake-run.ts";
import { runNotes } from "../../src/parts/mail/exits/run-notes.ts";
import { OUTSIDE } from "../../src/parts/mail/scope/scope.ts";
import { send } from "../../src/parts/mail/send/send.ts";
import { moveCursor } from "../../src/parts/mail/store/cursors.ts";
import { unreadOf } from "../../src/parts/mail/store/inbox.ts";
import {
  ANN,
  folder,
  type Run,
  STATE,
  settings,
  store,
  traysNow,
  type World,
} from "./mail-world.ts";

export interface Action {
  name: string;
  /** What it could be done to now. */
  targets: (world: World) => readonly string[];
  /** Changes the world in place. */
  act: (world: World, target: string) => void | Promise<void>;
  /** It waits for something in between, so it cannot come in the middle of a look. */
  isSlow?: true;
  /** A supervisor does it, and may die in it. */
  isOfSupervisor?: true;
  /** It happens also when all goes well. */
  isFair?: true;
}

/** The task of a person. */
const TASK = "p";
const isWake = (id: string): boolean => id.startsWith("wake.");
const boxOf = (id: string): TaskMessages => new TaskMessages(STATE, id, false);

export function waitingIds({ disk }: World): string[] {
  return [...disk.entriesOf(traysNow().inbox).keys()].map((name) => name.replace(".json", ""));
}

export function liveNames({ disk }: World): ProcessingName[] {
  return [...disk.entriesOf(traysNow().processing).keys()].flatMap((name) => parseName(name) ?? []);
}

function nameOf(world: World, id: string): ProcessingName {
  const found = liveNames(world).find((name) => name.id === id);
  if (found === undefined) throw new Error(`${id} is not in work`);
  return found;
}

const idsIn = (world: World, stage: "ready" | "w", isBegun?: boolean): string[] =>
  liveNames(world)
    .filter((name) => name.stage === stage)
    .map(({ id }) => id)
    .filter((id) => isBegun === undefined || world.runs.has(id) === isBegun);

const idsOfRuns = ({ runs }: World, is: (run: Run, id: string) => boolean): string[] =>
  [...runs].filter(([id, run]) => is(run, id)).map(([id]) => id);

const newsOf = (id: string, { given }: Run): number[] =>
  boxOf(id)
    .unread()
    .map(({ n }) => n)
    .filter((n) => !given.includes(n));

function setRun(world: World, id: string, run: Run | undefined): void {
  const runs = new Map(world.runs);
  if (run === undefined) runs.delete(id);
  else runs.set(id, run);
  world.runs = runs;
}

function use(world: World, key: keyof World["left"]): void {
  world.left = { ...world.left, [key]: world.left[key] - 1 };
}

/** Writes the offer, as each run does, before its program gets these messages. */
function give(id: string, numbers: readonly number[]): void {
  const offer = { v: 1, uuid: "u", via: "packet", events: "runs/x", from: 0, at: 0 } as const;
  for (const n of numbers) boxOf(id).noteOffer(n, offer);
}

function settle(world: World, id: string, outcome: AttemptOutcome): void {
  const trays = traysNow();
  const name = nameOf(world, id);
  const isGood = outcome.kind === "completed";
  const rest = isGood
    ? { status: "completed", verdict: outcome.verdict, verdict_reason: outcome.verdictReason }
    : { status: "failed", kind: "exit", error: "it broke" };
  const record = {
    task_id: id,
    ...rest,
    output: null,
    attempts: name.attempt,
    agent_id: ANN,
    lease: leaseOf(name),
  };
  const path = isGood ? `${trays.outbox}/${id}_result.json` : `${trays.failed}/${id}_error.json`;
  trays.storage.create(path, encodeRecord(record as never, undefined));
  trays.storage.unlink(`${trays.processing}/${formatName(name)}`);
  setRun(world, id, undefined);
  const { seen, failed } = world.truth;
  const isRead = textsOf(id).some((text) => idsOf(text).some((one) => seen.has(one)));
  if (isWake(id) && !isRead) world.truth = { ...world.truth, failed: new Set([...failed, id]) };
}

function again(world: World, id: string, usesAttempt: boolean): void {
  const trays = traysNow();
  const name = nameOf(world, id);
  const path = `${trays.processing}/${formatName(name)}`;
  putBack(trays, { name, file: formatName(name), path }, 0, usesAttempt);
  setRun(world, id, undefined);
}

/** The ids of the messages in a text of the mail. */
export function idsOf(text: string): string[] {
  return [...text.matchAll(/\((m\d+)[,)]/g)].map(([, id = ""]) => id);
}

/** All that was said to the task. */
export function textsOf(id: string): string[] {
  const { disk } = traysDisk();
  const dir = `${STATE}/say/${id}`;
  if (disk.look(dir) === undefined) return [];
  return disk
    .list(dir)
    .filter((name) => /^\d+\.json$/.test(name))
    .map((name) => String(JSON.parse(String(disk.read(`${dir}/${name}`, 1e9).bytes)).text));
}

/** A wake-up whose program is started for nothing. */
function explainNeedless({ disk }: World, id: string): string | undefined {
  if (!isWake(id) || unreadOf(folder, ANN).messages.length > 0) return undefined;
  const dir = `${STATE}/say/${id}`;
  const files = disk.look(dir) === undefined ? [] : disk.list(dir);
  const isGiven = files.some((name) => name.endsWith(".offer.json"));
  return isGiven ? undefined : `${id} starts its agent, and nothing is unread`;
}

let worldNow: World | undefined;
/** The world whose disk is in use. */
export function inWorld<T extends World>(world: T): T {
  worldNow = world;
  return world;
}
function traysDisk(): World {
  if (worldNow === undefined) throw new Error("there is no world");
  return worldNow;
}

export const ACTIONS: readonly Action[] = [
  {
    name: "a person sends",
    targets: ({ left }) => (left.sends > 0 ? [`m${left.sends}`] : []),
    act(world, id) {
      use(world, "sends");
      send(
        store,
        { id, scope: OUTSIDE, from: "bob", via: "cli", to: [ANN], text: "look" },
        world.nowMs,
      );
    },
  },
  {
    name: "a person reads ann's mail",
    targets: ({ left }) =>
      left.acks > 0 && unreadOf(folder, ANN).messages.length > 0 ? [ANN] : [],
    act(world) {
      use(world, "acks");
      const { upto } = unreadOf(folder, ANN);
      world.truth = { ...world.truth, acked: Math.max(world.truth.acked, upto) };
      moveCursor(folder, ANN, upto, { by: "ack", atMs: world.nowMs });
    },
  },
  {
    name: "a person drops a task",
    targets: ({ left }) => (left.tasks > 0 ? [TASK] : []),
    act(world, id) {
      use(world, "tasks");
      const task = { id, agent: ANN, prompt: "work" };
      traysNow().storage.create(
        `${traysNow().inbox}/${id}.json`,
        Buffer.from(JSON.stringify(task)),
      );
    },
  },
  {
    name: "accepts",
    isOfSupervisor: true,
    isFair: true,
    targets: (world) => (world.supervisor === undefined ? [] : waitingIds(world)),
    act(world, id) {
      const trays = traysNow();
      const { notes } = world.supervisor ?? { notes: new Map() };
      if (!notes.has(id)) {
        const note = { v: 1, task: id, agent: ANN, run: null } as const;
        notes.set(id, { ...note });
        runNotes(STATE).replace(note.task, note);
      }
      const facts = trays.storage.look(`${trays.inbox}/${id}.json`);
      if (facts !== undefined && facts.nlink > 1) closeTickets(trays, id, facts.ino);
      if (!accept(trays, { id, submission: "s", attempt: 1, stage: "ready", token: "" })) return;
      const { wakes } = world.truth;
      if (isWake(id))
        world.truth = {
          ...world.truth,
          wakes: new Map([...wakes, [id, (wakes.get(id) ?? 0) + 1]]),
        };
    },
  },
  {
    name: "is claimed",
    isFair: true,
    targets: (world) => idsIn(world, "ready"),
    act(world, id) {
      claimReady(traysNow(), nameOf(world, id), "o");
    },
  },
  {
    name: "begins",
    isSlow: true,
    isFair: true,
    targets: (world) => idsIn(world, "w", false),
    async act(world, id) {
      const given = boxOf(id)
        .unread()
        .map(({ n }) => n);
      let hasBegun = false;
      const start = async (): Promise<AttemptOutcome> => {
        hasBegun = true;
        const fault = explainNeedless(world, id);
        if (fault !== undefined)
          world.truth = { ...world.truth, faults: [...world.truth.faults, fault] };
        return { kind: "released", message: "" };
      };
      const assigned = {
        agent: { name: ANN, run: start },
        assignment: { task: { id, agent: ANN } as Task },
      };
      const outcome = isWake(id)
        ? await runWake({ settings, tree: stateTree(STATE) }, assigned as never)
        : await start();
      if (!hasBegun) return settle(world, id, outcome);
      world.truth = { ...world.truth, ran: new Set([...world.truth.ran, id]) };
      give(id, given);
      setRun(world, id, { given, hasAnswered: false });
    },
  },
  {
    name: "has its model answer",
    isFair: true,
    targets: (world) => idsOfRuns(world, (run) => !run.hasAnswered || run.given.length > 0),
    act(world, id) {
      const { given = [] } = world.runs.get(id) ?? {};
      const texts = textsOf(id);
      const ids = given.flatMap((n) => idsOf(texts[n - 1] ?? ""));
      world.truth = { ...world.truth, seen: new Set([...world.truth.seen, ...ids].sort()) };
      for (const n of given) boxOf(id).noteRead(n, "runs/x");
      setRun(world, id, { given: [], hasAnswered: true });
    },
  },
  {
    name: "gets a message at work",
    isFair: true,
    targets: (world) =>
      idsOfRuns(world, (run, id) => run.hasAnswered && newsOf(id, run).length > 0),
    act(world, id) {
      const run = world.runs.get(id) ?? { given: [], hasAnswered: true };
      const news = newsOf(id, run);
      give(id, news);
      setRun(world, id, { ...run, given: [...run.given, ...news] });
    },
  },
  {
    name: "ends well",
    isFair: true,
    targets: (world) => idsOfRuns(world, (run) => run.hasAnswered && run.given.length === 0),
    act(world, id) {
      // A message that came last: the task goes on in another run.
      if (boxOf(id).unread().length > 0) return again(world, id, false);
      const good = { kind: "completed", output: null, verdict: "pass" } as const;
      settle(world, id, { ...good, verdictReason: "", exitCode: 0 });
    },
  },
  {
    name: "breaks",
    targets: (world) => (world.left.failures > 0 ? idsIn(world, "w") : []),
    act(world, id) {
      use(world, "failures");
      if (nameOf(world, id).attempt < world.attemptsMax) again(world, id, true);
      else settle(world, id, { kind: "failed" } as AttemptOutcome);
    },
  },
];
