/** Parses `roadmap.yaml` into nodes, and notes where each node is in the text. Pure. */
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { explainBadBudget } from "../../../codec/task-codec.ts";
import { parseYaml } from "../../../codec/yaml.ts";
import { findRepeatedKeys } from "../../../codec/yaml-keys.ts";
import type { TaskBudget } from "../../../core/budget.ts";
import { YAML_PARTS_MAX } from "../../../core/limits.ts";
import { explainBadId, foldId } from "../../../core/names.ts";
import {
  type NodeType,
  type PlanBudget,
  type RoadmapNode,
  UNNAMED_PLAN,
} from "../../../core/roadmap.ts";
import { suggest } from "../../../core/suggest.ts";
import { visibleMessage } from "../../../core/visible.ts";
import { type FindNode, ordersOf, placeInContainers } from "../rules/belonging.ts";
import { checkPlan, type Locate, PROBLEMS_MAX } from "./check.ts";
import { decodeItem, type ItemContext } from "./item.ts";
import type { ItemMarks } from "./item-fields.ts";
import type { ItemSource } from "./item-values.ts";
import type { ProblemCode, RoadmapProblem } from "./problem.ts";
import { keyOf, textOf } from "./yaml-text.ts";

const MEND = "mend the YAML; nothing of it was used";
const TOP_KEYS: readonly string[] = ["epics", "nodes", "budget"];
const BUDGET_ALIASES_MAX = 100;
/** Top-level keys of people that look like misspelled known keys but are allowed. */
const OWN_TOP_KEYS: ReadonlySet<string> = new Set(["notes", "modes"]);

/** Offsets into the text (UTF-16 units). `end` is the offset behind the last character. */
export interface Span {
  start: number;
  end: number;
}

/** Where the items are in the text, by the `order` of their node. Two small arrays are quick to copy, even for 10,000 nodes. */
export interface Places {
  /** Where each item begins and ends: entries 2i and 2i+1 are for the item of order i. */
  spans: Int32Array;
  /** Where the id of the item of order i begins. */
  ids: Int32Array;
  /** For each container, by its order: the spans of the lists in it. */
  holes: Map<number, Span[]>;
}

/** The list that new nodes are appended to. */
export interface NodesList {
  kind: "block" | "flow" | "empty" | "missing" | "unusable";
  /** The last item of a list that is not empty. */
  last?: Span;
  /** For `empty`, until the plan is edited: the offset behind the colon of `nodes:`. */
  colonEnd?: number;
  /** For `empty`, until the plan is edited: the `[]` or `null` that must be removed. */
  value?: Span;
  /** Column of the top-level keys, from 0. */
  indent: number;
}

/** A parsed plan. It can be structured-cloned, because it is sent between threads. */
export interface RoadmapDocument {
  text: string;
  /** In the order of the file; a container comes before the nodes in it. */
  nodes: RoadmapNode[];
  /** Index in `nodes` by `foldId(id)`; the first one if two nodes have the same id. See `findNode`. */
  orders: Map<string, number>;
  places: Places;
  nodesList: NodesList;
  /** Undefined when the plan has no limit. */
  budget?: PlanBudget;
  /** Sorted by place. The plan may be used only if this is empty. */
  problems: RoadmapProblem[];
  /** Keys that have no effect: the plan may be used. Left out when there are none. */
  warnings?: RoadmapProblem[];
}

/** The node with this id; upper and lower case are the same. */
export function findNode(
  doc: Pick<RoadmapDocument, "nodes" | "orders">,
  id: string,
): RoadmapNode | undefined {
  const order = doc.orders.get(foldId(id));
  return order === undefined ? undefined : doc.nodes[order];
}

/** Where the item of a node is in the text, with the lists that it holds. */
export function spanOf({ places }: Pick<RoadmapDocument, "places">, { order }: RoadmapNode): Span {
  return { start: places.spans[2 * order] ?? 0, end: places.spans[2 * order + 1] ?? 0 };
}

/** Returns a function that finds the line and the column of a node's id; both count from 1. */
export function placesIn({
  text,
  places,
}: Pick<RoadmapDocument, "text" | "places">): (node: RoadmapNode) => { line: number; col: number } {
  const lines = new LineCounter();
  for (let at = 0; at >= 0; at = text.indexOf("\n", at) + 1 || -1) lines.addNewLine(at);
  return ({ order }) => lines.linePos(places.ids[order] ?? 0);
}

/** Parses a plan. Never throws: all faults are in `problems`. If there are any, `nodes` may be incomplete. */
export function parseRoadmap(text: string): RoadmapDocument {
  return new Parser(text).parse();
}

/** Thrown when aliases expand to too many values. */
class Boundless extends Error {
  constructor(
    /** Offset of the alias (UTF-16 units). */
    readonly at: number,
  ) {
    super();
  }
}

class Parser implements ItemSource {
  private readonly lines = new LineCounter();
  private readonly doc: Document.Parsed;
  private readonly targets = new Map<Alias, Node>();
  /** Sizes of the nodes that aliases stand for. `aliasedCount` is the sum over all aliases followed so far. */
  private readonly sizes = new Map<Node, number>();
  private aliasedCount = 0;
  private readonly problems: RoadmapProblem[] = [];
  private readonly warnings: RoadmapProblem[] = [];
  private budget: PlanBudget | undefined;
  private readonly nodes: RoadmapNode[] = [];
  private readonly marks: ItemMarks[] = [];
  private readonly spans: number[] = [];
  private readonly holes = new Map<number, Span[]>();
  private nodesList: NodesList = { kind: "missing", indent: 0 };

  constructor(private readonly text: string) {
    this.doc = parseYaml(text, { lineCounter: this.lines, merge: true });
  }

  parse(): RoadmapDocument {
    for (const one of [...this.doc.errors, ...this.doc.warnings]) {
      const code = one.code === "BAD_ALIAS" ? "alias" : "yaml";
      const message = (one.message.split("\n")[0] ?? "").replace(/\.$/, "");
      this.fault(code, one.pos[0], message, MEND);
    }
    for (const at of findRepeatedKeys(this.doc.contents))
      this.fault("duplicate_key", at, "Map keys must be unique", MEND);
    if (this.problems.length === 0) {
      try {
        this.followAliases();
        this.readTop();
      } catch (error) {
        if (!(error instanceof Boundless)) throw error;
        this.problems.length = 0;
        const what = `aliases stand for more than ${YAML_PARTS_MAX} values in all`;
        this.fault("alias", error.at, what, "use fewer aliases of large values");
      }
    } else {
      this.nodesList = { kind: "unusable", indent: 0 };
    }
    const orders = ordersOf(this.nodes);
    const find: FindNode = (id) => findNode({ nodes: this.nodes, orders }, id);
    placeInContainers(this.nodes, find);
    const locate: Locate = (node, what) => {
      const marks = this.marks[node.order];
      const ofDependency = typeof what === "number" ? marks?.dependencies[what] : undefined;
      const at = what === "parent" ? marks?.parent : ofDependency;
      return this.lines.linePos(at ?? marks?.id ?? 0);
    };
    if (this.problems.length < PROBLEMS_MAX)
      for (const one of checkPlan(this.nodes, find, locate))
        this.problems.push({ ...one, message: visibleMessage(one.message) });
    this.problems.sort((a, b) => a.line - b.line || a.col - b.col);
    return {
      text: this.text,
      nodes: this.nodes,
      orders,
      places: {
        spans: Int32Array.from(this.spans),
        ids: Int32Array.from(this.marks, (one) => one.id),
        holes: this.holes,
      },
      nodesList: this.nodesList,
      ...(this.budget === undefined ? {} : { budget: this.budget }),
      problems: this.problems.slice(0, PROBLEMS_MAX),
      ...(this.warnings.length === 0 ? {} : { warnings: this.warnings }),
    };
  }

  /** @throws Boundless if the aliases followed so far expand to too many values. A few lines may expand to more than the memory holds */
  follow(raw: unknown): Node | undefined {
    if (!isAlias(raw)) return isNode(raw) ? raw : undefined;
    const target = this.targets.get(raw);
    if (target !== undefined) this.aliasedCount += this.sizeOf(target);
    if (this.aliasedCount > YAML_PARTS_MAX) throw new Boundless(startOf(raw));
    return target;
  }

  /** How many YAML nodes this node consists of. */
  private sizeOf(node: Node): number {
    const known = this.sizes.get(node);
    if (known !== undefined) return known;
    let size = 0;
    visit(node, { Node: () => void size++ });
    this.sizes.set(node, size);
    return size;
  }

  valueOf(node: Node, aliasesMax: number): unknown {
    return node.toJS(this.doc, { maxAliasCount: aliasesMax });
  }

  fault(code: ProblemCode, at: number, message: string, hint: string): void {
    if (this.problems.length >= PROBLEMS_MAX) return;
    this.problems.push({ code, message: visibleMessage(message), ...this.lines.linePos(at), hint });
  }

  warn(at: number, message: string, hint: string): void {
    if (this.warnings.length >= PROBLEMS_MAX) return;
    const place = this.lines.linePos(at);
    this.warnings.push({ code: "no_effect", message: visibleMessage(message), ...place, hint });
  }

  /** The span of a node without the white space at the end of a block, so that an item ends with its last word. */
  private spanOf(node: Node): Span {
    const [start = 0, end = 0] = node.range ?? [];
    return { start, end: start + this.text.slice(start, end).trimEnd().length };
  }

  /** Resolves all aliases in one walk, because `Alias.resolve` walks the whole document for each alias. */
  private followAliases(): void {
    if (!this.text.includes("*")) return;
    const anchors = new Map<string, Node>();
    visit(this.doc, {
      Node: (_key, node) => {
        if ("anchor" in node && node.anchor !== undefined) anchors.set(node.anchor, node);
      },
      Alias: (_key, alias) => {
        const { source } = alias;
        const target = anchors.get(source);
        const hint = `write the value out, or define &${source} before it`;
        if (target !== undefined) this.targets.set(alias, target);
        else this.fault("alias", startOf(alias), `*${source} has no anchor`, hint);
      },
    });
  }

  private readTop(): void {
    const root: unknown = this.doc.contents;
    if (root === null || (isScalar(root) && root.value === null)) return;
    if (!isMap(root)) {
      this.nodesList = { kind: "unusable", indent: 0 };
      const message = "the file must hold `epics:` or `nodes:`";
      this.fault("shape", startOf(root), message, "see `mailchute help roadmap`");
      return;
    }
    const indent = root.flow === true ? -1 : columnOf(this.text, startOf(root));
    this.nodesList = {
      kind: root.flow === true ? "unusable" : "missing",
      indent: Math.max(0, indent),
    };
    for (const pair of root.items as Pair[]) {
      const key = keyOf(pair);
      if (key === "epics") this.readList(pair, "epics", "epic", {});
      else if (key === "nodes") {
        this.nodesList = this.findNodesList(pair, Math.max(0, indent));
        this.readList(pair, "nodes", "task", {});
      } else if (key === "budget") this.readBudget(root, pair);
      else this.checkTopKey(key, startOf(pair.key));
    }
  }

  private readBudget(root: YAMLMap, pair: Pair): void {
    const value = this.follow(pair.value);
    if (value === undefined || (isScalar(value) && value.value === null)) return;
    const hint = "for example budget: { soft_usd: 20, hard_usd: 25 }";
    const budget = this.valueOf(value, BUDGET_ALIASES_MAX);
    const fault = explainBadBudget(budget);
    if (fault !== undefined) {
      this.fault("bad_value", startOf(value), fault, hint);
      return;
    }
    const name = this.follow((root.items as Pair[]).find((one) => keyOf(one) === "name")?.value);
    const text = textOf(name);
    if (name !== undefined && (text === undefined || explainBadId(text) !== undefined)) {
      const why = text === undefined ? "expected text" : explainBadId(text);
      this.fault("bad_value", startOf(name), `name: ${why}`, "the budget is that of this name");
    } else this.budget = { name: text ?? UNNAMED_PLAN, budget: budget as TaskBudget };
  }

  private checkTopKey(key: string, at: number): void {
    const near = OWN_TOP_KEYS.has(key) ? undefined : suggest(key, TOP_KEYS);
    if (near !== undefined) {
      const message = `unknown key ${JSON.stringify(key)}`;
      this.fault("unknown_key", at, message, `did you mean "${near}"?`);
    } else if (key === "tasks" || key === "milestones") {
      const hint = "epics hold milestones and tasks; a plain list of tasks is called `nodes`";
      this.fault("unknown_key", at, `${key} cannot stand at the top`, hint);
    }
  }

  private findNodesList({ key, value }: Pair, indent: number): NodesList {
    const last = isSeq(value) ? value.items.at(-1) : undefined;
    const isNull =
      value === null || value === undefined || (isScalar(value) && value.value === null);
    if (isNull || (isSeq(value) && value.items.length === 0)) {
      const keyEnd = isNode(key) ? (key.range?.[1] ?? 0) : 0;
      const span = isNode(value) ? this.spanOf(value) : { start: 0, end: 0 };
      const colonEnd = this.text.indexOf(":", keyEnd) + 1;
      return { kind: "empty", colonEnd, indent, ...(span.end > span.start && { value: span }) };
    }
    if (!isSeq(value) || !isNode(last)) return { kind: "unusable", indent };
    return { kind: value.flow === true ? "flow" : "block", indent, last: this.spanOf(last) };
  }

  private readList(
    pair: Pair,
    section: ItemContext["section"],
    type: NodeType,
    around: Pick<ItemContext, "parent" | "epic" | "milestone">,
  ): void {
    const list = pair.value;
    if (list === null || list === undefined || (isScalar(list) && list.value === null)) return;
    const name = keyOf(pair);
    if (isAlias(list)) this.refuseAlias(list);
    else if (!isSeq(list))
      this.fault("shape", startOf(list), `${name} must be a list`, "write `- id: …` lines");
    if (!isSeq(list)) return;
    for (const item of (list as YAMLSeq).items) {
      if (isAlias(item)) this.refuseAlias(item);
      else if (!isMap(item)) {
        const at = startOf(item) || startOf(list);
        this.fault("shape", at, `an item of ${name} must be a map`, "write `- id: …`");
      } else if (item.flow === true && this.text[startOf(item)] !== "{") {
        const hint = "write { id: …, status: … }: without braces it takes no second key";
        const message = `an item of ${name} in one line must stand in braces`;
        this.fault("shape", startOf(item), message, hint);
      } else this.readItem(item, section, type, around);
    }
  }

  private refuseAlias(alias: Alias): void {
    const message = `*${alias.source} would use the same items twice`;
    const hint = "write the items out; `<<: *name` inside of one is fine";
    this.fault("alias", startOf(alias), message, hint);
  }

  private readItem(
    map: YAMLMap,
    section: ItemContext["section"],
    type: NodeType,
    around: Pick<ItemContext, "parent" | "epic" | "milestone">,
  ): void {
    const decoded = decodeItem(map, this, { section, type, ...around, order: this.nodes.length });
    const inner = { ...around };
    if (decoded !== undefined) {
      const { node, marks } = decoded;
      const { start, end } = this.spanOf(map);
      this.nodes.push(node);
      this.marks.push(marks);
      this.spans.push(start, end);
      inner.parent = node.id;
      if (type === "epic") inner.epic = node.id;
      if (type === "milestone") inner.milestone = node.id;
    }
    if (section !== "epics" || type === "task") return;
    const order = this.nodes.length - 1;
    for (const pair of map.items as Pair[]) {
      const key = keyOf(pair);
      const isHeld = key === "tasks" || (key === "milestones" && type === "epic");
      if (!isHeld) continue;
      if (decoded !== undefined && isSeq(pair.value)) {
        const holes = this.holes.get(order) ?? [];
        holes.push(this.spanOf(pair.value));
        this.holes.set(order, holes);
      }
      this.readList(pair, section, key === "tasks" ? "task" : "milestone", inner);
    }
  }
}

function startOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0;
}

/** How many characters are before an offset in its line. A byte order mark does not count. */
export function columnOf(text: string, offset: number): number {
  const lineStart = offset === 0 ? 0 : text.lastIndexOf("\n", offset - 1) + 1;
  return offset - lineStart - (lineStart === 0 && text.startsWith("\ufeff") ? 1 : 0);
}
