/** Where in the mailbox a task is, and how it ended: what a command about it has to know. Moves nothing. */
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { ErrInvalidTransition } from "../../core/errors.ts";
import { inboxName, parseName } from "../../core/names.ts";
import type { Claim } from "../../mailbox/claim.ts";
import { readRecord, recordPaths } from "../../mailbox/settled-record.ts";
import type { Trays } from "../../mailbox/trays.ts";

/** And this long for a committed record to be published (ms). */
const PUBLISH_MS_MAX = 10_000;

/**
 * The same, when it is known: what was committed by one who died over it is published by recovery.
 * @throws ErrInvalidTransition when that takes too long
 */
export async function waitForSettled(
  trays: Trays,
  id: string,
  lease: string,
): Promise<ReturnType<typeof findSettled>> {
  const head = `${id}@${lease.slice(0, lease.indexOf(".") + 1)}`;
  const deadline = trays.clock.monotonicMs() + PUBLISH_MS_MAX;
  for (;;) {
    const isCommitted = trays.storage.list(trays.processing).some((file) => {
      const stage = file.startsWith(head) ? parseName(file)?.stage : undefined;
      return stage === "ok" || stage === "err";
    });
    if (!isCommitted) return findSettled(trays, id, lease);
    if (trays.clock.monotonicMs() > deadline)
      throw new ErrInvalidTransition(`${id} has ended; its record is being published`, { id });
    await wait(10);
  }
}

/** How the submission of this lease ended; undefined when its record is not there, or that of another. */
function findSettled(
  trays: Trays,
  id: string,
  lease: string,
): "completed" | "failed" | "cancelled" | undefined {
  const submission = lease.slice(0, lease.indexOf(".") + 1);
  for (const path of recordPaths(trays, id)) {
    const record = readRecord(trays, path)?.record;
    if (record === undefined || !String(record.lease).startsWith(submission)) continue;
    return record.status === "failed" && record.kind === "cancelled" ? "cancelled" : record.status;
  }
  return undefined;
}

export function findWaiting(trays: Trays, id: string): { id: string; isBatch?: true } | undefined {
  const names = [{ id }, { id, isBatch: true as const }];
  return names.find((name) => trays.storage.look(join(trays.inbox, inboxName(name))) !== undefined);
}

export function findLive(trays: Trays, id: string): Claim | undefined {
  for (const file of trays.storage.list(trays.processing)) {
    const name = parseName(file);
    if (name?.id === id && (name.stage === "w" || name.stage === "ready"))
      return { name, file, path: join(trays.processing, file) };
  }
  return undefined;
}
