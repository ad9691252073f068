/** The shapes and names of kv: the values that nodes of the plan leave for each other. Pure. */
import { isId } from "./names.ts";
import { RUN_SCOPE } from "./roadmap.ts";

/** The run, person or program that put a value. */
export interface KvSource {
  /** Name of the run's directory under `runs/`; null when no run put the value. */
  run: string | null;
  /** The lease of the run; null when a person or another program put the value. Only a put with a lease is fenced. */
  lease: string | null;
  /** Number of the run, from 1; 0 without a run. */
  attempt: number;
  /** A name for people: that of the agent, "cli" or "supervisor". */
  by: string;
}

/** One value in `kv/<node>.json`, a file that maps each key to its entry. */
export interface KvEntry extends KvSource {
  /** Any JSON. */
  value: unknown;
  /** ISO 8601. */
  at: string;
  /** Epoch milliseconds. */
  t: number;
  /** Set when the value was rebuilt from a line of the history that holds only its beginning. */
  cut?: true;
}

/** One line of `kv/history.jsonl`. For a large value it holds only the beginning of the JSON text, `cut` and the size. */
export interface KvHistoryRecord extends KvEntry {
  node: string;
  key: string;
  op: "put" | "remove";
  /** Size of the whole value as JSON (bytes); only set when the value was cut. */
  bytes?: number;
}

/** The keys that the worker writes after every run of a node. */
export const OUTPUT_KEYS = {
  summary: "out.summary",
  stdoutPath: "out.last_stdout_path",
  resultPath: "out.last_result_path",
  error: "err.summary",
} as const;

const KEY = /^[A-Za-z0-9_][A-Za-z0-9._/:-]{0,127}$/;
const DANGEROUS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Why `node` cannot have values in kv, or undefined if it can. */
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
