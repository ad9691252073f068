/** What supervisors and workers do beside the bridges, as far as the walk needs it: at the tree that has the task, and at a machine. */
import fs from "node:fs";
import { join } from "node:path";
import { wallSeconds } from "../../../src/core/clock.ts";
import { ErrNoTasks } from "../../../src/core/errors.ts";
import { parseName } from "../../../src/core/names.ts";
import { ownerSequence, thisProcess } from "../../../src/host/identity.ts";
import { Mailbox } from "../../../src/library/mailbox.ts";
import {
  type Claim,
  claimFromInbox,
  claimReady,
  hold,
  letGo,
  readClaim,
} from "../../../src/mailbox/claim/claim.ts";
import { sweepAll } from "../../../src/mailbox/clean/sweep.ts";
import { claimNextCommand } from "../../../src/mailbox/commands/command-queue.ts";
import type { Trays } from "../../../src/mailbox/files/trays.ts";
import { awaitedRecords } from "../../../src/mailbox/find/awaited-records.ts";
import { findClaim } from "../../../src/mailbox/find/locate.ts";
import { newDeadLetter } from "../../../src/mailbox/settle/dead-letter.ts";
import { settleAll } from "../../../src/mailbox/settle/settle.ts";
import { clusterGate } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { aliasOf, mailboxesOf, type Notes, ORIGIN, TASK } from "./places.ts";

export const TARGET = "any";
const MARK = "x";
const newOwner = ownerSequence(thisProcess(), MARK);

export class OriginPool {
  private readonly trays: Trays;
  private readonly mailbox: Mailbox;

  constructor(dir: string) {
    this.trays = mailboxesOf(aliasOf(dir), ORIGIN).tasks;
    this.mailbox = Mailbox.open(this.trays.dir, { durability: "process" });
  }

  /** Finishes what dead bridges have begun, and puts tasks where the bridge finds them. */
  async work(): Promise<void> {
    const { trays } = this;
    await this.mailbox.recover();
    if (fs.existsSync(join(trays.inbox, `${TASK}.json`)))
      this.hold(claimFromInbox(trays, TASK, 1, newOwner()));
    for (const file of trays.storage.list(trays.processing)) {
      const name = parseName(file);
      if (name?.stage === "ready") this.hold(claimReady(trays, name, newOwner()));
    }
  }

  private hold(claim: Claim | undefined): void {
    if (claim !== undefined) hold(this.trays, claim, clusterGate(TARGET));
  }

  isSettled(): boolean {
    const { inbox, processing, outbox, failed } = this.trays;
    const count = (dir: string): number => fs.readdirSync(dir).length;
    return count(inbox) + count(processing) === 0 && count(outbox) + count(failed) > 0;
  }

  /** A person cancels the task. @returns false when it cannot be cancelled any more */
  async cancel(): Promise<boolean> {
    const { trays } = this;
    const claim = findClaim(trays, TASK);
    if (claim === undefined) return false;
    const facts = {
      error: "cancelled",
      code: "ErrCancelled",
      kind: "cancelled" as const,
      agentId: "far",
      attempts: claim.name.attempt,
      lastAttemptAt: wallSeconds(trays.clock),
    };
    const settlement = newDeadLetter(trays, claim, facts, readClaim(trays, claim), newOwner());
    await settleAll(trays, [settlement], () => {});
    return settlement.outcome === "settled";
  }

  /** The supervisor lets it go, as after a change of the settings. The next `work` holds it again. */
  letGo(): boolean {
    const claim = findClaim(this.trays, TASK);
    return claim?.name.stage === "hold" && letGo(this.trays, claim.name) !== undefined;
  }
}

export class MachinePool {
  readonly name: string;
  private readonly tasks: Trays;
  private readonly control: Trays;
  private readonly mailbox: Mailbox;
  private readonly notes: Notes;
  private readonly jobs: string;

  constructor(dir: string, name: string, notes: Notes) {
    this.name = name;
    const { tasks, control } = mailboxesOf(aliasOf(dir), name);
    this.tasks = tasks;
    this.control = control;
    this.notes = notes;
    this.jobs = join(aliasOf(dir), name, "cluster", "jobs");
    this.mailbox = Mailbox.open(tasks.dir, { durability: "process" });
  }

  /** The ids of its notes. */
  noted(): string[] {
    if (!fs.existsSync(this.jobs)) return [];
    return fs
      .readdirSync(this.jobs)
      .flatMap((name) => (name.endsWith(".json") ? [name.slice(0, -5)] : []));
  }

  isNotedAs(state: string): boolean {
    return this.noted().some((id) =>
      fs.readFileSync(join(this.jobs, `${id}.json`), "utf8").includes(`"${state}"`),
    );
  }

  isIdle(): boolean {
    const { tasks, control } = this;
    return [tasks.inbox, tasks.processing, control.inbox].every(
      (dir) => fs.readdirSync(dir).length === 0,
    );
  }

  /**
   * Carries out commands, and then runs what waits.
   * @param endOf undefined: nothing runs now
   */
  async work(endOf: ((id: string) => "completes" | "fails") | undefined): Promise<void> {
    await this.mailbox.recover();
    for (;;) {
      const claimed = claimNextCommand(this.control, newOwner());
      if (claimed === undefined) break;
      await this.takeOne((id) =>
        claimed.command.args?.["node"] === id ? "is cancelled" : undefined,
      );
      fs.unlinkSync(claimed.claim.path);
    }
    while (endOf !== undefined && (await this.takeOne(endOf)));
    this.sweep();
  }

  /** The retention of every record is over. */
  private sweep(): void {
    const isNeeded = awaitedRecords(this.tasks, { jobs: this.jobs });
    sweepAll(this.tasks, { outboxDays: -1, failedDays: -1, isNeeded });
  }

  private async takeOne(
    endOf: (id: string) => "completes" | "fails" | "is cancelled" | undefined,
  ): Promise<boolean> {
    try {
      const held = this.mailbox.claim();
      const { id } = held.task;
      const end = endOf(id);
      if (end === undefined) this.mailbox.release(held);
      else if (end === "is cancelled")
        await this.mailbox.fail(held, end, {
          kind: "cancelled",
          code: "ErrCancelled",
          canRetry: false,
        });
      else {
        this.notes.add("run", { machine: this.name, id });
        if (end === "fails") await this.mailbox.fail(held, "it fails");
        else await this.mailbox.complete(held, { output: id, verdict: "pass" });
      }
      return end !== undefined;
    } catch (error) {
      if (error instanceof ErrNoTasks) return false;
      throw error;
    }
  }
}
