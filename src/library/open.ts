/** Opens a state tree as a library. */
import { resolve } from "node:path";
import { stateTree } from "../core/state-tree.ts";
import { type LibraryParts, Mailchute } from "./mailchute.ts";

/**
 * Opens a state tree, and makes it if it is missing.
 * @throws ErrMailboxDir when it cannot be used safely, or needs a newer program; ErrInvalidConfig
 */
export async function openTree(dir: string, parts: LibraryParts): Promise<Mailchute> {
  const stateDir = resolve(dir);
  // Loaded only now, because it reads YAML: a program that only imports this package need not load that.
  const { loadSettings } = await import("../config/load-settings.ts");
  const { settings, mailboxDir } = loadSettings({ stateDir, env: process.env });
  const { durability, lease_ttl_ms: leaseTtlMs, retry, retention, uids } = settings;
  const tree = stateTree(stateDir, mailboxDir);
  const mailbox = parts.openMailbox(tree.mailbox, {
    durability,
    leaseTtlMs,
    maxAttempts: retry.max_attempts,
    backoffMaxMs: retry.backoff_max_ms,
    outboxDays: retention.outbox_days,
    failedDays: retention.failed_days,
  });
  // A user who may enqueue need not own the directories: only the owners of files are checked.
  mailbox.trays.uids = uids;
  return new Mailchute(tree, settings, mailbox, parts);
}
