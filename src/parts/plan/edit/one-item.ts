/** Reads one item of a draft by itself: before an edit, and after it to check that nothing else has changed. */
import { isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap } from "yaml";
import { parseYaml } from "../../../codec/yaml.ts";
import { findRepeatedKeys } from "../../../codec/yaml-keys.ts";
import { ErrInvalidRoadmap, ErrTaskNotFound } from "../../../core/errors.ts";
import { isContainer, type RoadmapNode } from "../../../core/roadmap.ts";
import { findNode, type Span } from "../read/document.ts";
import { decodeItem } from "../read/item.ts";
import type { ItemSource } from "../read/item-values.ts";
import { keyOf } from "../read/yaml-text.ts";
import type { Draft, ItemText } from "./draft.ts";
import { sameBut, valuesOf } from "./shape.ts";

export function getNode(draft: Draft, id: string): RoadmapNode {
  const node = findNode(draft, id);
  if (node !== undefined) return node;
  throw new ErrTaskNotFound(`the roadmap has no node ${JSON.stringify(id)}`, {
    id,
    phase: "edit",
    hint: "see `mailchute roadmap show`",
  });
}

export function refuse(id: string, what: string): never {
  throw new ErrInvalidRoadmap(`cannot change ${what} of ${id} without changing more than that`, {
    id,
    phase: "edit",
    hint: "change it by hand, or write the item on one line: - { id: …, status: … }",
  });
}

export function readItem(
  draft: Draft,
  node: RoadmapNode,
  what: string,
): { item: ItemText; map: YAMLMap } {
  const item = draft.itemText(node);
  const map = parseAlone(item.text);
  if (!isMap(map) || map.range?.[0] !== item.indent) return refuse(node.id, what);
  return { item, map };
}

/** Parses a piece of the text by itself; undefined if it is not valid alone. Aliases may point outside the piece. */
export function parseAlone(text: string): Node | undefined {
  const doc = parseYaml(text, { merge: true });
  const isBroken = doc.errors.some((one) => one.code !== "BAD_ALIAS");
  if (isBroken || findRepeatedKeys(doc.contents).length > 0) return undefined;
  return doc.contents ?? undefined;
}

/** Checks that the item is the same as before, except that one key now has the value `value`. */
export function verifyItem(
  draft: Draft,
  id: string,
  before: YAMLMap,
  key: string,
  value: unknown,
): YAMLMap {
  const node = getNode(draft, id);
  const { map } = readItem(draft, node, key);
  if (!sameBut(before, map, key, value)) return refuse(id, key);
  return map;
}

/** Reads one property of a node again from its changed item. */
export function takeOver(
  draft: Draft,
  node: RoadmapNode,
  map: YAMLMap,
  key: string,
  property: keyof RoadmapNode,
): void {
  const pair = findPair(map, key);
  const source = new LonelyItem(rangeOfPair(pair));
  const context = {
    section: node.section,
    type: node.section === "epics" && isContainer(node) ? node.type : ("task" as const),
    order: node.order,
    ...(node.section === "epics" && node.parent !== undefined ? { parent: node.parent } : {}),
  };
  const decoded = decodeItem(map, source, context);
  source.throwFault(node.id);
  const value = decoded?.node[property as keyof typeof decoded.node];
  const now = getNode(draft, node.id);
  if (property === "parent")
    draft.replaceNode(now, { parent: value as string }, ["epic", "milestone"]);
  else if (value === undefined) draft.replaceNode(now, {}, [property]);
  else draft.replaceNode(now, { [property]: value });
}

/** Reads an item without the rest of the file. Aliases cannot be resolved here, so only faults within the span `within` count. */
export class LonelyItem implements ItemSource {
  private readonly within: Span | undefined;
  private found: { message: string; hint: string } | undefined;

  constructor(within?: Span) {
    this.within = within;
  }

  follow(raw: unknown): Node | undefined {
    return isMap(raw) || isSeq(raw) || isScalar(raw) ? raw : undefined;
  }

  valueOf(node: Node): unknown {
    return valuesOf(node);
  }

  warn(): void {}

  fault(_code: unknown, at: number, message: string, hint: string): void {
    if (this.within !== undefined && (at < this.within.start || at > this.within.end)) return;
    this.found ??= { message, hint };
  }

  throwFault(id: string): void {
    if (this.found === undefined) return;
    const { message, hint } = this.found;
    throw new ErrInvalidRoadmap(message, { id, phase: "edit", hint });
  }
}

export function findPair(map: YAMLMap, key: string): Pair | undefined {
  return (map.items as Pair[]).find((pair) => keyOf(pair) === key);
}

export function rangeOfPair(pair: Pair | undefined): Span {
  const key = pair?.key as Node | undefined;
  const value = pair?.value as Node | null | undefined;
  return { start: key?.range?.[0] ?? 0, end: value?.range?.[1] ?? key?.range?.[1] ?? 0 };
}
