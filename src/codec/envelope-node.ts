/** A node inside an envelope: every spelling of its fields in, one shape out. */
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
  NODE_PRIORITIES,
  NODE_STATUSES,
  NODE_TYPES,
  type NodeDependency,
  type NodeInput,
  type NodePriority,
  type NodeStatus,
  type NodeType,
} from "../core/roadmap.ts";
import { isNothing, type LenientValues, list, member } from "./lenient-values.ts";

/** A node that a run wants to add, as it is written under `next.addNodes`. */
export function readNode(
  values: LenientValues,
  place: string,
  object: Record<string, unknown>,
): EnvelopeNode {
  const id = values.id(`${place}.id`, object["id"]);
  const type = isNothing(object["type"])
    ? "task"
    : values.word<NodeType>(`${place}.type`, object["type"], NODE_TYPES);
  const parent = values.optionalId(
    `${place}.parent`,
    member(object, ["parent", "parent_id", "parentId"]),
  );
  const status = isNothing(object["status"])
    ? undefined
    : readNodeStatus(values, `${place}.status`, object["status"]);
  const priority = isNothing(object["priority"])
    ? undefined
    : values.word<NodePriority>(`${place}.priority`, object["priority"], NODE_PRIORITIES);
  const policy = member(object, ["retry_policy", "retryPolicy"]);
  const maxAttempts = values.integer(
    `${place}.max_attempts`,
    member(object, ["max_attempts", "maxAttempts"]) ??
      (isObject(policy) ? member(policy, ["max_attempts", "maxAttempts"]) : undefined),
    1,
    MAX_ATTEMPTS_MAX,
  );
  const timeoutMs = values.integer(
    `${place}.timeout_ms`,
    member(object, ["timeout_ms", "timeoutMs"]),
    1,
    TIMER_MS_MAX,
  );
  const goal = values.text(`${place}.goal`, member(object, ["goal", "description"]));
  const prompt = values.text(`${place}.prompt`, object["prompt"]);
  const agent = values.text(`${place}.agent`, object["agent"]);
  const role = values.text(`${place}.role`, object["role"]);
  const cwd = values.text(`${place}.cwd`, object["cwd"]);
  const exec = isNothing(object["exec"]) ? undefined : values.argv(`${place}.exec`, object["exec"]);
  const env = readVariables(values, `${place}.env`, object["env"]);
  // It becomes a member of the node's task.
  if (isDeeperThan(object["payload"], JSON_DEPTH_MAX - 1))
    values.bad(`${place}.payload`, `is nested deeper than ${JSON_DEPTH_MAX - 1} levels`);
  else if (isWiderThan(object["payload"], JSON_MEMBERS_MAX))
    values.bad(`${place}.payload`, `holds an object of more than ${JSON_MEMBERS_MAX} members`);
  return {
    id,
    type: type ?? "task",
    title: values.text(`${place}.title`, object["title"]) ?? id,
    ...(status === undefined ? {} : { status }),
    ...(parent === undefined ? {} : { parent }),
    ...(priority === undefined ? {} : { priority }),
    dependencies: readDependencies(
      values,
      `${place}.dependencies`,
      member(object, ["dependencies", "depends_on", "dependsOn", "after"]),
      id,
    ),
    ...(maxAttempts === undefined ? {} : { max_attempts: maxAttempts }),
    inputs: readInputs(values, `${place}.inputs`, object["inputs"]),
    ...(goal === undefined ? {} : { goal }),
    ...(prompt === undefined ? {} : { prompt }),
    acceptance: values.lines(
      member(object, ["acceptance", "acceptance_criteria", "acceptanceCriteria"]),
      ["text", "title"],
    ),
    verify: readPrograms(values, `${place}.verify`, object["verify"]),
    ...(exec === undefined ? {} : { exec }),
    ...(agent === undefined ? {} : { agent }),
    ...(role === undefined ? {} : { role }),
    capabilities: values.lines(object["capabilities"], ["name"]),
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
    ...(object["payload"] === undefined ? {} : { payload: object["payload"] }),
  };
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
    return {
      id,
      required: isNothing(required)
        ? "done"
        : (values.word<NodeDependency["required"]>(at, required, ["done", "terminal"]) ?? "done"),
    };
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
  // Their values may be secrets: not shown.
  if (!isFit) values.bad(place, "expected texts by name");
  return isFit ? (value as Record<string, string>) : undefined;
}
