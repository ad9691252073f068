/** Compares two pieces of YAML by meaning, including anchors and aliases. Pure. */
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Pair,
  type Scalar,
  type YAMLMap,
} from "yaml";
import { keyOf, textOf } from "../read/yaml-text.ts";

export function sameShape(a: unknown, b: unknown): boolean {
  return JSON.stringify(shapeOf(a)) === JSON.stringify(shapeOf(b));
}

/** True if `after` has the pairs of `before` in the same order, except that `key` has the value `value`. */
export function sameBut(before: YAMLMap, after: YAMLMap, key: string, value: unknown): boolean {
  const rest = (map: YAMLMap): unknown =>
    (map.items as Pair[]).filter((pair) => keyOf(pair) !== key).map(shapeOfPair);
  const pairs = (after.items as Pair[]).filter((pair) => keyOf(pair) === key);
  return (
    pairs.length === 1 &&
    JSON.stringify(rest(before)) === JSON.stringify(rest(after)) &&
    JSON.stringify(textsOf(pairs[0]?.value)) === JSON.stringify(textsOf(value))
  );
}

/** A YAML node as plain data; an alias becomes `*name`. */
export function valuesOf(node: unknown): unknown {
  return plainOf(node, (scalar) =>
    typeof scalar.value === "bigint" ? textOf(scalar) : scalar.value,
  );
}

/** A YAML node or a value as plain data, with each scalar as the text in the file: an id like `0012` is not read as a number. */
export function textsOf(value: unknown): unknown {
  if (isNode(value)) return plainOf(value, (scalar) => textOf(scalar) ?? null);
  if (Array.isArray(value)) return value.map(textsOf);
  if (typeof value === "object" && value !== null) {
    const pairs = Object.entries(value).filter(([, one]) => one !== undefined);
    return Object.fromEntries(pairs.map(([key, one]) => [key, textsOf(one)]));
  }
  if (value === null || value === undefined) return null;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function plainOf(node: unknown, leaf: (scalar: Scalar) => unknown): unknown {
  if (isAlias(node)) return `*${node.source}`;
  if (isScalar(node)) return leaf(node);
  if (isSeq(node)) return node.items.map((item) => plainOf(item, leaf));
  if (!isMap(node)) return null;
  const pairs = node.items as Pair[];
  return Object.fromEntries(pairs.map((pair) => [keyOf(pair), plainOf(pair.value, leaf)]));
}

function shapeOf(node: unknown): unknown {
  if (isAlias(node)) return ["alias", node.source];
  if (isSeq(node)) return ["list", node.anchor, node.tag, node.items.map(shapeOf)];
  if (isMap(node)) return ["map", node.anchor, node.tag, (node.items as Pair[]).map(shapeOfPair)];
  if (isScalar(node)) return [typeof node.value, node.anchor, node.tag, textOf(node) ?? null];
  return null;
}

function shapeOfPair(pair: Pair): unknown {
  return [isScalar(pair.key) ? keyOf(pair) : shapeOf(pair.key), shapeOf(pair.value)];
}
