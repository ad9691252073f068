/** The public exports of the package: see docs/library.md. It starts nothing, and loads little. */
export type { Handler, HandlerContext } from "./agents/handler.ts";
export { NoRetryError } from "./agents/handler.ts";
export { Mailbox } from "./app/mailbox.ts";
export { open } from "./app/open.ts";
export type { Command, CommandName } from "./core/command.ts";
export * from "./core/errors.ts";
export type { LifecycleEvent, LifecycleEventName } from "./core/events.ts";
export { type StateTree, stateTree } from "./core/state-tree.ts";
export type { ErrorRecord, FailureKind, ResultRecord, Task, TaskMetadata } from "./core/task.ts";
export { readJournal } from "./journal/read.ts";
export { defineTask, type TaskDefinition, type TaskKind } from "./library/define-task.ts";
export type { FailOptions, HeldTask } from "./library/mailbox.ts";
export type { MailboxOptions } from "./library/mailbox-options.ts";
export type { Abortable, EnqueuedBatch, Mailchute } from "./library/mailchute.ts";
export type { PoolOptions } from "./library/pool.ts";
export type { StandardSchemaV1 } from "./library/standard-schema.ts";
export type { NewTask } from "./library/submissions.ts";
export type { SubscribeOptions } from "./library/subscribe.ts";
export type { Ended, WaitForOptions } from "./library/wait-for.ts";
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
export type { SubmitOutcome } from "./mailbox/submit/submit.ts";
export type { RunSummary } from "./supervisor/supervisor.ts";
