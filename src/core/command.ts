/** The shapes of commands, which steer a running pool. */
import type { LimitChange, LimitKind } from "./task-limits.ts";

export const COMMAND_NAMES = [
  "pause",
  "resume",
  "set-workers",
  "set-limit",
  "replan",
  "cancel",
  "interrupt",
  "edit",
  "retry",
  "drain",
  "stop",
] as const;
export type CommandName = (typeof COMMAND_NAMES)[number];

/** The group or limit that a `set-limit` changes, and its new values. A member that is left out keeps its value. */
export interface LimitTarget extends LimitChange {
  kind: LimitKind;
  name: string;
  /** True: goes back to the values of the settings, and ignores the other members. */
  reset?: boolean;
}

export interface Command {
  id: string;
  command: CommandName;
  args: {
    workers?: number;
    /** Id of a task or roadmap node. */
    node?: string;
    /** With `cancel`: end the task for good. */
    final?: boolean;
    /** With `interrupt`: what the agent is told. With `edit`: the whole new text of the task. */
    text?: string;
    /** With `edit`: the SHA-256 of the text before the change. */
    was?: string;
    drain?: boolean;
    limit?: LimitTarget;
  };
  /** Epoch ms. */
  expiresAtMs?: number;
}

/** What a command steers. The last command on a subject decides. */
export type Subject = "pause" | "workers" | "replan" | "drain" | "stop";

/** The subject of a command; undefined when the command is about one task. */
export function subjectOf({
  command,
  args,
}: Pick<Command, "command" | "args">): Subject | undefined {
  switch (command) {
    case "pause":
    case "resume":
      return "pause";
    case "set-workers":
      return "workers";
    case "replan":
      return "replan";
    case "drain":
      return "drain";
    case "stop":
      return args.drain === true ? "drain" : "stop";
    case "cancel":
    case "edit":
    case "interrupt":
    case "retry":
    case "set-limit":
      return undefined;
  }
}

/** The newest command on a subject that ran before older ones. Those older commands change nothing when they run later. */
export interface LastWord {
  /** When its file arrived, by the file system's clock (epoch ms). If two arrived at the same time, the file names decide. */
  arrivedMs: number;
  name: string;
  id: string;
}
