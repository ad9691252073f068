/** The control mailbox as a queue of commands: enqueue, claim the next, acknowledge. The same moves as for tasks. */
import os from "node:os";
import { join } from "node:path";
import { checkCommand, decodeCommand } from "../codec/command-codec.ts";
import { decodeRecord, encodeRecord } from "../codec/records.ts";
import { wallSeconds } from "../core/clock.ts";
import type { Command } from "../core/command.ts";
import { ErrInvalidCommand, ErrLeaseLost } from "../core/errors.ts";
import { TASK_BYTES_MAX } from "../core/limits.ts";
import { errorName, leaseOf, readInboxName, resultName } from "../core/names.ts";
import { type Claim, claimFromInbox, readBytes } from "./claim.ts";
import { newId } from "./random.ts";
import { requeue } from "./requeue.ts";
import { newSettlement, settleAll } from "./settle.ts";
import { submit } from "./submit.ts";
import type { Trays } from "./trays.ts";

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

/** Claims the oldest good command, or gives undefined when none waits. Files that are no commands are passed over. @throws a system error */
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
        ? [{ id: meaning.id, mtimeMs: facts.mtimeMs }]
        : [];
    })
    .sort((a, b) => a.mtimeMs - b.mtimeMs || (a.id < b.id ? -1 : 1));
  for (const { id } of waiting) {
    try {
      const { bytes } = control.storage.read(join(control.inbox, `${id}.json`), TASK_BYTES_MAX);
      if (bytes === undefined) continue;
      decodeCommand(bytes, id);
    } catch {
      continue;
    }
    const claim = claimFromInbox(control, id, 1, owner);
    if (claim === undefined) continue;
    try {
      return { claim, command: decodeCommand(readBytes(control, claim), id) };
    } catch (error) {
      // Replaced between look and claim, or not to be read now: as long as we live nobody would take it back from us.
      requeue(control, claim);
      if (!(error instanceof ErrInvalidCommand)) throw error;
    }
  }
  return undefined;
}

export type Acknowledgement =
  | { status: "completed"; result: object }
  | { status: "failed"; error: string; code: string };

/** Settles a claimed command. @throws ErrLeaseLost when somebody else took it, or a system error */
export async function acknowledgeCommand(
  control: Trays,
  { claim, command }: ClaimedCommand,
  ack: Acknowledgement,
): Promise<void> {
  const record = acknowledgementRecord(control, claim, command, ack);
  const settlement = newSettlement(claim, ack.status, record, claim.name.token);
  await settleAll(control, [settlement], () => {});
  if (settlement.error !== undefined) throw settlement.error;
  if (settlement.outcome === "fenced")
    throw new ErrLeaseLost(`the command ${claim.name.id} was taken by somebody else`, {
      id: claim.name.id,
    });
}

/** The bytes of an acknowledgement; the command as it was travels inside. */
export function acknowledgementRecord(
  control: Trays,
  claim: Claim,
  command: Command | undefined,
  ack: Acknowledgement,
): Buffer {
  const now = wallSeconds(control.clock);
  const record = {
    task_id: claim.name.id,
    status: ack.status,
    command: command?.command ?? null,
    args: command?.args ?? null,
    ...(ack.status === "completed"
      ? { result: ack.result, completed_at: now }
      : {
          error: ack.error,
          code: ack.code,
          kind: "invalid",
          failed_at: now,
          last_attempt_at: now,
        }),
    attempts: claim.name.attempt,
    pid: process.pid,
    host: os.hostname(),
    lease: leaseOf(claim.name),
  };
  return encodeRecord(record as never, undefined);
}

/** The acknowledgement of a command, once it is there. */
export function readAcknowledgement(
  control: Trays,
  id: string,
): Record<string, unknown> | undefined {
  for (const path of [join(control.outbox, resultName(id)), join(control.failed, errorName(id))]) {
    if (control.storage.look(path) === undefined) continue;
    const { bytes } = control.storage.read(path, Number.MAX_SAFE_INTEGER);
    const record = bytes === undefined ? undefined : decodeRecord(bytes)?.record;
    if (record !== undefined) return record as unknown as Record<string, unknown>;
  }
  return undefined;
}
