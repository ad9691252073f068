/** Who speaks in a run: the agent of the task whose lease the run has, in the scope of the state tree; not what the run says of itself. */
import { dirname, join } from "node:path";
import { decodeTask } from "../../../codec/task-codec.ts";
import { ErrInvalidMessage } from "../../../core/errors.ts";
import { matchAgent } from "../../../core/matching.ts";
import type { Task } from "../../../core/task.ts";
import { readRegularText } from "../../../host/regular-file.ts";
import type { RequestPlace, RunRequest } from "../../../worker/request-taker.ts";
import { findScope } from "../scope/find-scope.ts";
import { explainBadName, HUMAN, type Scope } from "../scope/scope.ts";

export interface RunSender {
  scope: Scope;
  /** In lower case. */
  name: string;
  /** How many wake-ups led to this run since a person spoke. */
  hops: number;
}

/** @throws ErrInvalidMessage, a system error */
export async function senderOf(
  { settings, tree }: RequestPlace,
  { id, sender: { taskId, runDir } }: RunRequest,
): Promise<RunSender> {
  const { task } = decodeTask(Buffer.from(readRegularText(join(runDir, "task.json"))), taskId);
  const name = matchAgent(task, settings.agents).agent?.name.toLowerCase() ?? "";
  const fault = name === HUMAN ? `${HUMAN} is the name of a person` : explainBadName(name);
  if (fault !== undefined)
    throw new ErrInvalidMessage(`the run of ${taskId} has no name to speak under: ${fault}`, {
      id,
      phase: "post",
      hint: "give its agent another name in config.yaml",
    });
  return { scope: await findScope(dirname(tree.dir)), name, hops: hopsOf(task) };
}

function hopsOf({ env }: Task): number {
  const hops = Number(env?.["MAILCHUTE_HOPS"]);
  return Number.isInteger(hops) && hops > 0 ? hops : 0;
}
