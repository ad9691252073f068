/** The public exports of the package. */
export type { Handler, HandlerContext } from "./agents/module-agent.ts";
export { NoRetryError } from "./agents/module-agent.ts";
export { Mailbox } from "./app/mailbox.ts";
export { Supervisor } from "./app/supervisor.ts";
export { loadSettings } from "./config/load-settings.ts";
export type { Command } from "./core/command.ts";
export * from "./core/errors.ts";
export { DEFAULT_SETTINGS, type Settings } from "./core/settings.ts";
export { type StateTree, stateTree } from "./core/state-tree.ts";
export type { ErrorRecord, FailureKind, ResultRecord, Task, TaskMetadata } from "./core/task.ts";
export { readJournal } from "./journal/read.ts";
export type { FailOptions, HeldTask, MailboxOptions } from "./library/mailbox.ts";
export {
  type Acknowledgement,
  acknowledgeCommand,
  type ClaimedCommand,
  type CommandRequest,
  claimNextCommand,
  enqueueCommand,
  readAcknowledgement,
} from "./mailbox/commands/command-queue.ts";
export { type Durability, openTrays, type Trays } from "./mailbox/files/trays.ts";
export type { RunSummary, SupervisorOptions } from "./supervisor/supervisor.ts";
