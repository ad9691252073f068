/** For a bridge that starts while no server answers: another machine may soon get the jobs that an earlier process has taken. */
import { Machine } from "../protocol/machine.ts";
import type { MachineBroker } from "../protocol/ports.ts";
import type { MachineFiles } from "../tree/machine-files.ts";
import { BEATS_PER_WAIT, type BridgeOptions } from "./options.ts";
import { Turns } from "./turns.ts";

const refuse = (): Promise<never> => Promise.reject(new Error("no server answers"));

const NO_SERVER: MachineBroker = {
  publishResult: refuse,
  finishJob: refuse,
  renew: refuse,
};

/** Stops these runs in the time of `Machine.renew`, as a machine does that is cut off. @returns a function that ends this */
export function stopUnrenewed(
  tree: MachineFiles,
  { name, ackWaitMs, tell }: Pick<BridgeOptions, "name" | "ackWaitMs" | "tell">,
): () => Promise<void> {
  const nowMs = (): number => performance.now();
  const machine = new Machine({ name, tree, broker: NO_SERVER, nowMs, ackWaitMs });
  const turns = new Turns(tell);
  const look = (): void => {
    for (const id of tree.ids()) void turns.inTurn(id, () => machine.renew(id));
  };
  const timer = setInterval(look, ackWaitMs / BEATS_PER_WAIT);
  look();
  return async () => {
    clearInterval(timer);
    await turns.over();
  };
}
