/** The shapes and names of kv: what nodes leave for each other. Pure. */
import { isId } from "./names.ts";
import { RUN_SCOPE } from "./roadmap.ts";

/** Where a value comes from. */
export interface KvSource {
  /** Name of the directory under `runs/`; null when no run put it. */
  run: string | null;
  /** The lease it was put under; null when a person or program outside put it. Only with a lease there is fencing. */
  lease: string | null;
  /** From 1; 0 without a run. */
  attempt: number;
  /** Who put it, as people read it: the agent's name, "cli", "supervisor". */
  by: string;
}

/** One value of `kv/<node>.json`, which maps keys to these. */
export interface KvEntry extends KvSource {
  /** Any JSON. */
  value: unknown;
  /** ISO 8601. */
  at: string;
  /** Epoch milliseconds. */
  t: number;
  /** Set when the value was rebuilt from a history line that holds its beginning only. */
  cut?: true;
}

/** One line of `kv/history.jsonl`. A large value is there as the beginning of its JSON text, with `cut` and its size. */
export interface KvHistoryRecord extends KvEntry {
  node: string;
  key: string;
  op: "put" | "remove";
  /** Size of the whole value as JSON (bytes), when it was cut. */
  bytes?: number;
}

/** What the worker writes after every run of a node. */
export const OUTPUT_KEYS = {
  summary: "out.summary",
  stdoutPath: "out.last_stdout_path",
  resultPath: "out.last_result_path",
  error: "err.summary",
} as const;

const KEY = /^[A-Za-z0-9_][A-Za-z0-9._/:-]{0,127}$/;
const DANGEROUS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Why `node` has no values, or undefined if it can have some. */
export function explainBadScope(node: string): string | undefined {
  return node === RUN_SCOPE || isId(node)
    ? undefined
    : `${JSON.stringify(node.slice(0, 100))} is no node id, nor ${RUN_SCOPE}`;
}

/** Why `key` cannot be a key, or undefined if it can: `^[A-Za-z0-9_][A-Za-z0-9._/:-]{0,127}$`. */
export function explainBadKey(key: string): string | undefined {
  if (!KEY.test(key))
    return `the key ${JSON.stringify(key.slice(0, 140))} must begin with a letter, digit or '_', hold only those and '.', '/', ':', '-', and have at most 128 characters`;
  return DANGEROUS.has(key) ? `the key ${key} is not allowed` : undefined;
}

export function isOutputKey(key: string): boolean {
  return (Object.values(OUTPUT_KEYS) as string[]).includes(key);
}
