/** Opens and sweeps `post/` of a state tree, the mailbox for messages of any program. */
import type { Settings } from "../../../core/settings.ts";
import { Sweep } from "../../../mailbox/clean/sweep.ts";
import { openTrays, type Trays } from "../../../mailbox/files/trays.ts";
import type { OwnMail } from "../roots/open-own.ts";
import { postOf } from "./has-post.ts";
import { MailDropFolder } from "./mail-drop-folder.ts";

export interface OpenPost {
  box: MailDropFolder;
  trays: Trays;
}

/** Makes the missing trays. @param own the mail of the state tree @throws ErrMailboxDir */
export function openPost(
  stateDir: string,
  settings: Settings,
  { folder, store }: OwnMail,
  onError: (error: unknown) => void,
): OpenPost {
  const { durability, uids, settle_ms: settleMs, lease_ttl_ms: leaseTtlMs } = settings;
  const trays = openTrays(postOf(stateDir), { durability, uids });
  const home = folder.scope;
  return { trays, box: new MailDropFolder({ trays, store, home, settleMs, leaseTtlMs, onError }) };
}

/** Removes records that are past their retention. */
export function sweepPost(trays: Trays, { retention }: Settings): void {
  const { outbox_days: outboxDays, failed_days: failedDays } = retention;
  const sweep = new Sweep(trays, { outboxDays, failedDays });
  try {
    while (!sweep.next(1));
  } finally {
    sweep.close();
  }
}
