/** Commands that steer a running pool. Shapes only. */

export const COMMAND_NAMES = [
  "pause",
  "resume",
  "set-workers",
  "replan",
  "cancel",
  "retry",
  "drain",
  "stop",
] as const;
export type CommandName = (typeof COMMAND_NAMES)[number];

export interface Command {
  id: string;
  command: CommandName;
  args: {
    workers?: number;
    /** Id of a task or roadmap node. */
    node?: string;
    /** With cancel: end it for good. */
    final?: boolean;
    drain?: boolean;
  };
  /** Epoch ms. */
  expiresAtMs?: number;
}

/** What a command steers: of several about one subject the last one decides. */
export type Subject = "pause" | "workers" | "replan" | "drain" | "stop";

/** Undefined: it is about a task. */
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
    case "retry":
      return undefined;
  }
}

/** The last command of a subject that overtook others: one that came before it changes nothing any more. */
export interface LastWord {
  /** When it came, as the file system stamped it (epoch ms), and its file name, which decides between two of one time. */
  arrivedMs: number;
  name: string;
  id: string;
}
