/**
 * A state tree as a library: what the command line does, for programs in TypeScript. Opening it only opens files and starts no
 * process. The code of a call is loaded when the call is made.
 */
import type { Command, CommandName } from "../core/command.ts";
import { ErrSupervisorGone } from "../core/errors.ts";
import type { LifecycleEvent } from "../core/events.ts";
import type { AgentSettings, Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { systemClock } from "../host/system-clock.ts";
import { newId } from "../mailbox/files/random.ts";
import type { SubmitOutcome } from "../mailbox/submit/submit.ts";
import type { RunSummary } from "../supervisor/supervisor.ts";
import type { IdReader } from "../view/id-reader.ts";
import type { WhyOpen } from "../view/why-open.ts";
import type { Mailbox } from "./mailbox.ts";
import type { MailboxOptions } from "./mailbox-options.ts";
import type { PoolOptions, PoolParts } from "./pool.ts";
import type { NewTask } from "./submissions.ts";
import { type SubscribeOptions, subscribe } from "./subscribe.ts";
import type { Ended, WaitForOptions } from "./wait-for.ts";

/** A call rejects when its signal is aborted. */
export interface Abortable {
  signal?: AbortSignal | undefined;
}

export interface EnqueuedBatch {
  id: string;
  /** How many tasks it holds. */
  lines: number;
  /** `unchanged`: the same batch is there already. */
  outcome: "submitted" | "unchanged";
}

/** What parts add to the library. */
export interface LibraryParts {
  loadPool(): Promise<PoolParts>;
  openMailbox(dir: string, options: MailboxOptions): Mailbox;
  openIdReaders(tree: StateTree, agents: readonly AgentSettings[] | undefined): Promise<IdReader>;
}

export class Mailchute {
  constructor(
    /** The paths of its files and folders. */
    readonly tree: StateTree,
    /** The settings from config.yaml and the environment, as they were when the tree was opened. */
    readonly settings: Settings,
    /** One level below: claims and settles tasks, for a worker that you write yourself. */
    readonly mailbox: Mailbox,
    private readonly parts: LibraryParts,
  ) {}

  /**
   * Submits a task. When the promise resolves, the task is safe. A second call with the same task changes nothing.
   * @returns the task's id, or a new one if it has none
   * @throws ErrInvalidTask, ErrTaskExists, ErrIo
   */
  enqueue(task: NewTask, { signal }: Abortable = {}): Promise<string> {
    return this.mailbox.enqueue(task, signal === undefined ? {} : { signal });
  }

  /** Submits many tasks, each as a file of its own; see `Mailbox.enqueueAll`. @throws ErrInvalidTask */
  enqueueAll(tasks: readonly NewTask[], { signal }: Abortable = {}): Promise<SubmitOutcome[]> {
    return this.mailbox.enqueueAll(tasks, signal === undefined ? {} : { signal });
  }

  /**
   * Submits many small tasks as one file, which runs as one task and has one record. Nothing is submitted when the source throws
   * or the signal is aborted.
   * @param tasks the lines; an async source may yield them over time
   * @throws ErrInvalidTask, ErrTaskExists, ErrIo
   */
  async enqueueBatch(
    tasks: Iterable<NewTask> | AsyncIterable<NewTask>,
    { id = newId(systemClock.wallMs(), "b"), signal }: Abortable & { id?: string } = {},
  ): Promise<EnqueuedBatch> {
    const { submitLines } = await import("./submit-lines.ts");
    const bytesMax = this.settings.batch_bytes_max;
    const { lines, outcome } = await submitLines(this.mailbox.trays, id, tasks, bytesMax, signal);
    return { id, lines, outcome };
  }

  /**
   * Waits until a task, a batch or a node of the plan has ended. If the work of a task must land, waits until it has landed. A
   * failure is an end, too.
   * @throws ErrTaskNotFound; ErrTaskStuck when it can never run: see `WaitForOptions`; the reason of the signal
   */
  async waitFor(id: string, options: WaitForOptions = {}): Promise<Ended> {
    const { waitFor } = await import("./wait-for.ts");
    return waitFor(this.tree, id, options, () => this.openWhy());
  }

  /** How a task has ended; undefined while it waits, runs or lands. @throws ErrTaskNotFound */
  async find(id: string): Promise<Ended | undefined> {
    const { findEnd } = await import("./wait-for.ts");
    return findEnd(this.tree, id, () => this.openWhy());
  }

  /** The events of the pool from this call on, as they are written. Ends when its signal is aborted. */
  subscribe(options: SubscribeOptions = {}): AsyncGenerator<LifecycleEvent, void, void> {
    return subscribe(this.tree.events, options);
  }

  /**
   * Sends a command to the supervisor, and waits until it has taken effect.
   * @returns what it did
   * @throws ErrInvalidCommand; ErrSupervisorGone when no supervisor runs: the command waits for the next one; the supervisor's own
   *   error when it refused; the reason of the signal
   */
  async command(
    command: CommandName,
    args: Command["args"] = {},
    { signal }: Abortable = {},
  ): Promise<Record<string, unknown>> {
    signal?.throwIfAborted();
    const { awaitAcknowledgement, sendCommand } = await import(
      "../mailbox/commands/send-command.ts"
    );
    const { dir } = this.tree;
    const { id } = await sendCommand(dir, command, { ...args });
    const result = await awaitAcknowledgement(dir, id, Number.POSITIVE_INFINITY, signal);
    if (result === undefined) throw new ErrSupervisorGone("no answer", { id, path: dir });
    return result;
  }

  /**
   * Runs a pool in this process until it has drained, its signal is aborted or the command `stop` comes. Tasks of an agent that
   * `handlers` names call that function; all others run as in `mailchute run`.
   * @returns what was done
   * @throws ErrSupervisorRunning when a pool runs in this tree already; the reason of a signal that is aborted before
   */
  async pool(options: PoolOptions = {}): Promise<RunSummary> {
    const { runPool } = await import("./pool.ts");
    return runPool(this.tree, this.settings, options, await this.parts.loadPool());
  }

  private async openWhy(): Promise<WhyOpen> {
    const { WhyOpen } = await import("../view/why-open.ts");
    const { agents } = this.settings;
    const readers = await this.parts.openIdReaders(this.tree, agents);
    return new WhyOpen(this.tree, agents, Number.POSITIVE_INFINITY, readers);
  }
}
