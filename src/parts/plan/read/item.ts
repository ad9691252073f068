/** Turns the YAML of one item into a node, and reports every fault at its place. Knows nothing of other items. */
import { isScalar, type Pair, type YAMLMap } from "yaml";
import { checkBody } from "../../../codec/task-codec.ts";
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
import { FIELD_JUDGE, fieldsIn } from "../../../core/task-fields.ts";
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
  return new ItemReader(map, source, context).read();
}

class ItemReader {
  private readonly values: ItemValues;

  constructor(
    map: YAMLMap,
    source: ItemSource,
    private readonly context: ItemContext,
  ) {
    this.values = new ItemValues(map, source);
  }

  read(): DecodedItem | undefined {
    const { context, values } = this;
    const idAt = this.readId();
    for (const [key, entry] of values.own) this.checkKey(key, entry);
    if (idAt === undefined) return undefined;
    const type = this.type();
    const marks: ItemMarks = { id: idAt, dependencies: [] };
    const node: RoadmapNode = {
      id: values.id,
      type,
      title: values.text("title") ?? values.id,
      status: this.status(),
      section: context.section,
      priority: values.priority() ?? "medium",
      dependencies: readDependencies(values, marks),
      inputs: readInputs(values),
      acceptance: values.texts("acceptance") ?? [],
      verify: readVerify(values),
      capabilities: values.texts("capabilities") ?? [],
      order: context.order,
    };
    const parent = this.parent(marks);
    assign(node, "parent", parent);
    assign(node, "epic", context.epic ?? values.text("epic"));
    assign(node, "milestone", context.milestone ?? values.text("milestone"));
    assign(node, "max_attempts", readMaxAttempts(values));
    assign(node, "goal", values.text("goal") ?? values.text("description"));
    for (const key of ["domain", "prompt", "agent", "role", "cwd"] as const)
      assign(node, key, values.text(key));
    assign(node, "expect_files", values.texts("expect_files"));
    assign(node, "keep_background", values.boolean("keep_background"));
    assign(node, "exec", values.argv("exec"));
    assign(node, "env", readEnv(values));
    assign(node, "timeout_ms", values.integer("timeout_ms", 1, TIMER_MS_MAX));
    assign(node, "budget", readBudget(values, isContainer(node)));
    assign(node, "reopened", values.integer("reopened", 0, Number.MAX_SAFE_INTEGER));
    assign(node, "payload", readPayload(values));
    this.checkTaskOf(node);
    return { node, marks };
  }

  /** Checks the task that the node becomes against the rules for all tasks, so that a valid plan can be launched. */
  private checkTaskOf(node: RoadmapNode): void {
    const { source, map } = this.values;
    try {
      checkBody({ ...taskOfNode(node, ANY_AGENT, 0, []), id: ANY_ID }, ANY_ID);
    } catch (error) {
      if (!(error instanceof ErrInvalidTask)) throw error;
      const member = /^\w+/.exec(error.message)?.[0] ?? "";
      const at = this.values.get(member)?.at ?? map.range?.[0] ?? 0;
      source.fault("bad_value", at, error.message, `mend the ${member} of ${node.id}`);
    }
  }

  private readId(): number | undefined {
    const entry = this.values.get("id");
    const at = this.values.map.range?.[0] ?? 0;
    const { source } = this.values;
    if (entry === undefined) {
      source.fault("missing_id", at, "an item without an id", "give it an id of its own");
      return undefined;
    }
    const id = textOf(entry.value);
    const reason = id === undefined ? "an id is text" : explainBadId(id);
    if (reason !== undefined)
      source.fault("bad_id", entry.at, `bad id ${show(entry.value)}: ${reason}`, "rename it");
    if (id === undefined || id === "") return undefined;
    this.values.id = id;
    return entry.at;
  }

  private checkKey(key: string, entry: Entry): void {
    const at = entry.key.range?.[0] ?? 0;
    const { section, type } = this.context;
    const { source } = this.values;
    const mayHold =
      section === "epics" && (type === "epic" || (key === "tasks" && type === "milestone"));
    if ((key === "tasks" || key === "milestones") && !mayHold) {
      const hint =
        "epics hold milestones and tasks, milestones hold tasks; under `nodes` say parent";
      source.fault("unknown_key", at, `${key} cannot stand in this item`, hint);
      return;
    }
    const notice = FIELD_JUDGE.judgeName(key, "node");
    const isBeside = notice?.meant !== undefined && this.values.own.has(notice.meant);
    if (notice !== undefined && (notice.kind !== "misspelt" || isBeside)) {
      source.warn(at, notice.why, `take it out of ${this.values.id}`);
      return;
    }
    if (ITEM_KEYS.includes(key)) return;
    const near = notice?.meant ?? suggest(key, ITEM_KEYS);
    if (near === undefined || this.values.own.has(near)) return;
    const hint = `did you mean "${near}"? Your own keys are allowed if they do not look like a known key`;
    source.fault("unknown_key", at, `unknown key ${JSON.stringify(key)}`, hint);
  }

  private type(): NodeType {
    const { section, type } = this.context;
    const entry = this.values.get("type");
    const found = this.values.oneOf("type", NODE_TYPES);
    if (entry === undefined || found === undefined || section === "nodes") return found ?? type;
    const isFitting = type === "task" ? found !== "epic" && found !== "milestone" : found === type;
    if (isFitting) return found;
    const expected = type === "task" ? "no container" : type;
    this.values.bad("type", entry, expected, "the place of an item under epics says what it is");
    return type;
  }

  private status(): NodeStatus {
    const { id, map, source } = this.values;
    const entry = this.values.get("status");
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
    this.values.bad("status", entry, ["pending", ...NODE_STATUSES].join(", "), hint);
    return "open";
  }

  private parent(marks: ItemMarks): string | undefined {
    const entry = this.values.own.get("parent");
    if (this.context.section === "epics") {
      const hint = "under epics an item belongs to what is around it";
      if (entry !== undefined) this.values.bad("parent", entry, "none", hint);
      return this.context.parent;
    }
    if (entry !== undefined) marks.parent = entry.at;
    return this.values.text("parent");
  }
}

function assign<K extends keyof RoadmapNode>(
  node: RoadmapNode,
  key: K,
  value: RoadmapNode[K] | undefined,
): void {
  if (value !== undefined) node[key] = value;
}
