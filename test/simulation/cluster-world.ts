/** One task of a tree, two machines and a broker as plain data: what the ports of the cluster's protocol do in the simulation. */
import { type Dispatch, dispatchId } from "../../src/parts/cluster/protocol/dispatch.ts";
import type { End, Job, Result } from "../../src/parts/cluster/protocol/messages.ts";
import type { HoldState, Note, Place } from "../../src/parts/cluster/protocol/ports.ts";

export const MACHINES = ["a", "b"] as const;
export const ACK_WAIT_MS = 30_000;
export const SILENCE_MS = 3 * ACK_WAIT_MS;
export const ANSWER_MS = 2000;
export const ATTEMPTS_MAX = 2;
const TREE = "home.tree0000";
const TARGET = "any";

/** How often something may go wrong. */
export interface Budget {
  /** The bridge of the origin is killed. */
  originKills: number;
  /** The bridge of a machine is killed: its runs go on. */
  kills: number;
  /** A machine is lost for ever, with what runs on it. */
  losses: number;
  /** A machine dies with what runs on it, and comes back: its pool says then that these runs have died. */
  deaths: number;
  /** All servers lose their disks. */
  wipes: number;
  /** A machine cannot reach the broker for a while. */
  cuts: number;
  /** A run fails. */
  failures: number;
  /** A person cancels the task at its origin. */
  cancels: number;
  /** The held task is let go, and held again. */
  returns: number;
  /** A call is carried out, and its answer is lost. */
  lostAnswers: number;
}

export const NO_FAULTS: Budget = {
  originKills: 0,
  kills: 0,
  losses: 0,
  deaths: 0,
  wipes: 0,
  cuts: 0,
  failures: 0,
  cancels: 0,
  returns: 0,
  lostAnswers: 0,
};

/** A call of a bridge that is under way: it is run again on the answers that it has got. */
export interface Handler {
  name: string;
  args: readonly unknown[];
  /** Arguments after the message. */
  more?: readonly unknown[];
  answers: Answer[];
  /** The message that it handles: it comes again if the call fails. */
  message?: { kind: "job" | "result" | "over"; key: string; seq: number };
}

export type Answer = { value: unknown } | { error: string };

export interface Bridge {
  isUp: boolean;
  /** Times by key, in ms from now: 0 or less. */
  memory: Record<string, unknown>;
  /** The dispatches of which it is not sure that no other machine has got them. */
  unsure: string[];
  handler?: Handler;
}

export interface LocalTask {
  state: "waits" | "runs" | "settled";
  isCancelWanted: boolean;
  end?: End;
}

export interface MachineState {
  bridge: Bridge;
  isLost: boolean;
  isConnected: boolean;
  notes: Record<string, Note>;
  tasks: Record<string, LocalTask>;
}

export interface World {
  left: Budget;
  origin: Bridge;
  task: { attempt: number; state: "held" | "returned" | "settled"; isCancelled: boolean };
  broker: {
    birth: number;
    seq: number;
    jobs: Record<string, { job: Job; seq: number; deliveries: number; holder?: string }>;
    results: Record<string, { result: Result; seq: number; inHand: boolean }>;
    overs: Record<string, { machine: string; id: string; seq: number; inHand: boolean }>;
  };
  machines: Record<string, MachineState>;
  /** How often each dispatch was begun. */
  starts: Record<string, number>;
  /** The machines that were down or cut off when all others had answered the origin. */
  silent: string[];
  /** What the faults so far may cost: a second run; two runs at once. */
  mayRunTwice: boolean;
  mayOverlap: boolean;
  faults: string[];
}

export function newWorld(left: Budget): World {
  const machine = (): MachineState => ({
    bridge: { isUp: true, memory: {}, unsure: [] },
    isLost: false,
    isConnected: true,
    notes: {},
    tasks: {},
  });
  return {
    left: { ...left },
    origin: { isUp: true, memory: {}, unsure: [] },
    task: { attempt: 1, state: "held", isCancelled: false },
    broker: { birth: 1, seq: 0, jobs: {}, results: {}, overs: {} },
    machines: Object.fromEntries(MACHINES.map((name) => [name, machine()])),
    starts: {},
    silent: [],
    mayRunTwice: false,
    mayOverlap: false,
    faults: [],
  };
}

export function dispatchOf(attempt: number): Dispatch {
  return { tree: TREE, task: "t", submission: "s", attempt };
}

export function jobOf({ task }: World): Job {
  return { dispatch: dispatchOf(task.attempt), target: TARGET, task: { prompt: "?" } };
}

export function machineOf(world: World, name: string): MachineState {
  const machine = world.machines[name];
  if (machine === undefined) throw new Error(`no machine ${name}`);
  return machine;
}

export function bridgeOf(world: World, name: string): Bridge {
  return name === "origin" ? world.origin : machineOf(world, name).bridge;
}

/** What the calls of a bridge do. Each is one step: others act before and after it. */
export type Calls = Record<string, (world: World, ...args: never[]) => unknown>;

export const ORIGIN_CALLS = {
  standing({ task }: World, { attempt }: Dispatch): HoldState {
    if (task.state === "settled" || task.attempt !== attempt) return "over";
    return task.state === "held" ? "waits" : "unsure";
  },
  settle(world: World, { attempt }: Dispatch, result: Result): boolean {
    const { dispatch, end } = result;
    const { task } = world;
    if (task.state !== "held" || task.attempt !== attempt) return false;
    noteEndedByOlder(world, result);
    endRun(world, dispatch.attempt, end);
    return true;
  },
  publishJob({ broker }: World, job: Job): void {
    const id = dispatchId(job.dispatch);
    broker.jobs[id] ??= { job, seq: ++broker.seq, deliveries: 0 };
  },
  hasJob: ({ broker }: World, _target: string, id: string): boolean =>
    broker.jobs[id] !== undefined,
  ask(): void {},
  bookCosts(): void {},
  hasResult: ({ broker }: World, id: string): boolean =>
    Object.values(broker.results).some(({ result }) => dispatchId(result.dispatch) === id),
  dropJob({ broker }: World, _target: string, id: string): void {
    delete broker.jobs[id];
  },
  publishOver({ broker }: World, machine: string, id: string): void {
    broker.overs[`${machine} ${id}`] = { machine, id, seq: ++broker.seq, inHand: false };
  },
  ...messageCalls(),
};

export const MACHINE_CALLS = {
  note: ({ notes }: MachineState, id: string): Note | undefined => notes[id],
  saveNote({ notes }: MachineState, id: string, note: Note): void {
    notes[id] = note;
  },
  removeNote({ notes }: MachineState, id: string): void {
    delete notes[id];
  },
  placeOf({ tasks }: MachineState, id: string): Place {
    const task = tasks[id];
    if (task === undefined) return "none";
    return task.state === "settled" && !task.isCancelWanted ? "settled" : "unsettled";
  },
  whyRefused: (): string | undefined => undefined,
  submit({ tasks }: MachineState, id: string): void {
    tasks[id] ??= { state: "waits", isCancelWanted: false };
  },
  endOf: ({ tasks }: MachineState, id: string): End | undefined => tasks[id]?.end,
  cancel({ tasks }: MachineState, id: string): void {
    const task = tasks[id];
    if (task !== undefined) task.isCancelWanted = true;
  },
  runAgain({ tasks }: MachineState, id: string): void {
    if (tasks[id]?.end !== undefined) tasks[id] = { state: "waits", isCancelWanted: false };
  },
};

export const MACHINE_BROKER_CALLS = {
  publishResult({ broker }: World, result: Result): void {
    const key = `${dispatchId(result.dispatch)} ${result.machine}`;
    broker.results[key] = { result, seq: ++broker.seq, inHand: false };
  },
  finishJob({ broker }: World, lease: string): void {
    const [birth, seq] = lease.split(" ").map(Number);
    if (birth !== broker.birth) return;
    for (const [id, job] of Object.entries(broker.jobs))
      if (job.seq === seq) delete broker.jobs[id];
  },
  renew(): void {},
  ...messageCalls(),
};

/** Calls that a process without a connection cannot make. */
export const BROKER_CALLS: ReadonlySet<string> = new Set([
  "publishJob",
  "hasJob",
  "hasResult",
  "ask",
  "publishOver",
  "publishResult",
  "dropJob",
  "finishJob",
  "renew",
  "done",
  "later",
]);

function messageCalls() {
  return {
    done({ broker }: World, { kind, key, seq }: NonNullable<Handler["message"]>): void {
      const kept: Record<string, { seq: number }> = broker[`${kind}s`];
      if (kept[key]?.seq === seq) delete kept[key];
    },
    later(world: World, message: NonNullable<Handler["message"]>): void {
      giveBack(world, message);
    },
  };
}

/** The message is delivered again. */
export function giveBack(
  { broker }: World,
  { kind, key, seq }: NonNullable<Handler["message"]>,
): void {
  if (kind === "job") {
    const job = broker.jobs[key];
    if (job?.seq === seq) delete job.holder;
    return;
  }
  const one = broker[`${kind}s`][key];
  if (one?.seq === seq) one.inHand = false;
}

/** The machines that can be heard now and have this dispatch, with what they noted about it. */
export function heardNotes(world: World): { machine: string; note: Note }[] {
  return MACHINES.flatMap((machine) => {
    const { bridge, isConnected, notes } = machineOf(world, machine);
    if (!bridge.isUp || !isConnected) return [];
    return Object.values(notes)
      .filter(({ state }) => state === "taken")
      .map((note) => ({ machine, note }));
  });
}

/** A result must not end a run that a machine which could answer the origin has begun under a newer lease. */
function noteEndedByOlder(world: World, { dispatch, machine, turn = "" }: Result): void {
  const id = dispatchId(dispatch);
  const { newest } = (world.origin.memory[id] ?? {}) as {
    newest?: { machine: string; heardMs: number };
  };
  const heard = newest?.heardMs === 0 ? newest.machine : undefined;
  const newer = heardNotes(world).find(
    ({ machine: other, note }) =>
      other !== machine &&
      (other === heard || !world.silent.includes(other)) &&
      dispatchId(note.dispatch) === id &&
      (note.turn ?? "") > turn,
  );
  if (newer !== undefined && machineOf(world, newer.machine).tasks[id]?.state === "runs")
    world.faults.push(
      `the report of an older lease of ${machine} ended the run at ${newer.machine}`,
    );
}

/** The mailbox protocol at the origin: the task is settled, or has its next run. */
function endRun(world: World, resultOf: number, end: End): void {
  const { task, faults } = world;
  world.silent = [];
  if (resultOf !== task.attempt)
    faults.push(`run ${task.attempt} was ended by the result of run ${resultOf}`);
  if (end.status === "failed" && end.kind === "cancelled")
    faults.push("a run that we have stopped was told as a result");
  if (end.status === "failed" && end.kind !== "cancelled" && task.attempt < ATTEMPTS_MAX)
    task.attempt++;
  else task.state = "settled";
}

/** A copy of plain data. */
export function copy<T>(value: T): T {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(copy) as T;
  const made: Record<string, unknown> = {};
  for (const name in value) made[name] = copy(value[name]);
  return made as T;
}
