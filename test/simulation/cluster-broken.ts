/** Deliberately broken variants of the cluster's protocol. A search for faults must catch every one, or it proves nothing. */
import { type Dispatch, dispatchId } from "../../src/parts/cluster/protocol/dispatch.ts";
import { Machine } from "../../src/parts/cluster/protocol/machine.ts";
import type { Job, Result } from "../../src/parts/cluster/protocol/messages.ts";
import { Origin } from "../../src/parts/cluster/protocol/origin.ts";
import type {
  Delivery,
  MachineBroker,
  MachineTree,
  Note,
  OriginBroker,
  OriginTree,
} from "../../src/parts/cluster/protocol/ports.ts";
import { type Budget, ORIGIN_CALLS, type World } from "./cluster-world.ts";

interface OriginSelf {
  options: { tree: OriginTree; broker: OriginBroker; nowMs: () => number };
  sent: Map<string, { dispatch: Dispatch; target: string; heardMs: number; askedMs?: number }>;
  isNewest(id: string, machine: string, turn: string): boolean;
  tellOver(machine: string, target: string, id: string): Promise<void>;
}

interface MachineSelf {
  options: { name: string; tree: MachineTree; broker: MachineBroker };
  renewedMs: Map<string, number>;
  report(id: string): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: it stands for methods of two classes and of a port.
type Method = (this: any, ...args: any[]) => unknown;

interface Patch {
  of: object;
  method: string;
  instead: (own: Method) => Method;
}

interface Broken extends Patch {
  and?: Patch;
  /** The faults with which it shows. */
  left: Partial<Budget>;
}

export const BROKEN: Readonly<Record<string, Broken>> = {
  "a job is published once only": {
    of: Origin.prototype,
    method: "publish",
    left: { wipes: 1 },
    instead: (own) =>
      async function (this: OriginSelf, job: Job) {
        if (!this.sent.has(dispatchId(job.dispatch))) await own.call(this, job);
      },
  },
  "what left the broker is published again without asking the machines": {
    of: Origin.prototype,
    method: "publish",
    left: { wipes: 1 },
    instead: (own) =>
      async function (this: OriginSelf, job: Job) {
        const known = this.sent.get(dispatchId(job.dispatch));
        if (known !== undefined) known.askedMs = Number.NEGATIVE_INFINITY;
        await own.call(this, job);
      },
  },
  "it is published again while its result is at the broker": {
    of: ORIGIN_CALLS,
    method: "hasResult",
    left: { losses: 1, failures: 1 },
    instead: () => () => false,
  },
  "a new process publishes at once": {
    of: Origin.prototype,
    method: "publish",
    left: { originKills: 1 },
    instead: (own) =>
      async function (this: OriginSelf, job: Job) {
        const id = dispatchId(job.dispatch);
        if (this.sent.get(id)?.heardMs !== 0) this.sent.delete(id);
        await own.call(this, job);
      },
  },
  "any result settles the run that waits": {
    of: ORIGIN_CALLS,
    method: "standing",
    left: { failures: 1 },
    instead:
      () =>
      ({ task }: World) =>
        task.state === "held" ? "waits" : "over",
    and: {
      of: ORIGIN_CALLS,
      method: "settle",
      instead: (own) => (world: World, _dispatch: Dispatch, result: Result) =>
        own.call(undefined, world, { attempt: world.task.attempt }, result),
    },
  },
  "the receipt is sent before the settlement": {
    of: Origin.prototype,
    method: "onResult",
    left: { originKills: 1, wipes: 1 },
    instead: (own) =>
      async function (this: OriginSelf, result: Result, message: Delivery) {
        const { dispatch, target, machine } = result;
        await this.tellOver(machine, target, dispatchId(dispatch));
        await own.call(this, result, message);
      },
  },
  "a machine is told that it is over before the job is dropped": {
    of: Origin.prototype,
    method: "tellOver",
    left: { cancels: 1 },
    instead: () =>
      async function (this: OriginSelf, machine: string, target: string, id: string) {
        await this.options.broker.publishOver(machine, id);
        await this.options.broker.dropJob(target, id);
        this.sent.delete(id);
      },
    and: {
      of: Origin.prototype,
      method: "dropIfOver",
      instead: () =>
        async function (this: OriginSelf, id: string) {
          const sent = this.sent.get(id);
          if (
            sent !== undefined &&
            this.options.tree.standing(sent.dispatch, sent.target) === "over"
          )
            this.sent.delete(id);
        },
    },
  },
  "a result is forgotten when it is told": {
    of: Machine.prototype,
    method: "report",
    left: { wipes: 1 },
    instead: (own) =>
      async function (this: MachineSelf, id: string) {
        await own.call(this, id);
        this.options.tree.removeNote(id);
      },
  },
  "a run is stopped before that is noted": {
    of: Machine.prototype,
    method: "leave",
    left: { cuts: 1, kills: 1 },
    instead: (own) =>
      async function (this: MachineSelf, id: string, note: Note, state: string) {
        if (this.options.tree.placeOf(id) === "unsettled") await this.options.tree.cancel(id);
        await own.call(this, id, note, state);
      },
  },
  "the end of a run that was stopped is told": {
    of: Machine.prototype,
    method: "onJob",
    left: { cuts: 1 },
    instead: (own) =>
      async function (this: MachineSelf, job: Job, lease: string, delivery: Delivery) {
        const id = dispatchId(job.dispatch);
        const { dispatch, target } = job;
        if (this.options.tree.placeOf(id) !== "settled")
          return own.call(this, job, lease, delivery);
        this.options.tree.saveNote(id, { dispatch, target, lease, state: "taken" });
        return this.report(id);
      },
  },
  "the result of an older lease ends a newer run": {
    of: Origin.prototype,
    method: "mayEnd",
    left: { deaths: 1 },
    instead: () => async () => true,
  },
  "a result is believed before all machines were asked": {
    of: Origin.prototype,
    method: "mayEnd",
    left: { deaths: 1 },
    instead: () =>
      async function (this: OriginSelf, id: string, { machine, turn = "" }: Result) {
        return this.isNewest(id, machine, turn);
      },
  },
  "a run goes on when its job could not be renewed": {
    of: Machine.prototype,
    method: "leave",
    left: { cuts: 1 },
    instead: (own) =>
      async function (this: MachineSelf, id: string, note: Note, state: string) {
        if (state === "over") await own.call(this, id, note, state);
        else this.options.tree.saveNote(id, { ...note, state: "left" });
      },
  },
};

/** @returns what mends it again */
export function breakCluster(name: string): () => void {
  const { and, ...first } = BROKEN[name] as Broken;
  const mends = [first, ...(and === undefined ? [] : [and])].map(({ of, method, instead }) => {
    const methods = of as Record<string, Method>;
    const own = methods[method] as Method;
    methods[method] = instead(own);
    return () => {
      methods[method] = own;
    };
  });
  return () => {
    for (const mend of mends) mend();
  };
}
