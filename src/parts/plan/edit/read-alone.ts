/** Reads a piece of a plan by itself: before an edit, and after it to check that nothing else has changed. */
import { isMap, isScalar, isSeq, type Node, type YAMLMap } from "yaml";
import { parseYaml } from "../../../codec/yaml.ts";
import { findRepeatedKeys } from "../../../codec/yaml-keys.ts";
import { ErrInvalidRoadmap } from "../../../core/errors.ts";
import type { Span } from "../read/document.ts";
import { type DecodedItem, decodeItem, type ItemContext } from "../read/item.ts";
import type { ItemSource } from "../read/item-values.ts";
import { valuesOf } from "./shape.ts";

export function refuse(id: string, what: string): never {
  throw new ErrInvalidRoadmap(`cannot change ${what} of ${id} without changing more than that`, {
    id,
    phase: "edit",
    hint: "change it by hand, or write the item on one line: - { id: …, status: … }",
  });
}

/** Parses a piece of the text by itself; undefined if it is not valid alone. Aliases may point outside the piece. */
export function parseAlone(text: string): Node | undefined {
  const doc = parseYaml(text, { merge: true });
  const isBroken = doc.errors.some((one) => one.code !== "BAD_ALIAS");
  if (isBroken || findRepeatedKeys(doc.contents).length > 0) return undefined;
  return doc.contents ?? undefined;
}

/**
 * Reads an item without the rest of the file. Aliases cannot be resolved here, so only faults within the span `within` count.
 * @throws ErrInvalidRoadmap for the first fault
 */
export function decodeAlone(
  map: YAMLMap,
  id: string,
  context: ItemContext,
  within: Span = { start: 0, end: Number.POSITIVE_INFINITY },
): DecodedItem | undefined {
  let first: { message: string; hint: string } | undefined;
  const source: ItemSource = {
    follow: (raw) => (isMap(raw) || isSeq(raw) || isScalar(raw) ? raw : undefined),
    valueOf: valuesOf,
    warn() {},
    fault(_code, at, message, hint) {
      if (at >= within.start && at <= within.end) first ??= { message, hint };
    },
  };
  const decoded = decodeItem(map, source, context);
  if (first === undefined) return decoded;
  throw new ErrInvalidRoadmap(first.message, { id, phase: "edit", hint: first.hint });
}
