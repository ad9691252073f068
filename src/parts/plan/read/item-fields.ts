/** Reads the keys of an item whose values have a special form, such as dependencies, inputs and programs. */
import { isMap, isScalar, isSeq, type Node, type Scalar, visit } from "yaml";
import type { TaskBudget } from "../../../core/budget.ts";
import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX, MAX_ATTEMPTS_MAX } from "../../../core/limits.ts";
import { isDeeperThan, isWiderThan } from "../../../core/nesting.ts";
import type { NodeDependency, NodeInput } from "../../../core/roadmap.ts";
import { fieldJudge } from "../../../core/task-fields.ts";
import type { Entry, ItemValues } from "./item-values.ts";
import { isEmpty, offsetOf, textOf } from "./yaml-text.ts";

const PAYLOAD_CHARS_MAX = 1024 * 1024;
const ALIASES_MAX = 100;
const INPUT_KEYS: ReadonlySet<string> = new Set(["nodeId", "node", "key", "as"]);

/** Offsets at which problems between items are reported. */
export interface ItemMarks {
  id: number;
  parent?: number;
  dependencies: number[];
}

export function readDependencies(values: ItemValues, marks: ItemMarks): NodeDependency[] {
  const key = values.get("dependencies") === undefined ? "depends_on" : "dependencies";
  const found: NodeDependency[] = [];
  for (const item of values.list(key)?.items ?? []) {
    const dependency = readDependency(values, key, item);
    if (dependency === undefined) continue;
    found.push(dependency);
    marks.dependencies.push(item.at);
  }
  return found;
}

function readDependency(values: ItemValues, key: string, item: Entry): NodeDependency | undefined {
  const text = textOf(item.value);
  if (text !== undefined) return { id: text, required: "done" };
  const expected = "an id, or { id: …, required_status: done or terminal }";
  if (!isMap(item.value)) return values.bad(key, item, expected);
  let id: string | undefined;
  let required: NodeDependency["required"] = "done";
  for (const { name, keyAt, value, at } of values.membersOf(item.value, item)) {
    if (name === "id" || name === "node") id = textOf(value);
    else if (name === "required_status") {
      const word = textOf(value);
      if (word === "done" || word === "terminal") required = word;
      else values.bad("required_status", { key: item.key, value, at }, "done or terminal");
    } else values.unknownKey(keyAt, "a dependency", name, expected);
  }
  return id === undefined ? values.bad(key, item, expected) : { id, required };
}

export function readInputs(values: ItemValues): NodeInput[] {
  return (values.list("inputs")?.items ?? []).flatMap((item) => {
    const expected = "nodeId:key, or { nodeId: …, key: …, as: … }";
    const text = textOf(item.value);
    if (text !== undefined) {
      const colon = text.indexOf(":");
      if (colon > 0 && colon < text.length - 1)
        return { nodeId: text.slice(0, colon), key: text.slice(colon + 1) };
    }
    if (!isMap(item.value)) return values.bad("inputs", item, expected) ?? [];
    const input: Partial<NodeInput> = {};
    for (const { name, keyAt, value } of values.membersOf(item.value, item)) {
      const said = textOf(value);
      if (!INPUT_KEYS.has(name)) values.unknownKey(keyAt, "an input", name, expected);
      else if (said !== undefined) input[name === "key" || name === "as" ? name : "nodeId"] = said;
    }
    const { nodeId, key } = input;
    if (nodeId === undefined || key === undefined)
      return values.bad("inputs", item, expected) ?? [];
    return { ...input, nodeId, key };
  });
}

/** Reads `verify`: one argv, a list of argvs, or a line for the shell. */
export function readVerify(values: ItemValues): string[][] {
  const found = values.list("verify");
  if (found === undefined) return [];
  const { entry, items } = found;
  const hint = "for example verify: [npm, test], or [[npm, test], [npm, run, lint]]";
  if (!isSeq(entry.value)) {
    const line = textOf(entry.value);
    if (line === undefined || line.trim() === "")
      return values.bad("verify", entry, "programs with their arguments", hint) ?? [];
    return [["sh", "-c", line]];
  }
  if (items.length === 0) return [];
  if (items.every((item) => isScalar(item.value))) {
    const argv = values.texts("verify") ?? [];
    if (/\s/.test(argv[0] ?? ""))
      return values.bad("verify", items[0] ?? entry, "the name of a program", hint) ?? [];
    return [argv];
  }
  return items.flatMap((item): string[][] => {
    const line = textOf(item.value);
    if (line !== undefined) return [["sh", "-c", line]];
    const words = isSeq(item.value)
      ? item.value.items.map((raw) => textOf(values.source.follow(raw)))
      : [];
    if (words.length === 0 || words.includes(undefined))
      return values.bad("verify", item, "a program with its arguments", hint) ?? [];
    return [words as string[]];
  });
}

export function readMaxAttempts(values: ItemValues): number | undefined {
  const policy = values.get("retry_policy");
  if (policy === undefined) return values.integer("max_attempts", 1, MAX_ATTEMPTS_MAX);
  if (!isMap(policy.value)) return values.bad("retry_policy", policy, "{ max_attempts: N }");
  for (const { name, keyAt, value, at } of values.membersOf(policy.value, policy)) {
    if (name === "max_attempts" || name === "maxAttempts") {
      const entry = { key: policy.key, value, at };
      return values.integer("retry_policy.max_attempts", 1, MAX_ATTEMPTS_MAX, entry);
    }
    const notice = fieldJudge().judgeName(name, "retry_policy");
    const hint = `did you mean "${notice?.meant}"?`;
    if (notice !== undefined) values.unknownKey(keyAt, "a retry_policy", name, hint);
  }
  return undefined;
}

export function readEnv(values: ItemValues): Record<string, string> | undefined {
  const entry = values.get("env");
  if (entry === undefined) return undefined;
  if (!isMap(entry.value)) return values.bad("env", entry, "names with values");
  const env: [string, string][] = [];
  for (const { name, value, at } of values.membersOf(entry.value, entry)) {
    const text = isEmpty(value) ? "" : textOf(value);
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || name === "__proto__")
      values.bad("env", { ...entry, at }, "the name of a variable before each value");
    else if (text === undefined) values.bad(`env.${name}`, { ...entry, value, at }, "text");
    else env.push([name, text]);
  }
  return Object.fromEntries(env);
}

/** Checks only that it is a map. Its limits are checked with the node's task. */
export function readBudget(values: ItemValues, isOfContainer: boolean): TaskBudget | undefined {
  const entry = values.get("budget");
  if (entry?.value === undefined) return undefined;
  const hint = "it never runs: give one to its tasks, or to the plan";
  if (isOfContainer) return values.bad("budget", entry, "none", hint);
  if (!isMap(entry.value)) return values.bad("budget", entry, "limits such as { soft_usd: 2 }");
  return values.source.valueOf(entry.value, ALIASES_MAX) as TaskBudget;
}

export function readPayload(values: ItemValues): unknown {
  const entry = values.get("payload");
  if (entry?.value === undefined) return undefined;
  let chars: number;
  let value: unknown;
  try {
    value = values.source.valueOf(entry.value, ALIASES_MAX);
    chars = JSON.stringify(value).length;
  } catch {
    return values.bad("payload", entry, "plain data", "write values out instead of using aliases");
  }
  const odd = findOddNumber(values, entry.value);
  if (odd !== undefined) {
    const at = values.own.get("payload") === entry ? offsetOf(odd, entry.at) : entry.at;
    const told = { ...entry, value: odd, at };
    return values.bad("payload", told, "numbers that keep their digits", "write it in quotes");
  }
  // The payload becomes a member of the node's task, so it may be one level less deep than a task.
  if (isDeeperThan(value, JSON_DEPTH_MAX - 1))
    return values.bad("payload", entry, `at most ${JSON_DEPTH_MAX - 1} levels`);
  if (isWiderThan(value, JSON_MEMBERS_MAX))
    return values.bad("payload", entry, `objects of at most ${JSON_MEMBERS_MAX} members`);
  return chars <= PAYLOAD_CHARS_MAX ? value : values.bad("payload", entry, "less than 1 MiB");
}

/** Finds a number that loses digits or becomes infinite when it is read: `12345678901234567890`, `1e999`. */
function findOddNumber(values: ItemValues, payload: Node): Scalar | undefined {
  let found: Scalar | undefined;
  const look = (node: unknown): symbol | undefined => {
    if (!isScalar(node) || typeof node.value !== "number") return undefined;
    const { value, source = "" } = node;
    const digits = source.replace(/^\+/, "").replace(/^(-?)0+(?=\d)/, "$1");
    const isWhole = /^[-+]?(?:\d+|0[xo][\da-f]+)$/i.test(source);
    const isKept = !isWhole || Number.isSafeInteger(value) || String(value) === digits;
    if (Number.isFinite(value) && isKept) return undefined;
    found = node;
    return visit.BREAK;
  };
  visit(payload, {
    Scalar: (_key, node) => look(node),
    Alias: (_key, alias) => look(values.source.follow(alias)),
  });
  return found;
}
