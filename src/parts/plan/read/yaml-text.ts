/** What pieces of YAML say as text, and where they stand. Pure. */

import { isAlias, isMap, isNode, isScalar, isSeq, type Node, type Pair, type Scalar } from "yaml";
import { shapeOf } from "../../../codec/schema.ts";

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

export function isEmpty(node: Node | undefined): boolean {
  return node === undefined || (isScalar(node) && node.value === null);
}

export function offsetOf(raw: unknown, otherwise: number): number {
  return (isNode(raw) ? raw.range?.[0] : undefined) ?? otherwise;
}

/** What stands there, for a message: texts by their length only, because they may be secrets. */
export function shapeOfNode(node: Node | undefined): string {
  const isText = isScalar(node) && typeof node.value === "string";
  return isText ? shapeOf(node.value) : show(node);
}

/** A name as it may stand in a message. */
export function show(node: Node | undefined): string {
  const text = textOf(node);
  if (text !== undefined) return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}…` : text);
  if (isSeq(node)) return "a list";
  if (isMap(node)) return "a map";
  return isAlias(node) ? "an alias that leads nowhere" : "nothing";
}
