/** Types only: what commands can steer, and the function that applies a command. */
import type { CommandName } from "../../core/command.ts";
import type { ControlFile } from "../documents/control-file.ts";
import type { Environment } from "../environment/environment.ts";
import type { Parts } from "../environment/parts.ts";
import type { Queue } from "../queue/queue.ts";
import type { ClaimedCommand } from "./command-inbox.ts";

export interface CommandContext {
  readonly env: Environment;
  readonly control: ControlFile;
  readonly queue: Pick<Queue, "accepted" | "backlog" | "pool">;
  readonly parts: Parts;
  /** Makes owners for leases that are taken only to cancel a task. */
  newOwner(): string;
  readonly run: RunControl;
}

/** How commands change the run itself. */
export interface RunControl {
  /** True for `--once`: the number of workers is fixed. */
  readonly isFixed: boolean;
  shareSlots(): void;
  stop(drain: boolean): void;
}

/**
 * Carries out a command. After a crash it may be called twice.
 * @throws MailchuteError when the command cannot be carried out
 */
export type CommandHandler = (
  context: CommandContext,
  inHand: ClaimedCommand,
) => object | Promise<object>;

/** Handlers by command name; a part adds its own. */
export type CommandTable = Map<CommandName, CommandHandler>;
