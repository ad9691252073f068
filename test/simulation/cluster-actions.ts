/** Who may do what in the simulation of the cluster, and how a bridge's call goes on by one step. */
import { dispatchId } from "../../src/parts/cluster/protocol/dispatch.ts";
import { Machine } from "../../src/parts/cluster/protocol/machine.ts";
import type { End } from "../../src/parts/cluster/protocol/messages.ts";
import { Origin } from "../../src/parts/cluster/protocol/origin.ts";
import type { Delivery, Note } from "../../src/parts/cluster/protocol/ports.ts";
import {
  ACK_WAIT_MS,
  ANSWER_MS,
  type Answer,
  BROKER_CALLS,
  type Budget,
  bridgeOf,
  copy,
  dispatchOf,
  giveBack,
  type Handler,
  heardNotes,
  jobOf,
  type LocalTask,
  MACHINE_BROKER_CALLS,
  MACHINE_CALLS,
  MACHINES,
  machineOf,
  ORIGIN_CALLS,
  SILENCE_MS,
  type World,
} from "./cluster-world.ts";

export interface Action {
  name: string;
  /** Takes part when all goes well. */
  isFair: boolean;
  act(world: World): void | Promise<void>;
}

interface Known {
  heardMs: number;
  askedMs?: number;
  newest?: { machine: string; turn: string; heardMs: number };
  freshMs?: number;
  doubtedMs?: number;
}

type Message = NonNullable<Handler["message"]>;

const COMPLETED: End = {
  status: "completed",
  output: null,
  verdict: "pass",
  verdict_reason: "",
  exit_code: 0,
};

function failedEnd(kind: "exit" | "cancelled"): End {
  return { status: "failed", kind, code: "Err", error: kind, exit_code: 1, signal: null };
}

/** All that can happen now. */
export function actionsOf(world: World): Action[] {
  return [
    ...bridgeActions(world, "origin", originHandlers(world)),
    ...MACHINES.flatMap((name) => machineActions(world, name)),
    ...brokerActions(world),
    ...personActions(world),
  ];
}

function spend(world: World, what: keyof Budget): void {
  world.left[what]--;
}

function bridgeActions(world: World, name: string, handlers: readonly Handler[]): Action[] {
  const bridge = bridgeOf(world, name);
  const actions: Action[] = [];
  const { handler } = bridge;
  if (!bridge.isUp) {
    if (name !== "origin" && machineOf(world, name).isLost) return [];
    const act = (next: World): void => {
      bridgeOf(next, name).isUp = true;
      if (name === "origin") adoptAll(next);
    };
    return [{ name: `the bridge of ${name} starts`, isFair: true, act }];
  }
  if (handler !== undefined) {
    actions.push({
      name: `${name} ${handler.name}: call ${handler.answers.length + 1}`,
      isFair: true,
      act: (next) => advance(next, name),
    });
    if (world.left.lostAnswers > 0)
      actions.push({
        name: `${name} ${handler.name}: call ${handler.answers.length + 1}, and its answer is lost`,
        isFair: false,
        act: (next) => advance(next, name, true),
      });
  } else {
    for (const one of handlers)
      actions.push({
        name: `${name} ${one.name}`,
        isFair: true,
        async act(next) {
          bridgeOf(next, name).handler = copy(one);
          take(next, name, one.message);
          await advance(next, name);
        },
      });
  }
  const kills = name === "origin" ? "originKills" : "kills";
  if (world.left[kills] > 0)
    actions.push({
      name: `the bridge of ${name} is killed`,
      isFair: false,
      act(next) {
        spend(next, kills);
        if (name !== "origin") next.mayRunTwice = next.mayOverlap = true;
        kill(next, name);
      },
    });
  return actions;
}

/** All numbers here have one digit. */
function turnOf(...parts: readonly number[]): string {
  return parts.join(" ");
}

function take({ broker }: World, name: string, message: Message | undefined): void {
  if (message === undefined) return;
  if (message.kind === "job") {
    const job = broker.jobs[message.key];
    if (job === undefined) return;
    job.holder = name;
    job.deliveries++;
    return;
  }
  const one = broker[`${message.kind}s`][message.key];
  if (one !== undefined) one.inHand = true;
}

function kill(world: World, name: string): void {
  const bridge = bridgeOf(world, name);
  bridge.isUp = false;
  bridge.memory = {};
  bridge.unsure = [];
  const { handler } = bridge;
  delete bridge.handler;
  // The broker gives a job to others only when its time is over: see `brokerActions`.
  if (handler?.message !== undefined && handler.message.kind !== "job")
    giveBack(world, handler.message);
}

/** What a new process of the origin does before it publishes: it asks the broker for its jobs, and machines for what they have. */
function adoptAll(world: World): void {
  const jobs = Object.values(world.broker.jobs).map(({ job }) => job);
  if (world.task.state !== "settled") jobs.push(jobOf(world));
  const { memory } = world.origin;
  for (const { dispatch, target } of jobs)
    memory[dispatchId(dispatch)] = { dispatch, target, heardMs: -SILENCE_MS };
}

/** What the machine says of it in its reports. */
function isSure(world: World, name: string, { dispatch }: Note): boolean {
  const { memory, unsure } = bridgeOf(world, name);
  const id = dispatchId(dispatch);
  return Number(memory[id] ?? -ACK_WAIT_MS) > -ACK_WAIT_MS && !unsure.includes(id);
}

function originHandlers(world: World): Handler[] {
  const { broker, task } = world;
  const handlers: Handler[] = [];
  const results = Object.entries(broker.results).filter(([, { inHand }]) => !inHand);
  for (const [key, { result, seq }] of results)
    handlers.push({
      name: "onResult",
      args: [result],
      answers: [],
      message: { kind: "result", key, seq },
    });
  const job = jobOf(world);
  const id = dispatchId(job.dispatch);
  const known = world.origin.memory[id] as Known | undefined;
  const isSilent =
    known === undefined ||
    (known.heardMs <= -SILENCE_MS && (known.askedMs === undefined || known.askedMs <= -ANSWER_MS));
  if (task.state === "held" && isSilent)
    handlers.push({ name: "publish", args: [job], answers: [] });
  for (const one of Object.keys(world.origin.memory))
    if (task.state === "settled" || one !== id)
      handlers.push({ name: "dropIfOver", args: [one], answers: [] });
  for (const { machine, note } of heardNotes(world))
    if (
      dispatchId(note.dispatch) !== id ||
      task.state === "settled" ||
      known?.heardMs !== 0 ||
      !isHeard(known, note)
    )
      handlers.push({
        name: "onBeat",
        args: [machine, { ...note, is_sure: isSure(world, machine, note) }],
        answers: [],
      });
  return handlers;
}

function machineActions(world: World, name: string): Action[] {
  const { broker } = world;
  const machine = machineOf(world, name);
  const { notes, tasks, isConnected, isLost } = machine;
  if (isLost) return [];
  const handlers: Handler[] = [];
  if (isConnected) {
    for (const [key, { job, seq, deliveries, holder }] of Object.entries(broker.jobs))
      if (holder === undefined)
        handlers.push({
          name: "onJob",
          args: [job, `${broker.birth} ${seq}`],
          more: [0, turnOf(broker.birth, seq, deliveries + 1)],
          answers: [],
          message: { kind: "job", key, seq },
        });
    for (const [key, { machine: to, id, seq, inHand }] of Object.entries(broker.overs))
      if (to === name && !inHand)
        handlers.push({
          name: "onOver",
          args: [id],
          answers: [],
          message: { kind: "over", key, seq },
        });
  }
  for (const [id, note] of Object.entries(notes)) {
    const place = MACHINE_CALLS.placeOf(machine, id);
    if (place === "settled") {
      const isTold = broker.results[`${id} ${name}`] !== undefined && broker.jobs[id] === undefined;
      if (!isTold) handlers.push({ name: "report", args: [id], answers: [] });
    } else if (
      place === "none" ||
      !isConnected ||
      (note.state !== "taken" && !tasks[id]?.isCancelWanted)
    )
      handlers.push({ name: "renew", args: [id], answers: [] });
  }
  const actions = bridgeActions(world, name, handlers);
  for (const [id, task] of Object.entries(tasks))
    actions.push(...poolActions(world, name, id, task));
  if (isConnected && world.left.cuts > 0)
    actions.push({
      name: `${name} is cut off`,
      isFair: false,
      act(next) {
        spend(next, "cuts");
        next.mayRunTwice = true;
        machineOf(next, name).isConnected = false;
      },
    });
  if (!isConnected) {
    actions.push({
      name: `${name} is connected again`,
      isFair: true,
      act(next) {
        machineOf(next, name).isConnected = true;
      },
    });
    const renewed = Object.values(machine.bridge.memory) as number[];
    if (renewed.some((ms) => ms > -ACK_WAIT_MS))
      actions.push({
        name: `${name} stays cut off`,
        isFair: false,
        act(next) {
          const { bridge } = machineOf(next, name);
          for (const id of Object.keys(bridge.memory)) bridge.memory[id] = -ACK_WAIT_MS;
        },
      });
  }
  if (world.left.deaths > 0 && Object.values(tasks).some(({ state }) => state === "runs"))
    actions.push({
      name: `${name} dies, and comes back`,
      isFair: false,
      act(next) {
        spend(next, "deaths");
        next.mayRunTwice = true;
        kill(next, name);
        for (const task of Object.values(machineOf(next, name).tasks))
          if (task.state === "runs")
            Object.assign(task, { state: "settled", end: failedEnd("exit") });
      },
    });
  if (world.left.losses > 0)
    actions.push({
      name: `${name} is lost for ever`,
      isFair: false,
      act(next) {
        spend(next, "losses");
        const { jobs, results } = next.broker;
        // What it had told, and dropped, is not lost with it.
        if (Object.keys(jobs).length > 0 || Object.keys(results).length === 0)
          next.mayRunTwice = true;
        kill(next, name);
        const lost = machineOf(next, name);
        Object.assign(lost, { isLost: true, isConnected: false, notes: {}, tasks: {} });
      },
    });
  return actions;
}

function poolActions(world: World, name: string, id: string, task: LocalTask): Action[] {
  const change = (
    what: string,
    isFair: boolean,
    fields: Partial<LocalTask>,
    fault?: "failures",
  ): Action => ({
    name: `${name}: ${id} ${what}`,
    isFair,
    act(next) {
      const own = machineOf(next, name).tasks[id];
      if (own === undefined) return;
      Object.assign(own, fields);
      if (fault !== undefined) spend(next, fault);
      if (fields.state === "runs") begin(next, id);
    },
  });
  const actions: Action[] = [];
  if (task.isCancelWanted) {
    const end = { state: "settled" as const, end: failedEnd("cancelled") };
    const fields = task.state === "settled" ? {} : end;
    actions.push(change("is cancelled", true, { ...fields, isCancelWanted: false }));
  }
  if (task.state === "waits") actions.push(change("begins", true, { state: "runs" }));
  if (task.state === "runs") {
    actions.push(change("completes", true, { state: "settled", end: COMPLETED }));
    if (world.left.failures > 0)
      actions.push(
        change("fails", false, { state: "settled", end: failedEnd("exit") }, "failures"),
      );
  }
  return actions;
}

function begin(world: World, id: string): void {
  const starts = (world.starts[id] ?? 0) + 1;
  world.starts[id] = starts;
  const running = MACHINES.filter((name) => machineOf(world, name).tasks[id]?.state === "runs");
  if (starts > 1 && !world.mayRunTwice) world.faults.push("it ran twice");
  if (running.length > 1 && !world.mayOverlap) world.faults.push("two machines ran it at once");
}

function brokerActions(world: World): Action[] {
  const actions: Action[] = [];
  for (const [id, { holder }] of Object.entries(world.broker.jobs)) {
    if (holder === undefined || !hasLapsed(world, holder, id)) continue;
    actions.push({
      name: `the broker gives ${id} to others`,
      isFair: true,
      act(next) {
        const job = next.broker.jobs[id];
        if (job !== undefined) delete job.holder;
        // So long nobody has renewed it, or reported it.
        const { memory } = machineOf(next, holder).bridge;
        if (memory[id] !== undefined) memory[id] = -ACK_WAIT_MS;
        const known = next.origin.memory[id] as Known | undefined;
        if (known?.freshMs !== undefined) known.freshMs = -ACK_WAIT_MS;
      },
    });
  }
  if (world.left.wipes > 0)
    actions.push({
      name: "the broker loses its disk",
      isFair: false,
      act(next) {
        spend(next, "wipes");
        const { birth, seq } = next.broker;
        next.broker = { birth: birth + 1, seq, jobs: {}, results: {}, overs: {} };
      },
    });
  const current = dispatchId(dispatchOf(world.task.attempt));
  const known = world.origin.memory[current] as Known | undefined;
  const heard = heardNotes(world).filter(({ note }) => dispatchId(note.dispatch) === current);
  const isTaken = MACHINES.some((name) => isTaking(world, name, current));
  if (known === undefined || isTaken || world.origin.handler !== undefined) return actions;
  const pass = (
    name: string,
    fields: Partial<Known>,
    silent: (next: World) => string[] = (next) => next.silent,
  ): void => {
    const act = (next: World): void => {
      next.origin.memory[current] = { ...known, ...fields };
      next.silent = silent(next);
    };
    actions.push({ name, isFair: true, act });
  };
  const { newest, doubtedMs } = known;
  const isAllHeard = heard.every(({ note }) => isHeard(known, note));
  if (doubtedMs !== undefined && doubtedMs > -ANSWER_MS && isAllHeard)
    pass("all machines have answered", { doubtedMs: -ANSWER_MS }, ({ machines }) =>
      MACHINES.filter((name) => !(machines[name]?.bridge.isUp && machines[name].isConnected)),
    );
  if (
    newest !== undefined &&
    newest.heardMs > -SILENCE_MS &&
    !heard.some(({ machine }) => machine === newest.machine)
  )
    pass("the newest run is silent for long", { newest: { ...newest, heardMs: -SILENCE_MS } });
  if (heard.length > 0) return actions;
  if (known.heardMs > -SILENCE_MS)
    pass("the origin hears nothing for long", { heardMs: -SILENCE_MS });
  if (known.askedMs !== undefined && known.askedMs > -ANSWER_MS)
    pass("nobody answers the origin", { askedMs: -ANSWER_MS });
  return actions;
}

/** Whether the origin has heard of late of this delivery, or of a newer one. */
function isHeard({ newest }: Known, { turn = "" }: Note): boolean {
  if (newest === undefined || turn > newest.turn) return turn === "";
  return turn < newest.turn || newest.heardMs > -SILENCE_MS;
}

/** Whether the time of a delivery can be over: its machine is dead, or could not renew it and has stopped the run. */
function hasLapsed(world: World, holder: string, id: string): boolean {
  const { bridge, isConnected, isLost, notes, tasks } = machineOf(world, holder);
  // These calls are short, compared with all times of the protocol.
  if (world.origin.handler?.name === "onResult" || bridge.handler?.name === "report") return false;
  if (isLost || !bridge.isUp) return true;
  if (isTaking(world, holder, id)) return false;
  if (notes[id]?.state === "taken" && isConnected) return false;
  const task = tasks[id];
  if (task === undefined || task.state === "settled") return true;
  // What it could not renew it leaves, and stops, well before the time is over.
  if (bridge.handler?.name === "renew") return false;
  return notes[id]?.state !== "taken" && !task.isCancelWanted;
}

/** Whether a call of this machine is about to take this job: it is short, compared with all times of the protocol. */
function isTaking(world: World, name: string, id: string): boolean {
  const message = bridgeOf(world, name).handler?.message;
  return message?.kind === "job" && message.key === id;
}

function personActions({ task, left }: World): Action[] {
  const actions: Action[] = [];
  const set = (
    name: string,
    isFair: boolean,
    fields: Partial<World["task"]>,
    what?: "cancels" | "returns",
  ): void => {
    actions.push({
      name,
      isFair,
      act(next) {
        Object.assign(next.task, fields);
        if (what !== undefined) spend(next, what);
      },
    });
  };
  if (task.state !== "settled" && left.cancels > 0)
    set("a person cancels the task", false, { state: "settled", isCancelled: true }, "cancels");
  if (task.state === "held" && left.returns > 0)
    set("the task is let go", false, { state: "returned" }, "returns");
  if (task.state === "returned") set("the task is held again", true, { state: "held" });
  return actions;
}

const CUT = new Error("cut");

/** The call under way goes on by one step: all of it runs again on the answers so far, and is cut off after the next one. */
async function advance(world: World, name: string, isAnswerLost = false): Promise<void> {
  const bridge = bridgeOf(world, name);
  const handler = bridge.handler as Handler;
  const turn = new Turn(world, name, handler, isAnswerLost);
  const memory = copy(bridge.memory);
  const unsure = new Set(bridge.unsure);
  const call = turn.call.bind(turn);
  const { run, end } =
    name === "origin"
      ? originCall(handler, memory, call)
      : machineCall(name, handler, memory, unsure, call);
  let state: "open" | "done" | "failed" = "open";
  run().then(
    () => {
      state = "done";
    },
    (error: unknown) => {
      if (error !== CUT) state = "failed";
    },
  );
  for (let turns = 0; turns < 200 && state === "open" && !turn.isCut; turns++)
    await Promise.resolve();
  if (state === "open") return;
  delete bridge.handler;
  bridge.memory = end();
  bridge.unsure = [...unsure].sort();
  if (state === "failed" && handler.message !== undefined) giveBack(world, handler.message);
}

type Call = (object: "tree" | "broker" | "message", method: string, args: unknown[]) => unknown;

class Turn {
  isCut = false;
  private readonly world: World;
  private readonly name: string;
  private readonly handler: Handler;
  private isAnswerLost: boolean;
  private at = 0;
  private hasMoved = false;

  constructor(world: World, name: string, handler: Handler, isAnswerLost: boolean) {
    this.world = world;
    this.name = name;
    this.handler = handler;
    this.isAnswerLost = isAnswerLost;
  }

  call(object: "tree" | "broker" | "message", method: string, args: unknown[]): unknown {
    const isAsync = object !== "tree" || ASYNC.has(method);
    let answer = this.handler.answers[this.at++];
    if (answer === undefined) {
      if (this.hasMoved) {
        this.isCut = true;
        if (isAsync) return new Promise(() => {});
        throw CUT;
      }
      this.hasMoved = true;
      answer = this.make(object, method, args);
      this.handler.answers.push(answer);
    }
    if ("error" in answer) {
      const error = new Error(answer.error);
      if (isAsync) return Promise.reject(error);
      throw error;
    }
    const value = copy(answer.value);
    return isAsync ? Promise.resolve(value) : value;
  }

  private make(object: string, method: string, args: unknown[]): Answer {
    const { world, name } = this;
    const isOrigin = name === "origin";
    const isRemote = BROKER_CALLS.has(method);
    if (isRemote && !isOrigin && !machineOf(world, name).isConnected) return { error: "cut off" };
    const calls: Record<string, unknown> = isOrigin
      ? ORIGIN_CALLS
      : object === "tree"
        ? MACHINE_CALLS
        : MACHINE_BROKER_CALLS;
    const own = calls[method] as (of: unknown, ...given: unknown[]) => unknown;
    const of = !isOrigin && object === "tree" ? machineOf(world, name) : world;
    const given = object === "message" ? [this.handler.message] : args;
    const value: unknown = copy(own(of, ...given.map(copy)));
    if (!this.isAnswerLost || !isRemote) return { value };
    this.isAnswerLost = false;
    spend(world, "lostAnswers");
    return { error: "no answer" };
  }
}

const ASYNC: ReadonlySet<string> = new Set(["settle", "submit", "cancel", "runAgain"]);

function portOf<T>(object: "tree" | "broker" | "message", call: Call): T {
  return new Proxy(
    {},
    {
      get:
        (_, method) =>
        (...args: unknown[]) =>
          call(object, String(method), args),
    },
  ) as T;
}

interface Run {
  run: () => Promise<unknown>;
  /** What the process remembers then. */
  end: () => Record<string, unknown>;
}

function originCall({ name, args }: Handler, memory: Record<string, unknown>, call: Call): Run {
  const origin = new Origin({
    tree: portOf("tree", call),
    broker: portOf("broker", call),
    nowMs: () => 0,
    silenceMs: SILENCE_MS,
    answerMs: ANSWER_MS,
    ackWaitMs: ACK_WAIT_MS,
  });
  const { sent } = origin as unknown as { sent: Map<string, { heardMs: number }> };
  for (const [id, one] of Object.entries(memory)) sent.set(id, one as { heardMs: number });
  const message: Delivery = portOf("message", call);
  return {
    run: () => invoke(origin, name, [...args, message]),
    end: () =>
      Object.fromEntries(
        [...sent].map(([id, one]) => [id, { ...one, heardMs: Math.max(one.heardMs, -SILENCE_MS) }]),
      ),
  };
}

function machineCall(
  machineName: string,
  { name, args, more = [] }: Handler,
  memory: Record<string, unknown>,
  unsure: Set<string>,
  call: Call,
): Run {
  const machine = new Machine({
    name: machineName,
    tree: portOf("tree", call),
    broker: portOf("broker", call),
    nowMs: () => 0,
    ackWaitMs: ACK_WAIT_MS,
  });
  Object.assign(machine, { unsure });
  const { renewedMs } = machine as unknown as { renewedMs: Map<string, number> };
  for (const [id, ms] of Object.entries(memory)) renewedMs.set(id, ms as number);
  const message: Delivery = portOf("message", call);
  return {
    run: () => invoke(machine, name, [...args, message, ...more]),
    end: () => Object.fromEntries(renewedMs),
  };
}

function invoke(
  object: Origin | Machine,
  name: string,
  args: readonly unknown[],
): Promise<unknown> {
  const own = (object as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>)[
    name
  ];
  if (own === undefined) throw new Error(`no method ${name}`);
  return own.apply(object, [...args]);
}
