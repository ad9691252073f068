/**
 * Commands: the control mailbox, in the order of arrival, through the same moves as tasks. A command is applied first and
 * acknowledged then; one that a crash left in between is applied again, which changes nothing twice.
 */
import { join } from "node:path";
import { decodeCommand } from "../codec/command-codec.ts";
import { excerptOf, JsonFault } from "../codec/json.ts";
import type { Command } from "../core/command.ts";
import { ErrInvalidCommand, MailchuteError, messageOf, systemCode } from "../core/errors.ts";
import { TASK_BYTES_MAX } from "../core/limits.ts";
import { errorName, parseName, readInboxName, resultName } from "../core/names.ts";
import { type Claim, claimFromInbox, claimReady, readBytes } from "../mailbox/claim.ts";
import { type Acknowledgement, acknowledgementRecord } from "../mailbox/command-queue.ts";
import { forgetSubject, noteSubject, readSubject } from "../mailbox/command-subject.ts";
import { dropStagedLink, explainBadFile, SECOND_LINK } from "../mailbox/dropped-file.ts";
import { beginQuarantine, finishQuarantine } from "../mailbox/quarantine.ts";
import { randomToken } from "../mailbox/random.ts";
import { newSettlement, type Settlement, settleAll } from "../mailbox/settle.ts";
import { moved } from "../mailbox/steps.ts";
import type { Trays } from "../mailbox/trays.ts";

/** A command in hand, and what is known of its first time when it is carried out again. */
export interface CommandInHand {
  command: Command;
  /** Its nonce: the same each time it is taken up, and of no other command, also of none with the same id. */
  nonce: string;
  /** True when a supervisor before us had claimed it, and may have carried it out. */
  isAgain: boolean;
  /** What it was noted to be about, that first time. */
  subject: string | undefined;
  /** Before the effect begins. */
  noteSubject(subject: string): Promise<void>;
}

export interface CommandHooks {
  /** Carries it out. Throws MailchuteError when it cannot be done; the text goes into the error record. */
  apply(inHand: CommandInHand): object | Promise<object>;
  /** Whether its effect is there already, so that it must be acknowledged even if it has expired since. */
  isApplied(nonce: string): boolean;
  /** Saves what commands have changed. False when the disk refuses: until then nothing is acknowledged. */
  save(): boolean;
  /** Nobody will ask for it again. */
  onAcknowledged(nonce: string): void;
  onError(error: unknown): void;
}

/** Rings may be lost: without one the inbox is listed this often (ms), in ticks that come anyway. */
const LOOK_MS = 100;
/** A file that does not parse is refused after it was quiet for this long (ms). */
const COMMAND_SETTLE_MS = 1000;
const COMMANDS_PER_LOOK_MAX = 64;
/** Pause before a claimed command that could not be read is tried again (ms). */
const READ_AGAIN_MS = 200;
/** Pause before a file that could not be read or moved is tried again (ms): meanwhile it takes no place from others. */
const TRY_AGAIN_MS = 2000;

export class Commands {
  private readonly trays: Trays;
  private readonly newOwner: () => string;
  private readonly uids: readonly number[];
  private readonly hooks: CommandHooks;
  private isRung = true;
  private lookAtMs = Number.NEGATIVE_INFINITY;
  private readonly young = new Map<string, { key: string; sinceMs: number }>();
  /** Files that could not be read or moved, and when (monotonic ms) they are tried again. */
  private readonly troubled = new Map<string, number>();
  /** Listed and not looked at yet, oldest first: what arrives meanwhile is younger. */
  private queue: string[] = [];
  private unacknowledged: Settlement[] = [];
  private isAcknowledging = false;
  private runningCount = 0;
  private readonly postponed = new Set<NodeJS.Timeout>();

  /** @param uids owners whose files are accepted, beside our own uid and root */
  constructor(trays: Trays, newOwner: () => string, uids: readonly number[], hooks: CommandHooks) {
    this.trays = trays;
    this.uids = uids;
    this.newOwner = newOwner;
    this.hooks = hooks;
  }

  /** True while acknowledgements are under way. */
  get isBusy(): boolean {
    return this.runningCount > 0 || this.unacknowledged.length > 0 || this.isAcknowledging;
  }

  /** Ms after which there is to be another look: at once for what waits, later for what is not whole. */
  get relookMs(): number | undefined {
    if (this.queue.length > 0) return 0;
    return this.young.size === 0 ? undefined : 50;
  }

  /** Something came or went in the inbox, or nobody knows. */
  ring(): void {
    this.isRung = true;
  }

  /** Takes what waits, oldest first. Applies at once; acknowledgements follow. */
  work(): void {
    const nowMs = this.trays.clock.monotonicMs();
    const isDue = this.isRung || this.young.size > 0 || nowMs >= this.lookAtMs;
    if (this.queue.length === 0 && isDue) {
      this.isRung = false;
      this.lookAtMs = nowMs + LOOK_MS;
      this.queue = this.listArrivals();
    }
    for (const name of this.queue.splice(0, COMMANDS_PER_LOOK_MAX)) this.take(name);
    if (this.unacknowledged.length > 0 && !this.isAcknowledging) void this.acknowledge();
  }

  /** Takes up a command that a dead supervisor had claimed. */
  takeReady(file: string): void {
    const ready = parseName(file);
    if (ready?.stage !== "ready") return;
    const claim = claimReady(this.trays, ready, this.newOwner());
    if (claim !== undefined) this.run(claim);
  }

  private listArrivals(): string[] {
    const { storage, inbox } = this.trays;
    let names: string[] = [];
    try {
      names = storage.list(inbox);
    } catch (error) {
      if (systemCode(error) !== "ENOENT") {
        this.hooks.onError(error);
        return [];
      }
    }
    for (const files of [this.troubled, this.young])
      for (const name of files.keys()) if (!names.includes(name)) files.delete(name);
    if (names.length === 0) return names;
    const nowMs = this.trays.clock.monotonicMs();
    const found: { name: string; mtimeMs: number }[] = [];
    for (const name of names) {
      const meaning = readInboxName(name);
      if (meaning.kind === "ignored" || (this.troubled.get(name) ?? 0) > nowMs) continue;
      const facts = storage.look(join(inbox, name));
      if (facts !== undefined) found.push({ name, mtimeMs: facts.mtimeMs });
    }
    found.sort((a, b) => a.mtimeMs - b.mtimeMs || (a.name < b.name ? -1 : 1));
    return found.map((f) => f.name);
  }

  private take(name: string): void {
    const meaning = readInboxName(name);
    if (meaning.kind === "ignored") return;
    try {
      if (meaning.kind === "bad") {
        this.refuse(name, undefined, new ErrInvalidCommand(meaning.reason), undefined);
        return;
      }
      if (meaning.isBatch === true) {
        // Nothing would ever claim it, and enough of them would keep every other command waiting.
        const reason = "there are no batches of commands: write one file <id>.json for each";
        this.refuse(name, undefined, new ErrInvalidCommand(reason), undefined);
        return;
      }
      const { id } = meaning;
      const path = join(this.trays.inbox, name);
      const { facts, bytes } = this.trays.storage.read(path, TASK_BYTES_MAX);
      const fault = explainBadFile(facts, this.uids);
      if (fault !== undefined || bytes === undefined) {
        const reason = fault ?? "the file cannot be read";
        this.refuse(name, id, new ErrInvalidCommand(reason, { id }), undefined);
        return;
      }
      const key = `${facts.ino}.${facts.size}.${facts.mtimeMs}`;
      // A submit that is under way holds a second link to the file; so does one that died.
      if (facts.nlink > 1) {
        if (!this.isQuiet(name, key)) return;
        if (!dropStagedLink(this.trays, id, facts.ino))
          this.refuse(name, id, new ErrInvalidCommand(SECOND_LINK, { id }), bytes);
        return;
      }
      try {
        decodeCommand(bytes, id);
      } catch (error) {
        if (!(error instanceof ErrInvalidCommand)) throw error;
        const mayGrow = error.cause instanceof JsonFault && !error.cause.isFinal;
        if (!mayGrow || this.isQuiet(name, key)) this.refuse(name, id, error, bytes);
        return;
      }
      this.young.delete(name);
      const claim = claimFromInbox(this.trays, id, 1, this.newOwner());
      if (claim !== undefined) this.run(claim);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return;
      this.troubled.set(name, this.trays.clock.monotonicMs() + TRY_AGAIN_MS);
      this.hooks.onError(error);
    }
  }

  private run(claim: Claim): void {
    this.runningCount++;
    let command: Command | undefined;
    const settle = (ack: Acknowledgement): void => {
      this.runningCount--;
      const record = acknowledgementRecord(this.trays, claim, command, ack);
      this.unacknowledged.push(newSettlement(claim, ack.status, record, claim.name.token));
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
      // The bytes that count are those of the claimed file: it may have been replaced before.
      command = decodeCommand(readBytes(this.trays, claim), claim.name.id);
      subject = isAgain ? readSubject(this.trays, claim.name) : undefined;
      isRead = true;
      // One that was carried out, or half so, is brought to its end.
      const isBegun = isAgain && (subject !== undefined || this.hooks.isApplied(nonce));
      const expiresMs = isBegun ? undefined : command.expiresAtMs;
      if (expiresMs !== undefined && expiresMs < this.trays.clock.wallMs()) {
        throw new ErrInvalidCommand(`the command expired at ${new Date(expiresMs).toISOString()}`, {
          id: command.id,
        });
      }
      const isEnding = command.command === "stop" || command.command === "drain";
      if (isEnding && isAgain) {
        // Claimed by a supervisor that has ended since: what it asked for is so, and not meant for us.
        done({ stopped: true });
        return;
      }
      const noteIt = (text: string): Promise<void> => noteSubject(this.trays, claim.name, text);
      const inHand = { command, nonce, isAgain, subject, noteSubject: noteIt };
      const result = this.hooks.apply(inHand);
      if (result instanceof Promise) result.then(done, fail);
      else done(result);
    } catch (error) {
      if (!isRead && !(error instanceof MailchuteError)) this.postpone(claim, error);
      else fail(error);
    }
  }

  /** The disk does not give the command now: the lease stays ours, and it is read again. */
  private postpone(claim: Claim, error: unknown): void {
    this.hooks.onError(error);
    const timer = setTimeout(() => {
      this.postponed.delete(timer);
      this.runningCount--;
      this.run(claim);
    }, READ_AGAIN_MS);
    this.postponed.add(timer);
  }

  /** Whoever comes after us takes up what we could not read. */
  close(): void {
    for (const timer of this.postponed) clearTimeout(timer);
  }

  private async acknowledge(): Promise<void> {
    this.isAcknowledging = true;
    try {
      // In force it is, but whoever comes after us would not know: acknowledged with a later look.
      while (this.unacknowledged.length > 0 && this.hooks.save()) {
        const batch = this.unacknowledged;
        this.unacknowledged = [];
        await settleAll(this.trays, batch, () => {});
        for (const { claim, error } of batch) if (error === undefined) this.forget(claim);
        const failed = batch.filter((s) => s.error !== undefined);
        if (failed.length > 0) {
          // A full disk: the effect is there, the acknowledgement comes with a later look.
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
    this.hooks.onAcknowledged(claim.name.submission);
    try {
      forgetSubject(this.trays, claim.name);
    } catch (error) {
      // The sweep will.
      this.hooks.onError(error);
    }
  }

  /**
   * `pause.json` may be dropped again and again: an earlier acknowledgement of that name moves aside. Only when the claim
   * is ours: what another supervisor has just acknowledged is not an earlier one.
   */
  private freeId(id: string): void {
    const { outbox, failed } = this.trays;
    const aside = `${id}~${randomToken(8)}`;
    moved(this.trays, join(outbox, resultName(id)), join(outbox, resultName(aside)));
    moved(this.trays, join(failed, errorName(id)), join(failed, errorName(aside)));
  }

  private isQuiet(name: string, key: string): boolean {
    const nowMs = this.trays.clock.monotonicMs();
    const known = this.young.get(name);
    if (known === undefined || known.key !== key) {
      this.young.set(name, { key, sinceMs: nowMs });
      return false;
    }
    return nowMs - known.sinceMs >= COMMAND_SETTLE_MS;
  }

  private refuse(
    name: string,
    id: string | undefined,
    error: MailchuteError,
    bytes: Buffer | undefined,
  ): void {
    this.young.delete(name);
    const raw = name.includes("\ufffd")
      ? this.trays.storage.rawName(this.trays.inbox, name)
      : undefined;
    const marker = beginQuarantine(this.trays, {
      name: raw ?? name,
      id,
      code: error.code,
      reason: error.message,
      isIdTaken: false,
      ...(error.offset === undefined ? {} : { offset: error.offset }),
      ...(bytes === undefined ? {} : { excerpt: excerptOf(bytes) }),
    });
    if (marker !== undefined)
      finishQuarantine(this.trays, marker, false).catch((e: unknown) => this.hooks.onError(e));
  }
}

/** What the disk says to a command is no fault of ours, nor of the command. Node's own `ERR_…` are faults of ours. */
function codeOf(error: unknown): string {
  if (error instanceof MailchuteError) return error.code;
  return /^E[A-Z0-9]+$/.test(systemCode(error)) ? "ErrIo" : "ErrBug";
}
