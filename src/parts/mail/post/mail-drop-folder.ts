/**
 * Takes messages that programs drop into `post/inbox`, with the moves of the mailbox protocol: claim, record, settle. A crash between
 * record and settlement does no harm: the message is then recorded again under the same id, which changes nothing.
 */
import os from "node:os";
import { setImmediate as pause } from "node:timers/promises";
import { encodeRecord } from "../../../codec/records.ts";
import { wallSeconds } from "../../../core/clock.ts";
import { MailchuteError, systemCode } from "../../../core/errors.ts";
import { RECOVER_MS } from "../../../core/limits.ts";
import { isReadyFile, leaseOf, parseName } from "../../../core/names.ts";
import { judgeOwner, ownerSequence } from "../../../host/identity.ts";
import { type Claim, claimFromInbox, claimReady, readBytes } from "../../../mailbox/claim/claim.ts";
import { requeue } from "../../../mailbox/claim/requeue.ts";
import { dropStagedLink, SECOND_LINK } from "../../../mailbox/files/dropped-file.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";
import { LeaseObserver } from "../../../mailbox/recover/lease-observer.ts";
import {
  beginQuarantine,
  finishQuarantine,
  refuseClaim,
} from "../../../mailbox/settle/quarantine.ts";
import { newSettlement, settleAll } from "../../../mailbox/settle/settle.ts";
import { type DropRules, type Fault, inspectFile } from "../../../supervisor/inbox/inspect-file.ts";
import { IncompleteFiles } from "../../../supervisor/inbox/pending-files.ts";
import { TaskRecovery } from "../../../supervisor/maintenance/task-recovery.ts";
import type { Scope } from "../scope/scope.ts";
import { type Draft, type Sent, send } from "../send/send.ts";
import type { MailStore } from "../store/mail-folder.ts";
import { decodePost } from "./decode-post.ts";

/** A round takes at most this many files, so that a flood does not delay other work for long. */
const TAKEN_MAX = 64;
const CODE = "ErrInvalidMessage";

interface PostParts {
  trays: Trays;
  store: MailStore;
  /** The scope of messages that name none. */
  home: Scope;
  settleMs: number;
  leaseTtlMs: number;
  onError: (error: unknown) => void;
}

export class MailDropFolder {
  private readonly deps: PostParts;
  private readonly trays: Trays;
  private readonly rules: DropRules<Draft>;
  private readonly incomplete: IncompleteFiles;
  private readonly newOwner = ownerSequence();
  private readonly taskRecovery: TaskRecovery;

  constructor(parts: PostParts) {
    const { trays, store, home, settleMs, leaseTtlMs, onError } = parts;
    this.deps = parts;
    this.trays = trays;
    const batches = "there are no batches of messages: write one file <id>.json for each";
    const decode = (bytes: Buffer, id: string): Draft =>
      decodePost(bytes, id, home, store.orchestrator);
    this.rules = { uids: trays.uids, batches, decode };
    this.incomplete = new IncompleteFiles(trays.clock, settleMs);
    const recoverer = {
      trays,
      newOwner: this.newOwner,
      judge: judgeOwner,
      observer: new LeaseObserver(RECOVER_MS),
      unfinished: new Set<string>(),
      excused: new Map<string, number>(),
      endLease: () => Promise.resolve(),
      // A message is recorded once under its id, so the number of attempts needs no limit.
      policyOf: () => ({ maxAttempts: Number.POSITIVE_INFINITY, agentId: "mail" }),
      onRecovered: () => {},
      onSettled: () => {},
    };
    this.taskRecovery = new TaskRecovery(recoverer, leaseTtlMs, onError);
  }

  /** True while a file is not complete yet, or must wait for the next round. */
  hasWaiting = false;

  /** Takes the files that have arrived, and those that dead processes left. Never throws. */
  async take(isStart = false): Promise<void> {
    try {
      await this.taskRecovery.round(this.taskRecovery.list(), isStart);
      for (const file of this.taskRecovery.list() ?? []) {
        const name = isReadyFile(file) ? parseName(file) : undefined;
        const claim = name && claimReady(this.trays, name, this.newOwner());
        if (claim !== undefined) await this.carryOut(claim);
      }
      const names = this.trays.storage.list(this.trays.inbox);
      this.hasWaiting = names.length > TAKEN_MAX;
      for (const name of this.inOrder(names)) {
        await this.look(name);
        // With very many messages, looking for an id takes some milliseconds.
        await pause();
      }
    } catch (error) {
      if (systemCode(error) !== "ENOENT") this.deps.onError(error);
    }
  }

  /** The files that came first. They are sorted by ctime, which a rename sets. */
  private inOrder(names: readonly string[]): string[] {
    const { inbox, storage } = this.trays;
    return names
      .map((name) => ({ name, cameMs: storage.look(`${inbox}/${name}`)?.ctimeMs ?? 0 }))
      .sort((a, b) => a.cameMs - b.cameMs || (a.name < b.name ? -1 : 1))
      .slice(0, TAKEN_MAX)
      .map(({ name }) => name);
  }

  private async look(name: string): Promise<void> {
    try {
      const seen = inspectFile(this.trays, name, this.rules);
      if (seen.is === "ignored") return;
      if (seen.is === "misnamed") return await this.refuse(name, undefined, seen);
      const { id, facts } = seen;
      if (seen.when !== "now" && !this.incomplete.isQuiet(name, facts)) {
        this.hasWaiting = true;
        return;
      }
      if (seen.is === "rejected") return await this.refuse(name, id, seen);
      if (seen.is === "linked") {
        if (dropStagedLink(this.trays, id, facts.ino)) this.hasWaiting = true;
        else await this.refuse(name, id, { reason: SECOND_LINK });
        return;
      }
      this.incomplete.forget(name);
      const claim = claimFromInbox(this.trays, id, 1, this.newOwner());
      if (claim !== undefined) await this.carryOut(claim);
    } catch (error) {
      // Gone: another process took it.
      if (systemCode(error) !== "ENOENT") this.deps.onError(error);
    }
  }

  /** Records a claimed message. Only the bytes of the claimed file count: the file may have been replaced before the claim. */
  private async carryOut(claim: Claim): Promise<void> {
    const { trays, store, home } = this.deps;
    let sent: Sent;
    try {
      const bytes = readBytes(trays, claim);
      const draft = decodePost(bytes, claim.name.id, home, store.orchestrator);
      sent = send(store, draft, trays.clock.wallMs());
    } catch (error) {
      if (error instanceof MailchuteError && error.code !== "ErrMailboxDir")
        return refuseClaim(trays, claim, CODE, error.message);
      // The disk is full, or the data directory cannot be used: the file waits in the inbox.
      requeue(trays, claim);
      throw error;
    }
    const settlement = newSettlement(
      claim,
      "completed",
      recordOf(trays, claim, sent),
      claim.name.token,
    );
    await settleAll(trays, [settlement], () => {});
    if (settlement.error !== undefined) throw settlement.error;
  }

  private async refuse(
    name: string,
    id: string | undefined,
    { reason, offset }: Fault,
  ): Promise<void> {
    this.incomplete.forget(name);
    const refusal = { name, id, code: CODE, reason, offset, isIdTaken: false };
    const marker = beginQuarantine(this.trays, refusal);
    if (marker !== undefined) await finishQuarantine(this.trays, marker, false);
  }
}

/** The record that answers the program that dropped the file. */
function recordOf(trays: Trays, { name }: Claim, sent: Sent): Buffer {
  const record = {
    task_id: name.id,
    status: "completed",
    result: { id: sent.id, to: sent.to, is_new: sent.isNew },
    completed_at: wallSeconds(trays.clock),
    attempts: name.attempt,
    pid: process.pid,
    host: os.hostname(),
    lease: leaseOf(name),
  };
  return encodeRecord(record as never, undefined);
}
