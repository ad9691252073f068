/** Reads the values of one item by kind: a text, one of several words, a list. Each fault is reported at its place. */
import { isMap, isNode, isScalar, isSeq, type Node, type Pair, type YAMLMap } from "yaml";
import { NODE_PRIORITIES, type NodePriority, PRIORITY_MAX } from "../../../core/priority.ts";
import { suggest } from "../../../core/suggest.ts";
import type { ProblemCode } from "./problem.ts";
import { isEmpty, keyOf, offsetOf, shapeOfNode, textOf } from "./yaml-text.ts";

const MERGE_DEPTH_MAX = 8;

/** How an item reader follows aliases and reports faults. */
export interface ItemSource {
  /** The node behind an alias, or the node itself; undefined if there is none. */
  follow(raw: unknown): Node | undefined;
  /** The plain value of a node. */
  valueOf(node: Node, aliasesMax: number): unknown;
  /** @param at offset in the text (UTF-16 units) */
  fault(code: ProblemCode, at: number, message: string, hint: string): void;
  /** Reports what has no effect. The plan may be used. */
  warn(at: number, message: string, hint: string): void;
}

export interface Entry {
  key: Node;
  value: Node | undefined;
  /** Offset for faults: of the value or the key, or of this item if the value comes from `<<`. */
  at: number;
}

export class ItemValues {
  /** The item's id, for messages. */
  id = "";
  readonly own = new Map<string, Entry>();
  private readonly merged = new Map<string, Entry>();

  constructor(
    readonly map: YAMLMap,
    readonly source: ItemSource,
  ) {
    this.collect(map, this.own, 0);
  }

  /** Collects the item's own keys, and separately those that `<<` copies into it. */
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
      const at = depth > 0 ? this.startAt : offsetOf(pair.value, keyAt);
      into.set(name, { key, value, at });
    }
    if (depth >= MERGE_DEPTH_MAX) return;
    for (const raw of merges) {
      const from = this.source.follow(raw);
      const maps = isSeq(from) ? from.items.map((item) => this.source.follow(item)) : [from];
      for (const one of maps) if (isMap(one)) this.collect(one, this.merged, depth + 1);
    }
  }

  /** The item's own value of a key, else the one that `<<` copies. `id` and `status` are never copied. */
  get(key: string): Entry | undefined {
    const entry =
      this.own.get(key) ?? (key === "id" || key === "status" ? undefined : this.merged.get(key));
    return entry === undefined || isEmpty(entry.value) ? undefined : entry;
  }

  /** Where the item begins. */
  get startAt(): number {
    return this.map.range?.[0] ?? 0;
  }

  /** The members of a map, such as one of `dependencies`. `keyAt` and `at`: where key and value are. */
  membersOf(
    map: YAMLMap,
    entry: Entry,
  ): { name: string; keyAt: number; value: Node | undefined; at: number }[] {
    return (map.items as Pair[]).map((pair) => {
      const at = offsetOf(pair.value, entry.at);
      const value = this.source.follow(pair.value);
      return { name: keyOf(pair), keyAt: offsetOf(pair.key, at), value, at };
    });
  }

  bad(key: string, entry: Entry, expected: string, hint?: string): undefined {
    const message = `${key}: expected ${expected}, found ${shapeOfNode(entry.value)}`;
    this.source.fault("bad_value", entry.at, message, hint ?? `mend the ${key} of ${this.id}`);
    return undefined;
  }

  unknownKey(at: number, what: string, name: string, hint: string): undefined {
    this.source.fault("unknown_key", at, `${what} has no key ${JSON.stringify(name)}`, hint);
    return undefined;
  }

  text(key: string): string | undefined {
    const entry = this.get(key);
    if (entry === undefined) return undefined;
    return textOf(entry.value) ?? this.bad(key, entry, "text");
  }

  oneOf<T extends string>(key: string, words: readonly T[]): T | undefined {
    const entry = this.get(key);
    if (entry === undefined) return undefined;
    const word = textOf(entry.value);
    const found = words.find((one) => one === word);
    if (found !== undefined) return found;
    const near = word === undefined ? undefined : suggest(word, words);
    const hint = near === undefined ? undefined : `did you mean "${near}"?`;
    return this.bad(key, entry, words.join(", "), hint);
  }

  /** A word for a priority, or its number. */
  priority(): NodePriority | number | undefined {
    const entry = this.get("priority");
    const value = isScalar(entry?.value) ? entry.value.value : undefined;
    return typeof value === "number"
      ? this.integer("priority", -PRIORITY_MAX, PRIORITY_MAX)
      : this.oneOf("priority", NODE_PRIORITIES);
  }

  /** The entries of a list; a single value counts as a list with one entry. */
  list(key: string): { entry: Entry; items: Entry[] } | undefined {
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

  texts(key: string): string[] | undefined {
    return this.list(key)?.items.flatMap((item) => {
      const text = textOf(item.value);
      if (text === undefined) this.bad(key, item, "text, or a list of it");
      return text ?? [];
    });
  }

  argv(key: string): string[] | undefined {
    const entry = this.get(key);
    if (entry === undefined) return undefined;
    if (isSeq(entry.value) && entry.value.items.length > 0) return this.texts(key);
    const hint = `for example ${key}: [npm, test], or [sh, -c, "…"] for a shell`;
    return this.bad(key, entry, "a program and its arguments", hint);
  }

  boolean(key: string): boolean | undefined {
    const entry = this.get(key);
    if (entry === undefined) return undefined;
    const value = isScalar(entry.value) ? entry.value.value : undefined;
    return typeof value === "boolean" ? value : this.bad(key, entry, "true or false");
  }

  integer(key: string, min: number, max: number, entry = this.get(key)): number | undefined {
    if (entry === undefined) return undefined;
    const value = isScalar(entry.value) ? entry.value.value : undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max)
      return value;
    return this.bad(key, entry, `a whole number of at least ${min}`);
  }
}
