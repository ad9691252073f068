/** Makes the ids and the texts of the tasks of a schedule. Pure. */
import { createHash } from "node:crypto";
import { derivedId } from "../../core/derived-id.ts";
import { isObject } from "../../core/json-object.ts";

interface FiredSchedule {
  name: string;
  /** Each task starts up to this much later (ms). */
  jitterMs: number;
  /** The fields of its tasks. */
  task: Readonly<Record<string, unknown>>;
}

/** `nightly.20260301T023000Z`: one time always has the same id, even if it is decided twice. */
export function firingId(name: string, nominalMs: number): string {
  const time = new Date(nominalMs).toISOString().slice(0, 19).replace(/[-:]/g, "");
  return derivedId(name, `.${time}Z`);
}

/** The text of the task of this time; always the same bytes for the same schedule. */
export function firingText(
  { name, jitterMs, task }: FiredSchedule,
  nominalMs: number,
  id = firingId(name, nominalMs),
): string {
  const { metadata, env } = task;
  const laterMs = jitterMs === 0 ? 0 : jitterOf(name, nominalMs) * jitterMs;
  const fields = {
    id,
    created_at: Math.floor(nominalMs / 1000),
    ...(laterMs === 0 ? {} : { not_before: Math.ceil((nominalMs + laterMs) / 1000) }),
    title: name,
    ...task,
    env: {
      ...(isObject(env) ? env : {}),
      MAILCHUTE_SCHEDULED_FOR: new Date(nominalMs).toISOString(),
    },
    metadata: {
      ...(isObject(metadata) ? metadata : {}),
      schedule: { name, nominal: Math.floor(nominalMs / 1000) },
    },
  };
  return `${JSON.stringify(fields)}\n`;
}

/** From 0 to 1, computed from the name and the time, so that it is the same after a restart. */
function jitterOf(name: string, nominalMs: number): number {
  const hash = createHash("sha256").update(`${name} ${nominalMs}`).digest();
  return hash.readUInt32BE(0) / 2 ** 32;
}
