/** One item of the roadmap: from its YAML to a node, with every fault at its place. Knows nothing of the other items. */
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
} from "yaml";
import {
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
  MAX_ATTEMPTS_MAX,
  TIMER_MS_MAX,
} from "../core/limits.ts";
import { explainBadId } from "../core/names.ts";
import { isDeeperThan, isWiderThan } from "../core/nesting.ts";
import {
  NODE_PRIORITIES,
  NODE_STATUSES,
  NODE_TYPES,
  type NodeDependency,
  type NodeInput,
  type NodeStatus,
  type NodeType,
  type RoadmapNode,
} from "../core/roadmap.ts";
import { suggest } from "../core/suggest.ts";

/** Keys that mean something to us. Others are the reader's own and are left alone. */
const ITEM_KEYS: readonly string[] = (
  "id type title status parent epic milestone domain priority dependencies depends_on retry_policy max_attempts inputs goal " +
  "description prompt acceptance verify exec agent role capabilities cwd env timeout_ms payload reopened milestones tasks"
).split(" ");
/** What people write when they mean a key of ours; `suggest` is not bold enough to see it. */
const MISTAKEN: Readonly<Record<string, string>> = { deps: "dependencies", state: "status" };
const PAYLOAD_CHARS_MAX = 1024 * 1024;
const MERGE_DEPTH_MAX = 8;
const ALIASES_MAX = 100;

export type ProblemCode =
  | "yaml"
  | "duplicate_key"
  | "alias"
  | "shape"
  | "missing_id"
  | "bad_id"
  | "duplicate_id"
  | "bad_value"
  | "unknown_key"
  | "unknown_dependency"
  | "unknown_parent"
  | "bad_parent"
  | "cycle"
  | "too_large";

/** What an item is read with: aliases followed, faults told. */
export interface ItemSource {
  /** The node behind an alias; undefined for what is no node. */
  follow(raw: unknown): Node | undefined;
  /** The plain value of a node. */
  valueOf(node: Node, aliasesMax: number): unknown;
  /** @param at offset in the text (UTF-16 units) */
  fault(code: ProblemCode, at: number, message: string, hint: string): void;
}

/** Where in the file an item stands. */
export interface ItemContext {
  section: "nodes" | "epics";
  /** What it is when it does not say. */
  type: NodeType;
  parent?: string;
  epic?: string;
  milestone?: string;
  order: number;
}

/** Offsets that problems between items are reported at. */
export interface ItemMarks {
  id: number;
  parent?: number;
  dependencies: number[];
}

export interface DecodedItem {
  /** Without its line and column, which are 0. */
  node: RoadmapNode;
  marks: ItemMarks;
}

/** The canonical word for a status as written, or undefined. */
export function readStatus(word: string): NodeStatus | undefined {
  if (word === "pending") return "open";
  return (NODE_STATUSES as readonly string[]).includes(word) ? (word as NodeStatus) : undefined;
}

/** The node that an item says, or undefined when it has no id. Whatever else is wrong is told to `source` and left out. */
export function decodeItem(
  map: YAMLMap,
  source: ItemSource,
  context: ItemContext,
): DecodedItem | undefined {
  return new ItemReader(map, source, context).read();
}

interface Entry {
  key: Node;
  value: Node | undefined;
  /** Offset for faults: of the value where it is in this item, else of the key. */
  at: number;
}

class ItemReader {
  private readonly source: ItemSource;
  private readonly context: ItemContext;
  private readonly map: YAMLMap;
  private readonly own = new Map<string, Entry>();
  private readonly merged = new Map<string, Entry>();
  private id = "";

  constructor(map: YAMLMap, source: ItemSource, context: ItemContext) {
    this.map = map;
    this.source = source;
    this.context = context;
    this.collect(map, this.own, 0);
  }

  read(): DecodedItem | undefined {
    const { context } = this;
    const idAt = this.readId();
    for (const [key, entry] of this.own) this.checkKey(key, entry);
    if (idAt === undefined) return undefined;
    const type = this.type();
    const marks: ItemMarks = { id: idAt, dependencies: [] };
    const node: RoadmapNode = {
      id: this.id,
      type,
      title: this.text("title") ?? this.id,
      status: this.status(),
      section: context.section,
      priority: this.oneOf("priority", NODE_PRIORITIES) ?? "medium",
      dependencies: this.dependencies(marks),
      inputs: this.inputs(),
      acceptance: this.texts("acceptance") ?? [],
      verify: this.verify(),
      capabilities: this.texts("capabilities") ?? [],
      order: context.order,
      line: 0,
      col: 0,
    };
    const parent = this.parent(marks);
    assign(node, "parent", parent);
    assign(node, "epic", context.epic ?? this.text("epic"));
    assign(node, "milestone", context.milestone ?? this.text("milestone"));
    assign(node, "max_attempts", this.maxAttempts());
    assign(node, "goal", this.text("goal") ?? this.text("description"));
    for (const key of ["domain", "prompt", "agent", "role", "cwd"] as const)
      assign(node, key, this.text(key));
    assign(node, "exec", this.argv("exec"));
    assign(node, "env", this.env());
    assign(node, "timeout_ms", this.integer("timeout_ms", 1, TIMER_MS_MAX));
    assign(node, "reopened", this.integer("reopened", 0, Number.MAX_SAFE_INTEGER));
    assign(node, "payload", this.payload());
    return { node, marks };
  }

  /** Own keys, and beneath them what `<<` brings in. */
  private collect(map: YAMLMap, into: Map<string, Entry>, depth: number): void {
    const merges: unknown[] = [];
    for (const pair of map.items) {
      const key = isNode(pair.key) ? pair.key : undefined;
      const name = keyOf(pair);
      if (key === undefined || !isScalar(key)) continue;
      if (name === "<<") {
        merges.push(pair.value);
        continue;
      }
      if (into.has(name) || (depth > 0 && this.own.has(name))) continue;
      const value = this.source.follow(pair.value);
      const keyAt = key.range?.[0] ?? 0;
      const at = depth > 0 ? (this.map.range?.[0] ?? 0) : offsetOf(pair.value, keyAt);
      into.set(name, { key, value, at });
    }
    if (depth >= MERGE_DEPTH_MAX) return;
    for (const raw of merges) {
      const from = this.source.follow(raw);
      const maps = isSeq(from) ? from.items.map((item) => this.source.follow(item)) : [from];
      for (const one of maps) if (isMap(one)) this.collect(one, this.merged, depth + 1);
    }
  }

  /** What stands in the item itself, else what it takes over. Which item it is, and how far, is never taken over. */
  private get(key: string): Entry | undefined {
    const entry =
      this.own.get(key) ?? (key === "id" || key === "status" ? undefined : this.merged.get(key));
    return entry === undefined || isEmpty(entry.value) ? undefined : entry;
  }

  private readId(): number | undefined {
    const entry = this.get("id");
    const at = this.map.range?.[0] ?? 0;
    if (entry === undefined) {
      this.source.fault("missing_id", at, "an item without an id", "give it an id of its own");
      return undefined;
    }
    const id = textOf(entry.value);
    const reason = id === undefined ? "an id is text" : explainBadId(id);
    if (reason !== undefined)
      this.source.fault("bad_id", entry.at, `bad id ${show(entry.value)}: ${reason}`, "rename it");
    if (id === undefined || id === "") return undefined;
    this.id = id;
    return entry.at;
  }

  private checkKey(key: string, entry: Entry): void {
    const at = entry.key.range?.[0] ?? 0;
    const mayHold =
      this.context.section === "epics" &&
      (key === "tasks"
        ? this.context.type === "epic" || this.context.type === "milestone"
        : this.context.type === "epic");
    if ((key === "tasks" || key === "milestones") && !mayHold) {
      this.source.fault(
        "unknown_key",
        at,
        `${key} cannot stand in this item`,
        "epics hold milestones and tasks, milestones hold tasks; under `nodes` say parent",
      );
      return;
    }
    if (ITEM_KEYS.includes(key)) return;
    const near = Object.hasOwn(MISTAKEN, key) ? MISTAKEN[key] : suggest(key, ITEM_KEYS);
    if (near !== undefined && !this.own.has(near))
      this.source.fault(
        "unknown_key",
        at,
        `unknown key ${JSON.stringify(key)}`,
        `did you mean "${near}"? Keys of your own are fine when they do not look like one of ours`,
      );
  }

  private bad(key: string, entry: Entry, expected: string, hint?: string): undefined {
    this.source.fault(
      "bad_value",
      entry.at,
      `${key}: expected ${expected}, found ${show(entry.value)}`,
      hint ?? `mend the ${key} of ${this.id}`,
    );
    return undefined;
  }

  private text(key: string): string | undefined {
    const entry = this.get(key);
    if (entry === undefined) return undefined;
    return textOf(entry.value) ?? this.bad(key, entry, "text");
  }

  private oneOf<T extends string>(key: string, words: readonly T[]): T | undefined {
    const entry = this.get(key);
    if (entry === undefined) return undefined;
    const word = textOf(entry.value);
    const found = words.find((one) => one === word);
    if (found !== undefined) return found;
    const near = word === undefined ? undefined : suggest(word, words);
    return this.bad(
      key,
      entry,
      words.join(", "),
      near === undefined ? undefined : `did you mean "${near}"?`,
    );
  }

  private type(): NodeType {
    const { section, type } = this.context;
    const entry = this.get("type");
    const found = this.oneOf("type", NODE_TYPES);
    if (entry === undefined || found === undefined || section === "nodes") return found ?? type;
    const isFitting = type === "task" ? found !== "epic" && found !== "milestone" : found === type;
    if (!isFitting)
      this.bad(
        "type",
        entry,
        type === "task" ? "no container" : type,
        "the place of an item under epics says what it is",
      );
    return isFitting ? found : type;
  }

  private status(): NodeStatus {
    const entry = this.get("status");
    const raw = (this.map.items as Pair[]).find((pair) => keyOf(pair) === "status")?.value;
    if (isScalar(raw) && raw.anchor !== undefined)
      this.source.fault(
        "alias",
        offsetOf(raw, 0),
        `the status of ${this.id} has an anchor`,
        "statuses change one at a time: write each out",
      );
    if (entry === undefined) return "open";
    const word = textOf(entry.value) ?? "";
    const status = readStatus(word);
    if (status !== undefined) return status;
    const near = suggest(word, [...NODE_STATUSES, "pending"]);
    this.bad(
      "status",
      entry,
      ["pending", ...NODE_STATUSES].join(", "),
      near === undefined ? undefined : `did you mean "${near}"?`,
    );
    return "open";
  }

  private parent(marks: ItemMarks): string | undefined {
    const entry = this.own.get("parent");
    if (this.context.section === "epics") {
      if (entry !== undefined)
        this.bad("parent", entry, "none", "under epics an item belongs to what is around it");
      return this.context.parent;
    }
    if (entry !== undefined) marks.parent = entry.at;
    return this.text("parent");
  }

  /** The nodes of a list; one value alone is a list of one. */
  private list(key: string): { entry: Entry; items: Entry[] } | undefined {
    const entry = this.get(key);
    if (entry === undefined) return undefined;
    if (!isSeq(entry.value)) return { entry, items: [entry] };
    const isOwn = this.own.get(key) === entry;
    const items = entry.value.items.map(
      (raw): Entry => ({
        key: entry.key,
        value: this.source.follow(raw),
        at: isOwn ? offsetOf(raw, entry.at) : entry.at,
      }),
    );
    return { entry, items };
  }

  private texts(key: string): string[] | undefined {
    return this.list(key)?.items.flatMap((item) => {
      const text = textOf(item.value);
      if (text === undefined) this.bad(key, item, "text, or a list of it");
      return text ?? [];
    });
  }

  private argv(key: string): string[] | undefined {
    const entry = this.get(key);
    if (entry === undefined) return undefined;
    if (!isSeq(entry.value) || entry.value.items.length === 0)
      return this.bad(
        key,
        entry,
        "a program and its arguments",
        `for example ${key}: [npm, test], or [sh, -c, "…"] for a shell`,
      );
    return this.texts(key);
  }

  private dependencies(marks: ItemMarks): NodeDependency[] {
    const key = this.get("dependencies") === undefined ? "depends_on" : "dependencies";
    const found: NodeDependency[] = [];
    for (const item of this.list(key)?.items ?? []) {
      const dependency = this.dependency(key, item);
      if (dependency === undefined) continue;
      found.push(dependency);
      marks.dependencies.push(item.at);
    }
    return found;
  }

  private dependency(key: string, item: Entry): NodeDependency | undefined {
    const text = textOf(item.value);
    if (text !== undefined) return { id: text, required: "done" };
    const expected = "an id, or { id: …, required_status: done or terminal }";
    if (!isMap(item.value)) return this.bad(key, item, expected);
    let id: string | undefined;
    let required: NodeDependency["required"] = "done";
    for (const pair of item.value.items) {
      const name = keyOf(pair);
      const value = this.source.follow(pair.value);
      const at = offsetOf(pair.value, item.at);
      if (name === "id" || name === "node") id = textOf(value);
      else if (name === "required_status") {
        const word = textOf(value);
        if (word === "done" || word === "terminal") required = word;
        else this.bad("required_status", { key: item.key, value, at }, "done or terminal");
      } else
        this.source.fault(
          "unknown_key",
          isNode(pair.key) ? (pair.key.range?.[0] ?? at) : at,
          `a dependency has no key ${JSON.stringify(name)}`,
          expected,
        );
    }
    return id === undefined ? this.bad(key, item, expected) : { id, required };
  }

  private inputs(): NodeInput[] {
    return (this.list("inputs")?.items ?? []).flatMap((item) => {
      const expected = "nodeId:key, or { nodeId: …, key: …, as: … }";
      const text = textOf(item.value);
      if (text !== undefined) {
        const colon = text.indexOf(":");
        if (colon > 0 && colon < text.length - 1)
          return { nodeId: text.slice(0, colon), key: text.slice(colon + 1) };
      }
      if (!isMap(item.value)) return this.bad("inputs", item, expected) ?? [];
      const input: Partial<NodeInput> = {};
      for (const pair of item.value.items) {
        const name = keyOf(pair);
        const value = textOf(this.source.follow(pair.value));
        if (value === undefined) continue;
        if (name === "nodeId" || name === "node") input.nodeId = value;
        else if (name === "key" || name === "as") input[name] = value;
      }
      const { nodeId, key } = input;
      if (nodeId === undefined || key === undefined)
        return this.bad("inputs", item, expected) ?? [];
      return { ...input, nodeId, key };
    });
  }

  /** One argv, a list of them, or a line for the shell. */
  private verify(): string[][] {
    const found = this.list("verify");
    if (found === undefined) return [];
    const { entry, items } = found;
    const hint = "for example verify: [npm, test], or [[npm, test], [npm, run, lint]]";
    if (!isSeq(entry.value)) {
      const line = textOf(entry.value);
      if (line === undefined || line.trim() === "")
        return this.bad("verify", entry, "programs with their arguments", hint) ?? [];
      return [["sh", "-c", line]];
    }
    if (items.length === 0) return [];
    if (items.every((item) => isScalar(item.value))) {
      const argv = this.texts("verify") ?? [];
      if (/\s/.test(argv[0] ?? ""))
        return this.bad("verify", items[0] ?? entry, "the name of a program", hint) ?? [];
      return [argv];
    }
    return items.flatMap((item): string[][] => {
      const line = textOf(item.value);
      if (line !== undefined) return [["sh", "-c", line]];
      const words = isSeq(item.value)
        ? item.value.items.map((raw) => textOf(this.source.follow(raw)))
        : [];
      if (words.length === 0 || words.includes(undefined))
        return this.bad("verify", item, "a program with its arguments", hint) ?? [];
      return [words as string[]];
    });
  }

  private integer(
    key: string,
    min: number,
    max: number,
    entry = this.get(key),
  ): number | undefined {
    if (entry === undefined) return undefined;
    const value = isScalar(entry.value) ? entry.value.value : undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max)
      return value;
    return this.bad(key, entry, `a whole number of at least ${min}`);
  }

  private maxAttempts(): number | undefined {
    const policy = this.get("retry_policy");
    if (policy === undefined) return this.integer("max_attempts", 1, MAX_ATTEMPTS_MAX);
    if (!isMap(policy.value)) return this.bad("retry_policy", policy, "{ max_attempts: N }");
    for (const pair of policy.value.items) {
      const name = keyOf(pair);
      if (name !== "max_attempts" && name !== "maxAttempts") continue;
      const value = this.source.follow(pair.value);
      const at = offsetOf(pair.value, policy.at);
      return this.integer("retry_policy.max_attempts", 1, MAX_ATTEMPTS_MAX, {
        key: policy.key,
        value,
        at,
      });
    }
    return undefined;
  }

  private env(): Record<string, string> | undefined {
    const entry = this.get("env");
    if (entry === undefined) return undefined;
    if (!isMap(entry.value)) return this.bad("env", entry, "names with values");
    const env: [string, string][] = [];
    for (const pair of entry.value.items) {
      const name = keyOf(pair);
      const value = this.source.follow(pair.value);
      const at = offsetOf(pair.value, entry.at);
      const text = isEmpty(value) ? "" : textOf(value);
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || name === "__proto__")
        this.bad("env", { ...entry, at }, "the name of a variable before each value");
      else if (text === undefined) this.bad(`env.${name}`, { ...entry, value, at }, "text");
      else env.push([name, text]);
    }
    return Object.fromEntries(env);
  }

  private payload(): unknown {
    const entry = this.get("payload");
    if (entry?.value === undefined) return undefined;
    let chars: number;
    let value: unknown;
    try {
      value = this.source.valueOf(entry.value, ALIASES_MAX);
      chars = JSON.stringify(value).length;
    } catch {
      return this.bad("payload", entry, "plain data", "write values out instead of using aliases");
    }
    // It becomes a member of the node's task, and that nests no deeper than any task.
    if (isDeeperThan(value, JSON_DEPTH_MAX - 1))
      return this.bad("payload", entry, `at most ${JSON_DEPTH_MAX - 1} levels`);
    if (isWiderThan(value, JSON_MEMBERS_MAX))
      return this.bad("payload", entry, `objects of at most ${JSON_MEMBERS_MAX} members`);
    return chars <= PAYLOAD_CHARS_MAX ? value : this.bad("payload", entry, "less than 1 MiB");
  }
}

function assign<K extends keyof RoadmapNode>(
  node: RoadmapNode,
  key: K,
  value: RoadmapNode[K] | undefined,
): void {
  if (value !== undefined) node[key] = value;
}

/** The name of a pair; "" for what is none. The merge key `<<` is a symbol to the parser. */
export function keyOf(pair: Pair): string {
  if (!isScalar(pair.key)) return "";
  const { value } = pair.key;
  return typeof value === "symbol" ? (value.description ?? "") : String(value);
}

/** Text as it was written: `0012` and `1.0` stay what they are, as in ids and arguments. */
export function textOf(node: unknown): string | undefined {
  if (!isScalar(node)) return undefined;
  const { value, source } = node as Scalar & { source?: string };
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return undefined;
  return source ?? JSON.stringify(value);
}

function isEmpty(node: Node | undefined): boolean {
  return node === undefined || (isScalar(node) && node.value === null);
}

function offsetOf(raw: unknown, otherwise: number): number {
  return (isNode(raw) ? raw.range?.[0] : undefined) ?? otherwise;
}

function show(node: Node | undefined): string {
  const text = textOf(node);
  if (text !== undefined) return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}…` : text);
  if (isSeq(node)) return "a list";
  if (isMap(node)) return "a map";
  return isAlias(node) ? "an alias that leads nowhere" : "nothing";
}
