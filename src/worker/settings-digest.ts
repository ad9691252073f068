/** Reduces the settings of a worker to one short text: workers with the same text treat every task alike. */
import { createHash } from "node:crypto";
import type { Settings } from "../core/settings.ts";
import { readVersion } from "../host/package.ts";

/** Settings that only a supervisor uses. */
const OF_SUPERVISORS = {
  workers: undefined,
  processes: undefined,
  retention: undefined,
  settle_ms: undefined,
  until_grace_ms: undefined,
} satisfies Partial<Record<keyof Settings, undefined>>;

/** @param mailbox path of the trays; @returns 16 hex digits */
export function digestSettings(settings: Settings, mailbox: string): string {
  const text = JSON.stringify([readVersion(), mailbox, { ...settings, ...OF_SUPERVISORS }]);
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
