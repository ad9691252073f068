/** Deliberately broken variants of what bridges do. A walk must catch every one, or it proves nothing. */
import { Sender } from "../../../src/parts/cluster/bridge/sender.ts";
import { type Dispatch, dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { Machine } from "../../../src/parts/cluster/protocol/machine.ts";
import type { Result } from "../../../src/parts/cluster/protocol/messages.ts";
import { Origin } from "../../../src/parts/cluster/protocol/origin.ts";
import type { Delivery, MachineTree, Note } from "../../../src/parts/cluster/protocol/ports.ts";
import { OriginFiles } from "../../../src/parts/cluster/tree/origin-files.ts";

// biome-ignore lint/suspicious/noExplicitAny: it stands for methods of several classes.
type Method = (this: any, ...args: any[]) => unknown;

interface Patch {
  of: object;
  method: string;
  instead: (own: Method) => Method;
}

interface Broken extends Patch {
  and?: Patch;
  /** The case of the task in which it shows. */
  in: string;
  /** Who goes on first, when it does not show with all. */
  first?: string;
}

interface MachineSelf {
  options: { tree: MachineTree };
}

/** The dispatch of this task that waits, whatever its attempt. */
function heldNow(files: OriginFiles, { task }: Dispatch): Dispatch | undefined {
  return files.held().find(({ dispatch }) => dispatch.task === task)?.dispatch;
}

export const BROKEN: Readonly<Record<string, Broken>> = {
  "the receipt is sent before the settlement": {
    in: "completes",
    first: "ba!",
    of: Origin.prototype,
    method: "onResult",
    instead: (own) =>
      async function (result: Result, message: Delivery) {
        const { dispatch, target, machine } = result;
        await this["tellOver"](machine, target, dispatchId(dispatch));
        await own.call(this, result, message);
      },
  },
  "any result settles the run that waits": {
    in: "fails once",
    of: OriginFiles.prototype,
    method: "standing",
    instead: () =>
      function (this: OriginFiles, dispatch: Dispatch) {
        return heldNow(this, dispatch) === undefined ? "over" : "waits";
      },
    and: {
      of: OriginFiles.prototype,
      method: "settle",
      instead: (own) =>
        function (this: OriginFiles, dispatch: Dispatch, result: Result) {
          return own.call(this, heldNow(this, dispatch) ?? dispatch, result);
        },
    },
  },
  "a result is forgotten when it is told": {
    in: "its servers lose all",
    of: Machine.prototype,
    method: "report",
    instead: (own) =>
      async function (this: MachineSelf, id: string) {
        await own.call(this, id);
        this.options.tree.removeNote(id);
      },
  },
  "a run is stopped before that is noted": {
    in: "is cut off",
    of: Machine.prototype,
    method: "leave",
    instead: (own) =>
      async function (this: MachineSelf, id: string, note: Note, state: string) {
        if (this.options.tree.placeOf(id) === "unsettled") await this.options.tree.cancel(id);
        await own.call(this, id, note, state);
      },
  },
  "a machine forgets a task that is over before it has stopped it": {
    in: "is cancelled",
    of: Machine.prototype,
    method: "onOver",
    instead: (own) =>
      async function (this: MachineSelf, id: string, message: Delivery) {
        this.options.tree.removeNote(id);
        await own.call(this, id, message);
      },
  },
  "a new process publishes at once what was sent before": {
    in: "completes",
    of: Sender.prototype,
    method: "look",
    instead: (own) =>
      async function () {
        this["hasAdopted"] = true;
        return own.call(this);
      },
  },
};

/** Breaks it in this process. */
export function breakBridges(name: string): void {
  const broken = BROKEN[name];
  if (broken === undefined) throw new Error(`no broken variant ${name}`);
  for (const { of, method, instead } of [
    broken,
    ...(broken.and === undefined ? [] : [broken.and]),
  ]) {
    const methods = of as Record<string, Method>;
    methods[method] = instead(methods[method] as Method);
  }
}
