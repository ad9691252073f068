/** Makes and compares the entries of kv, and reads them from the text of a file. Pure. */
import { parseObject } from "../core/json-object.ts";
import { explainBadKey, type KvEntry, type KvSource } from "../core/kv.ts";
import { KV_VALUE_BYTES_MAX } from "../core/limits.ts";
import { having, isNumber, isText, orNull } from "../core/shape.ts";

/** The values of a node, by key. */
export type Entries = Map<string, KvEntry>;

export function explainBadValue(key: string, value: unknown): string | undefined {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return `the value of ${key} is not valid JSON`;
  const bytes = Buffer.byteLength(text);
  return bytes <= KV_VALUE_BYTES_MAX
    ? undefined
    : `the value of ${key} has ${bytes} bytes as JSON, more than the limit of ${KV_VALUE_BYTES_MAX}`;
}

export function entryOf(value: unknown, t: number, { run, lease, attempt, by }: KvSource): KvEntry {
  return { value, at: new Date(t).toISOString(), t, run, lease, attempt, by };
}

/** Whether this run has put the same value, and the entry was not cut. */
export function isSame(entry: KvEntry | undefined, value: unknown, source: KvSource): boolean {
  return (
    entry !== undefined &&
    entry.run === source.run &&
    entry.cut === undefined &&
    JSON.stringify(entry.value) === JSON.stringify(value)
  );
}

/** Reads the text of a node's file. Undefined when this text is not that of a kv file. */
export function entriesOf(text: string): Entries | undefined {
  const document = parseObject(text);
  if (document === undefined) return undefined;
  const entries = Object.entries(document);
  return entries.every(([key, entry]) => explainBadKey(key) === undefined && isEntry(entry))
    ? new Map(entries as [string, KvEntry][])
    : undefined;
}

const isWhole = having({ t: isNumber, lease: orNull(isText), run: orNull(isText) });
export const isEntry = (value: unknown): boolean => isWhole(value) && "value" in value;
