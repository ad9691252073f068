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
