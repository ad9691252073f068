/**
 * The command `interrupt`: ends the turn of a coding agent's run. The run then continues in the same session with a text. The
 * text is an urgent message to the task, and the run looks for such messages. A program that takes no messages while it runs, or
 * does not answer, is stopped. The task's next run then continues its session, and no attempt is used up.
 */
import { setTimeout as wait } from "node:timers/promises";
import { matchChosen } from "../../agents/chosen-agent.ts";
import { TaskMessages } from "../../agents/stream/task-messages.ts";
import { decodeTask } from "../../codec/task-codec.ts";
import { ErrInvalidTransition, ErrTaskNotFound } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { leaseOf } from "../../core/names.ts";
import { isCoding } from "../../core/settings.ts";
import type { Claim } from "../../mailbox/claim/claim.ts";
import { findClaim, locate } from "../../mailbox/find/locate.ts";
import type { Environment } from "../environment/environment.ts";
import type { CommandContext, CommandHandler } from "./command-context.ts";

/** How long a run may take to end its turn and take the text (ms). */
const TAKE_MS = 3000;
/** How long a worker may take to give the task back, beyond the grace time (ms). */
const LET_GO_MS = 3000;
const LOOK_MS = 20;
const NO_TEXT =
  "You were interrupted by a person, who said nothing more. Look again at what you were doing, then go on with your task.";

/** How the task continues: in the same run, in the next run, or later, because the run ended by itself or its worker cannot be reached. */
type GoesOn = "turn" | "run" | "later";

export const interrupt: CommandHandler = async (context, inHand) => {
  const { env } = context;
  const { node: id = "", text = NO_TEXT } = inHand.command.args;
  let lease = inHand.subject;
  if (lease === undefined) {
    lease = leaseOf(findRun(env, id).name);
    await inHand.noteSubject(lease);
  }
  const box = new TaskMessages(env.tree.dir, id, env.settings.durability === "power");
  // The nonce identifies the command: when it is carried out again after a crash, it posts no second message.
  const from = `interrupt ${inHand.nonce}`;
  const message = box.find(from) ?? box.post(text, from, true);
  const isTaken = (): boolean => box.stateOf(message) !== "recorded";
  await until(env, TAKE_MS, () => isTaken() || pathOf(env, id, lease) === undefined);
  const goesOn = isTaken() ? "turn" : await stopRun(context, id, lease);
  return { interrupted: id, message, goes_on: goesOn };
};

/** The claim of the running task. @throws ErrTaskNotFound, ErrInvalidTransition when no run can be interrupted */
function findRun({ settings, trays, tree }: Environment, id: string): Claim {
  const claim = findClaim(trays, id);
  const details = { id, phase: "interrupt" };
  if (claim === undefined && locate(trays, id) === undefined)
    throw new ErrTaskNotFound(`no task ${JSON.stringify(id)}`, details);
  if (claim?.name.stage !== "w")
    throw new ErrInvalidTransition(`${JSON.stringify(id)} does not run`, {
      ...details,
      hint: `nothing was done; its next run gets a text with: mailchute say ${id} TEXT`,
    });
  const { bytes } = trays.storage.read(claim.path, TASK_BYTES_MAX);
  const { task } = decodeTask(bytes ?? Buffer.alloc(0), id, claim.path);
  const { agent } = matchChosen(tree.sessions, task, settings.agents);
  if (agent !== undefined && isCoding(agent)) return claim;
  throw new ErrInvalidTransition(
    `${JSON.stringify(id)} is not a task of a coding agent: only coding agents take a text`,
    { ...details, hint: `to stop it and begin anew: mailchute cancel ${id} --requeue` },
  );
}

/** Makes the worker stop the program and give the task back. */
async function stopRun({ env, queue }: CommandContext, id: string, lease: string): Promise<GoesOn> {
  const claim = findClaim(env.trays, id);
  // The run has ended by itself, and the next run gets the text.
  if (claim === undefined || leaseOf(claim.name) !== lease) return "later";
  const owner = claim.name.token.slice(0, claim.name.token.lastIndexOf("-"));
  if (!queue.pool.workers.ownPrefixes().has(owner)) return "later";
  queue.pool.workers.tellAll({ type: "interrupt", leases: [lease] });
  await until(env, env.settings.grace_ms + LET_GO_MS, () => pathOf(env, id, lease) === undefined);
  return pathOf(env, id, lease) === undefined ? "run" : "later";
}

/** The file of this lease; undefined once the run is over. */
function pathOf({ trays }: Environment, id: string, lease: string): string | undefined {
  const claim = findClaim(trays, id);
  return claim !== undefined && leaseOf(claim.name) === lease ? claim.path : undefined;
}

async function until(
  { trays: { clock } }: Environment,
  limitMs: number,
  isDone: () => boolean,
): Promise<void> {
  const deadlineMs = clock.monotonicMs() + limitMs;
  while (!isDone() && clock.monotonicMs() < deadlineMs) await wait(LOOK_MS);
}
