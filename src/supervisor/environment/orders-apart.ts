/** Makes the `Apart` of a service: with the clock of the supervisor, and its alerts. */
import { Apart } from "../../core/apart.ts";
import type { Environment } from "./environment.ts";

/** @param what the orders, for people: `the landing of` */
export function ordersApart(
  { alerts, trays }: Pick<Environment, "alerts" | "trays">,
  what: string,
): Apart {
  return new Apart({
    what,
    nowMs: () => trays.clock.monotonicMs(),
    tell: (key, message) => alerts.report(key, message),
  });
}
