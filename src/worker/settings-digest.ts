/** What a worker was started with, as one short text: workers with the same text do the same with every task. */
import { createHash } from "node:crypto";
import type { Settings } from "../core/settings.ts";
import { readVersion } from "../host/package.ts";

/** What only a supervisor goes by. */
const OF_SUPERVISORS = {
  workers: undefined,
  processes: undefined,
  retention: undefined,
  settle_ms: undefined,
} satisfies Partial<Record<keyof Settings, undefined>>;

/** @param mailbox where the trays are; @returns 16 hex digits */
export function digestSettings(settings: Settings, mailbox: string): string {
  const text = JSON.stringify([readVersion(), mailbox, { ...settings, ...OF_SUPERVISORS }]);
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
