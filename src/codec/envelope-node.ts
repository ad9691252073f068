/** Decodes a node inside an envelope. It accepts several spellings of each field. */
import { compact } from "../core/compact.ts";
import type { EnvelopeNode } from "../core/envelope.ts";
import { isObject } from "../core/json-object.ts";
import { explainBadKey, explainBadScope } from "../core/kv.ts";
import {
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
  MAX_ATTEMPTS_MAX,
  TIMER_MS_MAX,
} from "../core/limits.ts";
import { foldId } from "../core/names.ts";
import { isDeeperThan, isWiderThan } from "../core/nesting.ts";
import {
  NODE_STATUSES,
  NODE_TYPES,
  type NodeDependency,
  type NodeInput,
  type NodeStatus,
} from "../core/roadmap.ts";
import { fieldJudge } from "../core/task-fields.ts";
import { isNothing, type LenientValues, list, member } from "./lenient-values.ts";

/** Reads a node that a run wants to add to the plan, from `next.addNodes`. */
export function readNode(
  values: LenientValues,
  place: string,
  object: Record<string, unknown>,
): EnvelopeNode {
  const at = (name: string): string => `${place}.${name}`;
  const read = new Set<string>();
  const any = (...names: string[]): unknown => {
    for (const name of names) read.add(name);
    return member(object, names);
  };
  const text = (name: string, ...more: string[]): string | undefined =>
    values.text(at(name), any(name, ...more));
  const { status, exec, payload } = object;
  const policy = any("retry_policy", "retryPolicy");
  const attempts =
    any("max_attempts", "maxAttempts") ??
    (isObject(policy) ? member(policy, ["max_attempts", "maxAttempts"]) : undefined);
  const needed = any("dependencies", "depends_on", "dependsOn", "after");
  const accepted = any("acceptance", "acceptance_criteria", "acceptanceCriteria");
  const id = values.id(at("id"), object["id"]);
  checkPayload(values, at("payload"), payload);
  const node: EnvelopeNode = compact({
    id,
    type: values.optionalWord(at("type"), object["type"], NODE_TYPES) ?? "task",
    title: text("title") ?? id,
    status: isNothing(status) ? undefined : readNodeStatus(values, at("status"), status),
    parent: values.optionalId(at("parent"), any("parent", "parent_id", "parentId")),
    priority: values.priority(at("priority"), object["priority"]),
    dependencies: readDependencies(values, at("dependencies"), needed, id),
    max_attempts: values.integer(at("max_attempts"), attempts, 1, MAX_ATTEMPTS_MAX),
    inputs: readInputs(values, at("inputs"), object["inputs"]),
    goal: text("goal", "description"),
    prompt: text("prompt"),
    acceptance: values.lines(accepted, ["text", "title"]),
    verify: readPrograms(values, at("verify"), object["verify"]),
    exec: isNothing(exec) ? undefined : values.argv(at("exec"), exec),
    agent: text("agent"),
    role: text("role"),
    capabilities: values.lines(object["capabilities"], ["name"]),
    cwd: text("cwd"),
    env: readVariables(values, at("env"), object["env"]),
    timeout_ms: values.integer(at("timeout_ms"), any("timeout_ms", "timeoutMs"), 1, TIMER_MS_MAX),
    payload,
  });
  // A misspelt field could make the node run too early.
  for (const name of Object.keys(object)) {
    const notice = read.has(name) ? undefined : fieldJudge().judgeName(name, "node");
    if (notice?.kind === "misspelt") values.bad(at(name), notice.why);
  }
  return node;
}

export function readNodeStatus(values: LenientValues, place: string, value: unknown): NodeStatus {
  if (typeof value === "string" && value.trim().toLowerCase() === "pending") return "open";
  return values.word<NodeStatus>(place, value, NODE_STATUSES) ?? "open";
}

function readDependencies(
  values: LenientValues,
  place: string,
  value: unknown,
  own: string,
): NodeDependency[] {
  return list(value).map((item, i) => {
    const at = `${place}[${i}]`;
    const object: Record<string, unknown> = isObject(item) ? item : { id: item };
    const id = values.id(at, member(object, ["id", "node", "nodeId", "node_id"]));
    if (foldId(id) === foldId(own)) values.bad(at, "a node cannot wait for itself");
    const required = member(object, ["required", "required_status", "requiredStatus"]);
    return { id, required: values.optionalWord(at, required, ["done", "terminal"]) ?? "done" };
  });
}

function readInputs(values: LenientValues, place: string, value: unknown): NodeInput[] {
  return list(value).map((item, i) => {
    const at = `${place}[${i}]`;
    const [, textNode, textKey] =
      typeof item === "string" ? (/^([^:]+):(.+)$/s.exec(item) ?? []) : [];
    const object: Record<string, unknown> = isObject(item)
      ? item
      : { nodeId: textNode, key: textKey };
    const nodeId = values.text(at, member(object, ["nodeId", "node_id", "node"])) ?? "";
    const key = values.text(at, object["key"]) ?? "";
    const as = values.text(at, object["as"]);
    const fault = explainBadScope(nodeId) ?? explainBadKey(key);
    if (fault !== undefined) values.bad(at, fault);
    return { nodeId, key, ...(as === undefined ? {} : { as }) };
  });
}

function readPrograms(values: LenientValues, place: string, value: unknown): string[][] {
  if (isNothing(value)) return [];
  if (typeof value === "string") return [["sh", "-c", value]];
  const items = list(value);
  if (items.length > 0 && items.every((item) => typeof item === "string"))
    return [values.argv(place, items)];
  return items.map((item, i) => values.argv(`${place}[${i}]`, item));
}

function readVariables(
  values: LenientValues,
  place: string,
  value: unknown,
): Record<string, string> | undefined {
  if (isNothing(value)) return undefined;
  const isFit =
    isObject(value) &&
    Object.entries(value).every(
      ([name, one]) => /^[^=\0]+$/.test(name) && typeof one === "string" && !one.includes("\0"),
    );
  // The message does not show the values, because they may be secrets.
  if (!isFit) values.bad(place, "expected texts by name");
  return isFit ? (value as Record<string, string>) : undefined;
}

/** Checks the depth of a payload. It becomes a member of the node's task, so it may nest one level less than a task. */
function checkPayload(values: LenientValues, place: string, value: unknown): void {
  if (isDeeperThan(value, JSON_DEPTH_MAX - 1))
    values.bad(place, `is nested deeper than ${JSON_DEPTH_MAX - 1} levels`);
  else if (isWiderThan(value, JSON_MEMBERS_MAX))
    values.bad(place, `holds an object of more than ${JSON_MEMBERS_MAX} members`);
}
