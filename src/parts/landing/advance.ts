/** Takes the landing of an order one step further, in a supervisor. It submits the landing when the task has completed. */
import { landingIdOf } from "../../core/landing.ts";
import { locate } from "../../mailbox/find/locate.ts";
import { readSettled } from "../../mailbox/find/settled-record.ts";
import type { Environment } from "../../supervisor/environment/environment.ts";
import {
  type LandingOrder,
  readLanding,
  stateOf,
  writeLanding,
} from "../../worker/landing-files.ts";
import { isThere, submitLanding } from "./submit-landing.ts";

/** `void`: the run that wrote the order did not count. */
export type Step = "unsettled" | "submitted" | "landed" | "failed" | "void";

type Env = Pick<Environment, "trays" | "tree">;

/** @throws ErrTaskExists, system errors */
export async function advance(env: Env, order: LandingOrder): Promise<Step> {
  const { trays, tree } = env;
  const { task_id, lease } = order;
  const landing = landingIdOf(task_id);
  if (readLanding(tree.dir, task_id, "sent")?.lease !== lease) {
    const settled = settledAs(env, order);
    if (settled !== "completed") return settled;
    await submitLanding(trays, order);
    writeLanding(tree.dir, task_id, "sent", { v: 1, lease });
  }
  if (isThere(trays, landing)) return "submitted";
  const status = readSettled(trays, landing)?.record.status;
  if (status === "failed") return "failed";
  if (status === "completed") return "landed";
  if (isThere(trays, landing)) return "submitted";
  // Its record was removed: by a program that reads the outbox, by a person, or after its retention.
  return stateOf(tree.dir, order).landed === true ? "landed" : "failed";
}

function settledAs({ trays }: Env, { task_id, lease }: LandingOrder): Step | "completed" {
  const record = readSettled(trays, task_id)?.record;
  if (record?.lease === lease) return record.status === "completed" ? "completed" : "void";
  if (isThere(trays, task_id)) return "unsettled";
  // The record is read again, because the task may have settled in between.
  const again = readSettled(trays, task_id)?.record;
  if (again?.lease === lease) return "completed";
  if (again !== undefined || locate(trays, task_id) !== undefined) return "void";
  // The run ended well, and a consumer has taken its record.
  return "completed";
}
