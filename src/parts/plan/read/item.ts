/** Turns the YAML of one item into a node, and reports every fault at its place. Knows nothing of other items. */
import { isScalar, type Pair, type YAMLMap } from "yaml";
import { checkBody } from "../../../codec/task-codec.ts";
import { compact } from "../../../core/compact.ts";
import { ErrInvalidTask } from "../../../core/errors.ts";
import { TIMER_MS_MAX } from "../../../core/limits.ts";
import { explainBadId } from "../../../core/names.ts";
import {
  isContainer,
  NODE_STATUSES,
  NODE_TYPES,
  type NodeStatus,
  type NodeType,
  type RoadmapNode,
} from "../../../core/roadmap.ts";
import { suggest } from "../../../core/suggest.ts";
import { fieldJudge, fieldsIn } from "../../../core/task-fields.ts";
import { taskOfNode } from "../rules/node-task.ts";
import {
  type ItemMarks,
  readBudget,
  readDependencies,
  readEnv,
  readInputs,
  readMaxAttempts,
  readPayload,
  readVerify,
} from "./item-fields.ts";
import { type Entry, type ItemSource, ItemValues } from "./item-values.ts";
import { keyOf, offsetOf, show, textOf } from "./yaml-text.ts";

/** The keys that mailchute reads. Other keys belong to the author of the plan. */
const ITEM_KEYS: readonly string[] = fieldsIn("node");

/** Used in the check of a node's task: the agent is chosen at the launch, and the id is checked separately. */
const ANY_AGENT = "any";
const ANY_ID = "any";

/** The place of an item in the file. */
export interface ItemContext {
  section: "nodes" | "epics";
  /** The type of an item that has no key `type`. */
  type: NodeType;
  parent?: string;
  epic?: string;
  milestone?: string;
  order: number;
}

export interface DecodedItem {
  node: RoadmapNode;
  marks: ItemMarks;
}

/** The status that a word in the file means, or undefined. */
export function readStatus(word: string): NodeStatus | undefined {
  if (word === "pending") return "open";
  return (NODE_STATUSES as readonly string[]).includes(word) ? (word as NodeStatus) : undefined;
}

/** Reads the node of an item; undefined if it has no id. Reports all other faults to `source` and leaves those values out. */
export function decodeItem(
  map: YAMLMap,
  source: ItemSource,
  context: ItemContext,
): DecodedItem | undefined {
  const values = new ItemValues(map, source);
  const idAt = readId(values);
  for (const [key, entry] of values.own) checkKey(values, context, key, entry);
  if (idAt === undefined) return undefined;
  const type = readType(values, context);
  const marks: ItemMarks = { id: idAt, dependencies: [] };
  const node: RoadmapNode = compact({
    id: values.id,
    type,
    title: values.text("title") ?? values.id,
    status: readItemStatus(values),
    section: context.section,
    priority: values.priority() ?? "medium",
    dependencies: readDependencies(values, marks),
    inputs: readInputs(values),
    acceptance: values.texts("acceptance") ?? [],
    verify: readVerify(values),
    capabilities: values.texts("capabilities") ?? [],
    order: context.order,
    parent: readParent(values, context, marks),
    epic: context.epic ?? values.text("epic"),
    milestone: context.milestone ?? values.text("milestone"),
    max_attempts: readMaxAttempts(values),
    goal: values.text("goal") ?? values.text("description"),
    domain: values.text("domain"),
    prompt: values.text("prompt"),
    agent: values.text("agent"),
    role: values.text("role"),
    cwd: values.text("cwd"),
    expect_files: values.texts("expect_files"),
    keep_background: values.boolean("keep_background"),
    exec: values.argv("exec"),
    env: readEnv(values),
    timeout_ms: values.integer("timeout_ms", 1, TIMER_MS_MAX),
    budget: readBudget(values, isContainer({ type })),
    reopened: values.integer("reopened", 0, Number.MAX_SAFE_INTEGER),
    payload: readPayload(values),
  });
  checkTaskOf(node, values);
  return { node, marks };
}

/** Checks the task that the node becomes against the rules for all tasks, so that a valid plan can be launched. */
function checkTaskOf(node: RoadmapNode, values: ItemValues): void {
  try {
    checkBody({ ...taskOfNode(node, ANY_AGENT, 0, []), id: ANY_ID }, ANY_ID);
  } catch (error) {
    if (!(error instanceof ErrInvalidTask)) throw error;
    const member = /^\w+/.exec(error.message)?.[0] ?? "";
    const at = values.get(member)?.at ?? values.startAt;
    values.source.fault("bad_value", at, error.message, `mend the ${member} of ${node.id}`);
  }
}

function readId(values: ItemValues): number | undefined {
  const entry = values.get("id");
  const { source } = values;
  if (entry === undefined) {
    source.fault("missing_id", values.startAt, "an item without an id", "give it an id of its own");
    return undefined;
  }
  const id = textOf(entry.value);
  const reason = id === undefined ? "an id is text" : explainBadId(id);
  if (reason !== undefined)
    source.fault("bad_id", entry.at, `bad id ${show(entry.value)}: ${reason}`, "rename it");
  if (id === undefined || id === "") return undefined;
  values.id = id;
  return entry.at;
}

function checkKey(
  { own, id, source }: ItemValues,
  { section, type }: ItemContext,
  key: string,
  entry: Entry,
): void {
  const at = entry.key.range?.[0] ?? 0;
  const mayHold =
    section === "epics" && (type === "epic" || (key === "tasks" && type === "milestone"));
  if ((key === "tasks" || key === "milestones") && !mayHold) {
    const hint = "epics hold milestones and tasks, milestones hold tasks; under `nodes` say parent";
    source.fault("unknown_key", at, `${key} cannot stand in this item`, hint);
    return;
  }
  const notice = fieldJudge().judgeName(key, "node");
  const isBeside = notice?.meant !== undefined && own.has(notice.meant);
  if (notice !== undefined && (notice.kind !== "misspelt" || isBeside)) {
    source.warn(at, notice.why, `take it out of ${id}`);
    return;
  }
  if (ITEM_KEYS.includes(key)) return;
  const near = notice?.meant ?? suggest(key, ITEM_KEYS);
  if (near === undefined || own.has(near)) return;
  const hint = `did you mean "${near}"? Your own keys are allowed if they do not look like a known key`;
  source.fault("unknown_key", at, `unknown key ${JSON.stringify(key)}`, hint);
}

function readType(values: ItemValues, { section, type }: ItemContext): NodeType {
  const entry = values.get("type");
  const found = values.oneOf("type", NODE_TYPES);
  if (entry === undefined || found === undefined || section === "nodes") return found ?? type;
  const isFitting = type === "task" ? !isContainer({ type: found }) : found === type;
  if (isFitting) return found;
  const expected = type === "task" ? "no container" : type;
  values.bad("type", entry, expected, "the place of an item under epics says what it is");
  return type;
}

function readItemStatus(values: ItemValues): NodeStatus {
  const { id, map, source } = values;
  const entry = values.get("status");
  const pair = (map.items as Pair[]).find((one) => keyOf(one) === "status");
  const raw = pair?.value;
  if (raw === null) {
    const hint = "write status: open, or leave it out";
    source.fault("shape", offsetOf(pair?.key, 0), `the status of ${id} has no colon`, hint);
  }
  if (isScalar(raw) && raw.anchor !== undefined) {
    const hint = "statuses change one at a time: write each out";
    source.fault("alias", offsetOf(raw, 0), `the status of ${id} has an anchor`, hint);
  }
  if (entry === undefined) return "open";
  const word = textOf(entry.value) ?? "";
  const status = readStatus(word);
  if (status !== undefined) return status;
  const near = suggest(word, [...NODE_STATUSES, "pending"]);
  const hint = near === undefined ? undefined : `did you mean "${near}"?`;
  values.bad("status", entry, ["pending", ...NODE_STATUSES].join(", "), hint);
  return "open";
}

function readParent(
  values: ItemValues,
  { section, parent }: ItemContext,
  marks: ItemMarks,
): string | undefined {
  const entry = values.own.get("parent");
  if (section === "epics") {
    const hint = "under epics an item belongs to what is around it";
    if (entry !== undefined) values.bad("parent", entry, "none", hint);
    return parent;
  }
  if (entry !== undefined) marks.parent = entry.at;
  return values.text("parent");
}
