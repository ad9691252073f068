/** The control mailbox as a queue of commands: enqueue, claim the next, acknowledge. Commands take the same steps as tasks. */
import os from "node:os";
import { join } from "node:path";
import { checkCommand, decodeCommand } from "../../codec/command-codec.ts";
import { decodeRecord, encodeRecord } from "../../codec/records.ts";
import { wallSeconds } from "../../core/clock.ts";
import type { Command } from "../../core/command.ts";
import { ErrInvalidCommand, ErrInvalidTask, ErrLeaseLost } from "../../core/errors.ts";
import { RECORD_BYTES_MAX, TASK_BYTES_MAX } from "../../core/limits.ts";
import { errorName, leaseOf, readInboxName, resultName } from "../../core/names.ts";
import { type Claim, claimFromInbox, readBytes } from "../claim/claim.ts";
import { requeue } from "../claim/requeue.ts";
import { explainOwner } from "../files/dropped-file.ts";
import { newId, randomToken } from "../files/random.ts";
import type { Trays } from "../files/trays.ts";
import { refuseClaim } from "../settle/quarantine.ts";
import { newSettlement, type Settlement, settleAll } from "../settle/settle.ts";
import { submit } from "../submit/submit.ts";

export interface CommandRequest {
  command: string;
  args?: Record<string, unknown>;
  /** Unix seconds or ISO 8601. */
  expires_at?: number | string;
}

/** Puts a command into `control/inbox/`. @throws ErrInvalidCommand, ErrIo */
export async function enqueueCommand(
  control: Trays,
  request: CommandRequest,
): Promise<{ id: string }> {
  const id = newId(control.clock.wallMs(), "c");
  const body = { id, ...request, created_at: wallSeconds(control.clock) };
  checkCommand({ ...body }, id);
  await submit(control, { id, bytes: Buffer.from(`${JSON.stringify(body)}\n`, "utf8") });
  return { id };
}

export interface ClaimedCommand {
  command: Command;
  claim: Claim;
}

/**
 * Claims the oldest valid command; undefined when none waits. Skips files that are no commands, and files of owners that `uids`
 * does not allow. If another file replaced the command before the claim, that file is refused.
 * @throws a system error
 */
export function claimNextCommand(control: Trays, owner: string): ClaimedCommand | undefined {
  const waiting = control.storage
    .list(control.inbox)
    .flatMap((name) => {
      const meaning = readInboxName(name);
      const facts =
        meaning.kind === "task" && meaning.isBatch !== true
          ? control.storage.look(join(control.inbox, name))
          : undefined;
      return meaning.kind === "task" && facts !== undefined
        ? // A file that was moved here keeps the mtime of its old place, so the ctime counts.
          [{ id: meaning.id, arrivedMs: facts.ctimeMs }]
        : [];
    })
    .sort((a, b) => a.arrivedMs - b.arrivedMs || (a.id < b.id ? -1 : 1));
  for (const { id } of waiting) {
    try {
      const { facts, bytes } = control.storage.read(
        join(control.inbox, `${id}.json`),
        TASK_BYTES_MAX,
      );
      if (bytes === undefined || explainOwner(facts.uid, control.uids) !== undefined) continue;
      decodeCommand(bytes, id);
    } catch {
      continue;
    }
    const claim = claimFromInbox(control, id, 1, owner);
    if (claim === undefined) continue;
    try {
      return { claim, command: decodeCommand(readBytes(control, claim), id) };
    } catch (error) {
      if (error instanceof ErrInvalidTask) {
        refuseClaim(control, claim, "ErrInvalidCommand", error.message);
        continue;
      }
      // The file was replaced between look and claim, or cannot be read now. Put it back: while this process lives, no other
      // process would take it.
      requeue(control, claim);
      if (!(error instanceof ErrInvalidCommand)) throw error;
    }
  }
  return undefined;
}

/** `done` means `completed`, the word that the record uses. */
export type Acknowledgement =
  | { status: "completed" | "done"; result: object }
  | { status: "failed"; error: string; code: string };

/** Settles a claimed command. @throws ErrLeaseLost when another process took it, or a system error */
export async function acknowledgeCommand(
  control: Trays,
  { claim, command }: ClaimedCommand,
  ack: Acknowledgement,
): Promise<void> {
  const settlement = newAcknowledgement(control, claim, command, ack);
  await acknowledgeAll(control, [settlement]);
  if (settlement.error !== undefined) throw settlement.error;
  if (settlement.outcome === "fenced")
    throw new ErrLeaseLost(`the command ${claim.name.id} was taken by another process`, {
      id: claim.name.id,
    });
}

/**
 * Settles commands; see settleAll. With `power` their claims are made durable first. Otherwise a power cut could bring a file back
 * to the inbox. It would count as a new command and be carried out again, because its acknowledgement does not show that it is the
 * same one.
 */
export async function acknowledgeAll(
  control: Trays,
  settlements: readonly Settlement[],
): Promise<void> {
  if (control.durability === "power")
    try {
      await control.storage.syncDirs([control.processing]);
    } catch (error) {
      for (const settlement of settlements) settlement.error = error;
      return;
    }
  await settleAll(control, settlements, () => {});
}

/**
 * The settlement of a command. The command is part of its record.
 * @param command undefined when the claimed file holds no command that may be carried out: the file is then kept in `failed/`
 */
export function newAcknowledgement(
  control: Trays,
  claim: Claim,
  command: Command | undefined,
  ack: Acknowledgement,
): Settlement {
  const keptAs =
    command === undefined ? `failed/${claim.name.id}~${randomToken(8)}.json` : undefined;
  const status = ack.status === "failed" ? "failed" : "completed";
  const now = wallSeconds(control.clock);
  const record = {
    task_id: claim.name.id,
    status,
    command: command?.command ?? null,
    args: command?.args ?? null,
    ...(ack.status === "failed"
      ? {
          error: ack.error,
          code: ack.code,
          kind: "invalid",
          failed_at: now,
          last_attempt_at: now,
        }
      : { result: ack.result, completed_at: now }),
    attempts: claim.name.attempt,
    pid: process.pid,
    host: os.hostname(),
    lease: leaseOf(claim.name),
    ...(keptAs === undefined ? {} : { file: keptAs }),
  };
  const bytes = encodeRecord(record as never, undefined);
  const settlement = newSettlement(claim, status, bytes, claim.name.token);
  return keptAs === undefined ? settlement : { ...settlement, keptAs };
}

/** The acknowledgement of a command, if there is one. */
export function readAcknowledgement(
  control: Trays,
  id: string,
): Record<string, unknown> | undefined {
  for (const path of [join(control.outbox, resultName(id)), join(control.failed, errorName(id))]) {
    if (control.storage.look(path) === undefined) continue;
    const { bytes } = control.storage.read(path, RECORD_BYTES_MAX);
    const record = bytes === undefined ? undefined : decodeRecord(bytes)?.record;
    if (record === undefined) continue;
    const said = record as unknown as Record<string, unknown>;
    // Other programs may write `done`.
    return said["status"] === "done" ? { ...said, status: "completed" } : said;
  }
  return undefined;
}
