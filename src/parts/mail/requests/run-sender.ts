/** Finds the sender of a run's messages: the agent of the task whose lease the run has. The run itself cannot choose its name. */
import { join } from "node:path";
import { decodeTask } from "../../../codec/task-codec.ts";
import { ErrInvalidMessage } from "../../../core/errors.ts";
import type { Task } from "../../../core/task.ts";
import { readRegularText } from "../../../host/regular-file.ts";
import type { RequestPlace, RunRequest } from "../../../worker/request-taker.ts";
import { nameOfRun } from "../agents/name-of-run.ts";
import { type OwnMail, openOwn } from "../roots/open-own.ts";
import type { Scope } from "../scope/scope.ts";
import { readWakes } from "../store/wake-log.ts";

export interface RunSender extends OwnMail {
  scope: Scope;
  /** In lower case. */
  name: string;
  /** How many wake-ups since a person last spoke led to this run. `cause`: ids of the messages that led to it. */
  hops: number;
  cause: string[];
}

/** @throws ErrInvalidMessage, a system error */
export async function senderOf(
  { settings, tree }: RequestPlace,
  { id, sender: { taskId, runDir } }: RunRequest,
): Promise<RunSender> {
  const { task } = decodeTask(Buffer.from(readRegularText(join(runDir, "task.json"))), taskId);
  const own = await openOwn(settings, tree.dir, process.env);
  const { folder } = own;
  const { scope } = folder;
  const found = nameOfRun(folder, task, settings);
  if ("fault" in found)
    throw new ErrInvalidMessage(`the run of ${taskId} has no name to speak under: ${found.fault}`, {
      id,
      phase: "post",
      hint: "give its agent another name in config.yaml",
    });
  const { name } = found;
  // The mail that the agent got last in this task, even in an earlier run of it.
  const last = readWakes(folder, name).findLast((wake) => wake.task === taskId);
  if (last === undefined) return { ...own, scope, name, hops: hopsOf(task), cause: [] };
  return { ...own, scope, name, hops: last.hops + 1, cause: last.ids };
}

/** The hops of a task that an agent enqueued while it answered. */
function hopsOf({ env }: Task): number {
  const hops = Number(env?.["MAILCHUTE_HOPS"]);
  return Number.isInteger(hops) && hops > 0 ? hops : 0;
}
