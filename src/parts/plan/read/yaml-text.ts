/** Reads keys, texts and offsets from YAML nodes. Pure. */

import { isAlias, isMap, isNode, isScalar, isSeq, type Node, type Pair, type Scalar } from "yaml";
import { shapeOf } from "../../../codec/schema.ts";

/** The key of a pair as text; "" if the key is not a scalar. The parser represents the merge key `<<` as a symbol. */
export function keyOf(pair: Pair): string {
  if (!isScalar(pair.key)) return "";
  const { value } = pair.key;
  return typeof value === "symbol" ? (value.description ?? "") : String(value);
}

/** The text of a scalar as it was written: `0012` and `1.0` are not changed, because they may be ids or arguments. */
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

/** Describes a value for a message. Shows only the length of a text, because it may be a secret. */
export function shapeOfNode(node: Node | undefined): string {
  const isText = isScalar(node) && typeof node.value === "string";
  return isText ? shapeOf(node.value) : show(node);
}

/** Describes a name for a message, shortened to 60 characters. */
export function show(node: Node | undefined): string {
  const text = textOf(node);
  if (text !== undefined) return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}…` : text);
  if (isSeq(node)) return "a list";
  if (isMap(node)) return "a map";
  return isAlias(node) ? "an alias without an anchor" : "nothing";
}
