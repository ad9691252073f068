/** The task that wakes an agent for its mail. The mail itself is in the messages of this task. Pure. */
import { WAKE_TYPE } from "../../../core/callback.ts";
import type { Task } from "../../../core/task.ts";
import { OUTSIDE, type Scope } from "../scope/scope.ts";

export interface Wake {
  id: string;
  /** The name of its settings, and its own name in the scope. */
  agent: string;
  name: string;
  /** As it is written from everywhere. */
  scope: Scope;
  hops: number;
}

/** Returns the same bytes each time, because the task may be submitted again after a crash. @param cwd where the agent works */
export function wakeTask({ id, agent, name, scope, hops }: Wake, cwd: string): Task {
  const { project, branch } = scope;
  return {
    id,
    type: WAKE_TYPE,
    agent,
    // Only this one has the mail.
    agents: [agent],
    title: `Mail for ${name}`,
    prompt: [
      'There is mail for you: see "Messages for you".',
      "Do what it asks of you as far as that is your work, and answer who expects an answer.",
      "`mailchute messages` shows what was said before.",
    ].join("\n"),
    cwd,
    // There is no repository of which its settings could give it a worktree.
    ...(project === OUTSIDE.project && branch === OUTSIDE.branch ? { worktree: "none" } : {}),
    // The agent's checks are for its work. Mail may ask for no work.
    verify: [],
    expect_files: [],
    env: {
      MAILCHUTE_SCOPE: `${project}:${branch}`,
      MAILCHUTE_AGENT: name,
      MAILCHUTE_HOPS: String(hops + 1),
    },
  };
}
