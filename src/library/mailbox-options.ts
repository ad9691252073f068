/** The options of a mailbox that is opened as a library, and their defaults. */
import { DEFAULT_SETTINGS } from "../core/settings.ts";
import type { OpenOptions } from "../mailbox/files/trays.ts";

export interface MailboxOptions extends OpenOptions {
  /** How long an owner of a lease may be silent before its task is taken back (ms). Default 4 h. */
  leaseTtlMs?: number;
  /** Most runs of a task that has no `max_attempts`. Default 3. */
  maxAttempts?: number;
  /** Longest wait of a task for its retry (ms), even if the time of its file is later. Default 5 minutes. */
  backoffMaxMs?: number;
  /** How long results are kept (days). Default 7. */
  outboxDays?: number;
  /** How long failed tasks are kept (days). Default 30. */
  failedDays?: number;
  /** The name of this program in records. Default "library". */
  agentId?: string;
}

/** With the defaults in place of what was left out. */
export type KnownOptions = Required<Omit<MailboxOptions, keyof OpenOptions>>;

export function withDefaults(options: MailboxOptions): KnownOptions {
  return {
    leaseTtlMs: options.leaseTtlMs ?? 4 * 60 * 60 * 1000,
    maxAttempts: options.maxAttempts ?? 3,
    backoffMaxMs: options.backoffMaxMs ?? DEFAULT_SETTINGS.retry.backoff_max_ms,
    outboxDays: options.outboxDays ?? 7,
    failedDays: options.failedDays ?? 30,
    agentId: options.agentId ?? "library",
  };
}
