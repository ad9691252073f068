/** Finds the present runs of an agent by the leases in `processing/`. It reads each task there, so only people's commands use it. */
import { decodeTask } from "../../../codec/task-codec.ts";
import { TASK_BYTES_MAX } from "../../../core/limits.ts";
import type { AgentSettings } from "../../../core/settings.ts";
import type { Task } from "../../../core/task.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";
import { listLive } from "../../../mailbox/find/locate.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { agentOfTask } from "./name-of-run.ts";

/** The ids of the tasks that the agent runs. @param name in lower case */
export function runsOfAgent(
  trays: Trays,
  folder: MailFolder,
  agents: readonly AgentSettings[],
  name: string,
): string[] {
  return listLive(trays).flatMap(({ id, name: place, path }) => {
    if (place?.stage !== "w" || place.isBatch === true) return [];
    const task = readTask(trays, path, id);
    return task !== undefined && agentOfTask(folder, task, agents) === name ? [id] : [];
  });
}

/** Undefined when the task was moved or cannot be read. */
export function readTask({ storage }: Trays, path: string, id: string): Task | undefined {
  try {
    const { bytes } = storage.read(path, TASK_BYTES_MAX);
    return decodeTask(bytes ?? Buffer.alloc(0), id, path).task;
  } catch {
    return undefined;
  }
}
