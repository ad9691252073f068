/** Finds the work of a task that a person wants to land or to see. */
import { ErrInvalidTransition, ErrTaskNotFound } from "../../../core/errors.ts";
import { landingIdOf } from "../../../core/landing.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";
import { findTask, noSuchTask } from "../../../view/find-task.ts";
import { type LandingOrder, readLanding, stateOf } from "../../../worker/landing-files.ts";
import { isThere } from "../submit-landing.ts";

/** @throws ErrTaskNotFound when the task has left no work */
export async function orderOf(tree: StateTree, id: string, phase: string): Promise<LandingOrder> {
  // A typed text with a slash could lead out of the folder, so it is not used in a path.
  const order = /[/\0]/.test(id) ? undefined : readLanding(tree.dir, id, "order");
  if (order !== undefined) return order;
  const place = await findTask(tree, id);
  if (place === undefined) throw noSuchTask(id, phase);
  throw new ErrTaskNotFound(`${JSON.stringify(id)} has left no work to land`, {
    id,
    phase,
    hint: "only a task with a worktree that has completed and has changed something leaves work",
  });
}

/** @throws ErrTaskNotFound; ErrInvalidTransition while its task, its landing or its mending task waits or runs */
export async function orderToLand(
  tree: StateTree,
  trays: Trays,
  id: string,
  phase: string,
): Promise<LandingOrder> {
  const order = await orderOf(tree, id, phase);
  const { fix } = stateOf(tree.dir, order);
  for (const busy of [id, landingIdOf(id), ...(fix === null ? [] : [fix.id])])
    if (isThere(trays, busy))
      throw new ErrInvalidTransition(`${JSON.stringify(busy)} waits or runs`, {
        id,
        phase,
        hint: `wait for it: mailchute wait ${busy}`,
      });
  return order;
}
