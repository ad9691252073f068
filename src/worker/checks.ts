/** The checks of a task: its own `verify` and `expect_files`, or those of its agent where the task has none. */
import { readPrograms } from "../codec/task-rules.ts";
import type { AgentSettings } from "../core/settings.ts";
import type { Task } from "../core/task.ts";

/** @returns the task itself when its agent has no checks to add */
export function withChecks(task: Task, agent: AgentSettings): Task {
  const { verify, expect_files: files } = agent;
  const isAdded = verify !== undefined && task.verify === undefined;
  const areFilesAdded = files !== undefined && task.expect_files === undefined;
  if (!(isAdded || areFilesAdded)) return task;
  return {
    ...task,
    ...(isAdded ? { verify: readPrograms(verify) } : {}),
    ...(areFilesAdded ? { expect_files: files } : {}),
  };
}
