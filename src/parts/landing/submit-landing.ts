/** Submits the landing of a task: once for each order, even if several processes try and die in between. */
import { wallSeconds } from "../../core/clock.ts";
import { ErrTaskExists } from "../../core/errors.ts";
import { parseObject } from "../../core/json-object.ts";
import { landingGroupOf, landingIdOf } from "../../core/landing.ts";
import { readIfThere } from "../../mailbox/files/steps.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { isInFlight, locate } from "../../mailbox/find/locate.ts";
import { retry } from "../../mailbox/retry/retry.ts";
import { submit } from "../../mailbox/submit/submit.ts";
import { submitOnce } from "../../mailbox/submit/submit-once.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";
import { LANDING_TYPE } from "./landing-type.ts";

/**
 * Twice is the same as once, because a landing asks git whether the work has landed.
 * @throws ErrTaskExists when something else has the id; system errors
 */
export async function submitLanding(trays: Trays, order: LandingOrder): Promise<void> {
  const { task_id: of, title, target, repository } = order;
  const id = landingIdOf(of);
  refuseOther(trays, id, of);
  if (isThere(trays, id)) return;
  // Earlier work of this task has landed, or could not land.
  if (locate(trays, id) !== undefined) {
    await retry(trays, id, { isRerun: true });
    return;
  }
  const task = {
    id,
    type: LANDING_TYPE,
    title: `land on ${target}: ${title}`,
    exec: ["mailchute", "land", of],
    landing_of: of,
    group: landingGroupOf(repository),
    parent_id: of,
  };
  const bytes = Buffer.from(`${JSON.stringify(task)}\n`, "utf8");
  if ((await submitOnce(trays, { id, bytes })) === "submitted" || isThere(trays, id)) return;
  // It was submitted before, and its record is gone.
  if (locate(trays, id) === undefined) {
    const anew = { ...task, created_at: wallSeconds(trays.clock) };
    await submit(trays, { id, bytes: Buffer.from(`${JSON.stringify(anew)}\n`, "utf8") });
  }
}

/** A task of a person may have the id of the landing. It is not run again, and its end says nothing of the work. @throws ErrTaskExists */
function refuseOther(trays: Trays, id: string, of: string): void {
  const path = locate(trays, id)?.path;
  const bytes = path === undefined ? undefined : readIfThere(trays, path);
  if (path === undefined || bytes === undefined) return;
  const found = parseObject(bytes.toString("utf8")) ?? {};
  // A record has the task that it is about. One of an earlier version may lack it.
  const isOldRecord = found["status"] !== undefined && found["task"] === undefined;
  const { landing_of: ofThat } = (found["task"] ?? found) as { landing_of?: unknown };
  if (isOldRecord || ofThat === of) return;
  throw new ErrTaskExists(`another task has the id ${id}, which the landing of ${of} needs`, {
    id,
    path,
    phase: "land",
    hint: `wait for its end, move its record away, then mailchute land ${of}`,
  });
}

/** Looks twice, because a task that goes back into the inbox may be missed once. */
export function isThere(trays: Trays, id: string): boolean {
  return isInFlight(trays, id, ["bad"]) || isInFlight(trays, id, ["bad"]);
}
