/**
 * Takes commands from the control mailbox in order of arrival, with the same moves as tasks. A command is applied first and
 * acknowledged afterwards. If a crash comes in between, it is applied again, with no further effect. Commands that steer the pool
 * overtake others, so that a flood cannot delay them: the newest with the same subject decides, and earlier ones no longer change
 * anything.
 */
import { join } from "node:path";
import { decodeCommand } from "../../codec/command-codec.ts";
import { type Command, type LastWord, subjectOf } from "../../core/command.ts";
import {
  ErrInvalidCommand,
  isSystemError,
  MailchuteError,
  messageOf,
  systemCode,
} from "../../core/errors.ts";
import { errorName, parseName, resultName } from "../../core/names.ts";
import { type Claim, claimFromInbox, claimReady, readBytes } from "../../mailbox/claim/claim.ts";
import {
  type Acknowledgement,
  acknowledgeAll,
  newAcknowledgement,
} from "../../mailbox/commands/command-queue.ts";
import { forgetSubject, noteSubject, readSubject } from "../../mailbox/commands/command-subject.ts";
import { dropStagedLink, SECOND_LINK } from "../../mailbox/files/dropped-file.ts";
import { randomToken } from "../../mailbox/files/random.ts";
import { moved } from "../../mailbox/files/steps.ts";
import type { FileFacts } from "../../mailbox/files/storage.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { beginQuarantine, finishQuarantine } from "../../mailbox/settle/quarantine.ts";
import type { Settlement } from "../../mailbox/settle/settle.ts";
import type { ControlFile } from "../documents/control-file.ts";
import { type DropRules, type Fault, inspectFile } from "../inbox/inspect-file.ts";
import { CommandOrder, isOlder, type Waiting } from "./command-order.ts";

/** A claimed command. When it is carried out again after a crash, it also has the note of the first try. */
export interface ClaimedCommand {
  command: Command;
  /** Identifies the command: the nonce is the same each time it is taken up, and no other command has it, even one with the same id. */
  nonce: string;
  /** True when an earlier supervisor had claimed it, and may have carried it out. */
  isAgain: boolean;
  /** The subject that was written down the first time. */
  subject: string | undefined;
  /** Writes the subject down. Must be called before the command takes effect. */
  noteSubject(subject: string): Promise<void>;
}

interface Arrival {
  /** Epoch ms, and the name of its file in the inbox: see `isOlder`. */
  arrivedMs: number;
  name: string;
  /** True if earlier commands may be carried out after this one. */
  isOvertaking: boolean;
}

export interface CommandHooks {
  /** Carries out a command. Throws MailchuteError when it cannot be done; the text goes into the error record. */
  apply(inHand: ClaimedCommand): object | Promise<object>;
  /** The state of the pool: remembers which commands have taken effect, and the last one of each subject. */
  control: CommandMemory;
  onError(error: unknown): void;
}

export type CommandMemory = Pick<
  ControlFile,
  "isApplied" | "keepApplied" | "lastWord" | "noteLastWord" | "forgetLastWords" | "save"
>;

/** A file that does not parse is refused after it has not changed for this long (ms). */
const COMMAND_SETTLE_MS = 1000;
/** Pause before an incomplete file is looked at again (ms), while there are only a few such files. */
const YOUNG_MS = 50;
const YOUNG_FEW = 64;
/** How many commands one tick carries out, and for about how long (ms). */
const COMMANDS_PER_LOOK_MAX = 64;
const CARRY_OUT_MS = 8;
/** While this many commands wait to be acknowledged on disk, only overtaking ones are carried out. */
const UNACKNOWLEDGED_MAX = 256;
/** The longest time for the last look of a supervisor (ms). */
const LAST_LOOK_MS = 250;
/** Pause before a claimed command that could not be read is tried again (ms). */
const READ_AGAIN_MS = 200;
/** Pause before a file that could not be read or moved is tried again (ms). Until then other files are tried. */
const TRY_AGAIN_MS = 2000;

export class CommandInbox {
  private readonly rules: DropRules<Command>;
  private readonly arrivals: CommandOrder;
  /** Files that are incomplete or have a second name, and since when they have not changed (monotonic ms). */
  private readonly young = new Map<string, { key: string; sinceMs: number }>();
  private hasLastWords = true;
  private unacknowledged: Settlement[] = [];
  private isAcknowledging = false;
  private runningCount = 0;
  private readonly postponed = new Set<NodeJS.Timeout>();

  /** @param uids owners whose files are accepted, besides our own uid and root */
  constructor(
    private readonly trays: Trays,
    private readonly newOwner: () => string,
    uids: readonly number[],
    private readonly hooks: CommandHooks,
  ) {
    // A batch would never be claimed, and enough of them would keep every other command waiting.
    const batches = "there are no batches of commands: write one file <id>.json for each";
    this.rules = { uids, batches, decode: decodeCommand };
    this.arrivals = new CommandOrder(trays, {
      onError: (error) => hooks.onError(error),
      onGone: (name) => this.young.delete(name),
    });
  }

  /** True while acknowledgements are being written. */
  get isBusy(): boolean {
    return this.runningCount > 0 || this.unacknowledged.length > 0 || this.isAcknowledging;
  }

  /** Ms until the next look: 0 for waiting commands, later for incomplete files. */
  get relookMs(): number | undefined {
    if (this.arrivals.hasWork) return this.unacknowledged.length < UNACKNOWLEDGED_MAX ? 0 : 1;
    return this.young.size === 0 ? undefined : YOUNG_MS;
  }

  /** Notes that a file came or went in the inbox. @param name of the file, if known */
  ring(name: string | undefined): void {
    this.arrivals.ring(name);
  }

  /** Takes some waiting commands, the oldest first; commands that steer the pool come soon. Acknowledgements follow. */
  work(): void {
    this.arrivals.work();
    this.carryOut(this.trays.clock.monotonicMs() + CARRY_OUT_MS, this.arrivals.overdue());
    if (this.hasLastWords && !this.arrivals.hasWork && !this.isBusy) {
      this.hasLastWords = false;
      this.hooks.control.forgetLastWords();
    }
    if (this.unacknowledged.length > 0 && !this.isAcknowledging) void this.acknowledge();
  }

  /** Takes a waiting stop now, so that it does not stop the next supervisor. Other commands are left for the next supervisor. */
  lastLook(): void {
    const untilMs = this.trays.clock.monotonicMs() + LAST_LOOK_MS;
    this.ring(undefined);
    do {
      this.arrivals.work();
      this.carryOut(untilMs, this.arrivals.overdue(true));
    } while (this.arrivals.hasWork && this.trays.clock.monotonicMs() < untilMs);
    if (this.unacknowledged.length > 0 && !this.isAcknowledging) void this.acknowledge();
  }

  /** Takes up a command that a dead supervisor had claimed. */
  takeReady(file: string): void {
    const ready = parseName(file);
    if (ready?.stage !== "ready") return;
    const claim = claimReady(this.trays, ready, this.newOwner());
    if (claim === undefined) return;
    // The exact time of arrival is lost. It is not after the mtime, which was set to the arrival if the command overtook others.
    const arrivedMs = this.trays.storage.look(claim.path)?.mtimeMs ?? 0;
    this.run(claim, { arrivedMs, name: "", isOvertaking: true });
  }

  private carryOut(untilMs: number, overdue: readonly Waiting[]): void {
    for (const waiting of overdue) this.take(waiting);
    for (let count = 0; count < COMMANDS_PER_LOOK_MAX; count++) {
      if (this.unacknowledged.length >= UNACKNOWLEDGED_MAX) return;
      const oldest = this.arrivals.oldest();
      if (oldest === undefined) return;
      this.take(oldest);
      if (this.trays.clock.monotonicMs() >= untilMs) return;
    }
  }

  private take(waiting: Waiting): void {
    const isOvertaking = this.arrivals.take(waiting);
    if (!this.claim(waiting, isOvertaking)) this.arrivals.missed(waiting);
  }

  /** @returns false when the command was not carried out: its file is gone, incomplete, or no command */
  private claim({ name, arrivedMs }: Waiting, isOvertaking: boolean): boolean {
    try {
      const seen = inspectFile(this.trays, name, this.rules);
      if (seen.is === "ignored") return false;
      if (seen.is === "misnamed") {
        this.refuse(name, undefined, seen);
        return false;
      }
      const { id, facts } = seen;
      if (seen.when !== "now" && !this.isQuiet(name, facts)) return false;
      if (seen.is === "rejected") {
        this.refuse(name, id, seen);
        return false;
      }
      if (seen.is === "linked") {
        // The file now has one name: look at it again.
        if (dropStagedLink(this.trays, id, facts.ino)) this.arrivals.ring(name);
        else this.refuse(name, id, { reason: SECOND_LINK });
        return false;
      }
      this.young.delete(name);
      const claim = claimFromInbox(this.trays, id, 1, this.newOwner());
      if (claim === undefined) return false;
      if (isOvertaking) this.keepArrival(claim, arrivedMs);
      this.run(claim, { arrivedMs, name, isOvertaking });
      return true;
    } catch (error) {
      this.young.delete(name);
      if (systemCode(error) === "ENOENT") return false;
      this.arrivals.postpone(name, TRY_AGAIN_MS);
      this.hooks.onError(error);
      return false;
    }
  }

  /** A claim changes the time of the file. This restores it, so that after a crash the next process still sees the time of arrival. */
  private keepArrival(claim: Claim, arrivedMs: number): void {
    try {
      this.trays.storage.touch(claim.path, arrivedMs);
    } catch (error) {
      // Only its owner can set a file's times: a file of another user counts as if it came when it was claimed.
      if (systemCode(error) !== "EPERM") throw error;
    }
  }

  private run(claim: Claim, arrival: Arrival): void {
    this.runningCount++;
    let command: Command | undefined;
    const settle = (ack: Acknowledgement): void => {
      this.runningCount--;
      this.unacknowledged.push(newAcknowledgement(this.trays, claim, command, ack));
      if (!this.isAcknowledging) void this.acknowledge();
    };
    const fail = (error: unknown): void =>
      settle({
        status: "failed",
        error: messageOf(error),
        code: codeOf(error),
      });
    const done = (result: object): void => settle({ status: "completed", result });
    const isAgain = claim.name.attempt > 1;
    const nonce = claim.name.submission;
    let subject: string | undefined;
    let isRead = false;
    try {
      this.freeId(claim.name.id);
      // Only the bytes of the claimed file count: it may have been replaced before.
      command = decodeCommand(readBytes(this.trays, claim), claim.name.id);
      subject = isAgain ? readSubject(this.trays, claim.name) : undefined;
      isRead = true;
      // A command that was begun or carried out before is finished, even if it has expired since.
      const isBegun = isAgain && (subject !== undefined || this.hooks.control.isApplied(nonce));
      const expiresMs = isBegun ? undefined : command.expiresAtMs;
      if (expiresMs !== undefined && expiresMs < this.trays.clock.wallMs()) {
        throw new ErrInvalidCommand(`the command expired at ${new Date(expiresMs).toISOString()}`, {
          id: command.id,
        });
      }
      const word = this.laterWord(command, arrival);
      if (word !== undefined && !isBegun) {
        done({ superseded_by: word.id });
        return;
      }
      const isEnding = command.command === "stop" || command.command === "drain";
      if (isEnding && isAgain) {
        // The supervisor that claimed this stop has ended since: the command has had its effect, and is not meant for us.
        done({ stopped: true });
        return;
      }
      const noteIt = (text: string): Promise<void> => noteSubject(this.trays, claim.name, text);
      const inHand = { command, nonce, isAgain, subject, noteSubject: noteIt };
      const result = this.hooks.apply(inHand);
      if (result instanceof Promise) result.then(done, fail);
      else done(result);
    } catch (error) {
      if (!isRead && !(error instanceof MailchuteError)) this.postpone(claim, arrival, error);
      else if (isRead) fail(error);
      else fail(new ErrInvalidCommand(messageOf(error), { cause: error }));
    }
  }

  /** A later command of the same subject that was carried out already. If there is none, this command may become that one. */
  private laterWord(command: Command, arrival: Arrival): LastWord | undefined {
    const subject = subjectOf(command);
    if (subject === undefined) return undefined;
    const word = this.hooks.control.lastWord(subject);
    if (word !== undefined && word.id !== command.id && isOlder(arrival, word)) return word;
    if (arrival.isOvertaking) {
      this.hasLastWords = true;
      const { arrivedMs, name } = arrival;
      this.hooks.control.noteLastWord(subject, { arrivedMs, name, id: command.id });
    }
    return undefined;
  }

  /** The command cannot be read from disk now: keep the lease and read it again later. */
  private postpone(claim: Claim, arrival: Arrival, error: unknown): void {
    this.hooks.onError(error);
    const timer = setTimeout(() => {
      this.postponed.delete(timer);
      this.runningCount--;
      this.run(claim, arrival);
    }, READ_AGAIN_MS);
    this.postponed.add(timer);
  }

  /** Commands that we could not read are left for the next supervisor. */
  close(): void {
    for (const timer of this.postponed) clearTimeout(timer);
    this.arrivals.close();
  }

  private async acknowledge(): Promise<void> {
    this.isAcknowledging = true;
    try {
      // The command has taken effect, but the next supervisor would not know that: acknowledge it with a later look.
      while (this.unacknowledged.length > 0 && this.hooks.control.save()) {
        const batch = this.unacknowledged;
        this.unacknowledged = [];
        await acknowledgeAll(this.trays, batch);
        for (const { claim, error } of batch) if (error === undefined) this.forget(claim);
        const failed = batch.filter((s) => s.error !== undefined);
        if (failed.length > 0) {
          // The disk is full: the command has its effect, and is acknowledged with a later look.
          this.unacknowledged.push(...failed);
          this.hooks.onError(failed[0]?.error);
          return;
        }
      }
    } finally {
      this.isAcknowledging = false;
    }
  }

  private forget(claim: Claim): void {
    const { submission } = claim.name;
    this.hooks.control.keepApplied((nonce) => nonce !== submission);
    try {
      forgetSubject(this.trays, claim.name);
    } catch (error) {
      // The sweep will remove it.
      this.hooks.onError(error);
    }
  }

  /**
   * A file such as `pause.json` may be dropped repeatedly, so the earlier acknowledgement of that name moves aside. Call this
   * only when we hold the claim: else it might move an acknowledgement that another supervisor has just written.
   */
  private freeId(id: string): void {
    const { outbox, failed } = this.trays;
    const aside = `${id}~${randomToken(8)}`;
    moved(this.trays, join(outbox, resultName(id)), join(outbox, resultName(aside)));
    moved(this.trays, join(failed, errorName(id)), join(failed, errorName(aside)));
  }

  private isQuiet(name: string, facts: FileFacts): boolean {
    const key = `${facts.ino}.${facts.size}.${facts.mtimeMs}`;
    const nowMs = this.trays.clock.monotonicMs();
    const known = this.young.get(name);
    const sinceMs = known?.key === key ? known.sinceMs : nowMs;
    if (nowMs - sinceMs >= COMMAND_SETTLE_MS) return true;
    this.young.set(name, { key, sinceMs });
    const isOneOfFew = this.young.size <= YOUNG_FEW;
    this.arrivals.postpone(name, isOneOfFew ? YOUNG_MS : COMMAND_SETTLE_MS);
    return false;
  }

  private refuse(name: string, id: string | undefined, { reason, offset }: Fault): void {
    this.young.delete(name);
    const refusal = { name, id, code: "ErrInvalidCommand", reason, offset, isIdTaken: false };
    const marker = beginQuarantine(this.trays, refusal);
    if (marker !== undefined)
      finishQuarantine(this.trays, marker, false).catch((e: unknown) => this.hooks.onError(e));
  }
}

/** A system error is no fault of the command, nor of mailchute. Node's own `ERR_…` are faults of mailchute. */
function codeOf(error: unknown): string {
  if (error instanceof MailchuteError) return error.code;
  return isSystemError(error) ? "ErrIo" : "ErrBug";
}
