/** Bridges that are broken on purpose: a storm that does not find them proves nothing. */
import { Machine } from "../../../../src/parts/cluster/protocol/machine.ts";
import type { Result } from "../../../../src/parts/cluster/protocol/messages.ts";
import { Origin } from "../../../../src/parts/cluster/protocol/origin.ts";
import type { Delivery } from "../../../../src/parts/cluster/protocol/ports.ts";
import { breakBridges } from "../../../crash/cluster/broken.ts";

/** When a result comes again (ms): results do, until they are confirmed. */
const ECHOES_MS = [50, 200, 600, 1500, 4000];

// biome-ignore lint/suspicious/noExplicitAny: it stands for methods of several classes.
type Method = (this: any, ...args: any[]) => Promise<void>;

export const BROKEN: Readonly<Record<string, () => void>> = {
  "no renewal": () => replace(Machine.prototype, "renew", () => async () => {}),
  "no stop": () => {
    // One that is cut off goes on with what it runs.
    replace(
      Machine.prototype,
      "leave",
      (own) =>
        async function (id, note, state) {
          if (state === "over") await own.call(this, id, note, state);
        },
    );
  },
  // What a machine tells counts, although another one has got the job since.
  "no order": () => replace(Origin.prototype, "mayEnd", () => async () => true as never),
  "no fence": () => {
    breakBridges("any result settles the run that waits");
    replace(
      Origin.prototype,
      "onResult",
      (own) =>
        async function (result: Result, message: Delivery) {
          const nothing = { done: async () => {}, later: async () => {} };
          for (const ms of ECHOES_MS)
            setTimeout(() => void own.call(this, result, nothing).catch(() => {}), ms);
          await own.call(this, result, message);
        },
    );
  },
  "result before the run": () =>
    replace(
      Machine.prototype,
      "onJob",
      (own) =>
        async function (job, ...more) {
          const end = {
            status: "completed",
            output: null,
            verdict: "pass",
            verdict_reason: "",
            exit_code: 0,
          };
          await this.tell({ dispatch: job.dispatch, target: job.target }, end);
          await own.call(this, job, ...more);
        },
    ),
};

function replace(of: object, method: string, instead: (own: Method) => Method): void {
  const methods = of as Record<string, Method>;
  methods[method] = instead(methods[method] as Method);
}

/** Breaks them in this process. */
export function breakStorm(name: string): void {
  const broken = BROKEN[name];
  if (broken === undefined) throw new Error(`no broken variant ${name}`);
  broken();
}
