/** One item of a plan by itself: its text, cut out of the plan, and its keys. After each edit it is read again, to check the edit. */
import { isMap, type Node, type Pair, type YAMLMap } from "yaml";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import { columnOf, type RoadmapDocument, type Span, spanOf } from "../read/document.ts";
import { keyOf } from "../read/yaml-text.ts";
import { parseAlone, refuse } from "./read-alone.ts";
import { sameBut } from "./shape.ts";
import { endOfLine, newlineAt, trimEnd } from "./text-lines.ts";

/** A piece of the plan's text, with the text that takes its place. */
export interface Replacement extends Span {
  text: string;
  /** The offset in `text` at which the item ends, or a list in it begins. */
  itemEnd: number;
}

export class ItemText {
  /** Begins with as many spaces as the item is indented. The lists that a container holds are left out. */
  text: string;
  private known: YAMLMap | undefined;
  readonly indent: number;
  /** The pieces of the text between those lists: where each begins in `text`, and where it was in the plan. */
  private readonly pieces: { at: number; outer: Span }[] = [];
  /** The line break behind the item. */
  private readonly newline: string;

  /** @param what is to be changed in the item, for a message */
  constructor(
    private readonly doc: RoadmapDocument,
    readonly node: RoadmapNode,
    private readonly what: string,
  ) {
    const { end, ...span } = spanOf(doc, node);
    let { start } = span;
    this.indent = columnOf(doc.text, start);
    this.newline = newlineAt(doc.text, endOfLine(doc.text, end));
    this.text = " ".repeat(this.indent);
    const inOrder = (doc.places.holes.get(node.order) ?? []).toSorted((a, b) => a.start - b.start);
    for (const hole of [...inOrder, { start: end, end }]) {
      this.pieces.push({ at: this.text.length, outer: { start, end: hole.start } });
      this.text += doc.text.slice(start, hole.start);
      start = hole.end;
    }
  }

  get map(): YAMLMap {
    this.known ??= this.read();
    return this.known;
  }

  get hasHoles(): boolean {
    return this.pieces.length > 1;
  }

  find(key: string): Pair | undefined {
    return (this.map.items as Pair[]).find((pair) => keyOf(pair) === key);
  }

  /** The span of a value without the white space behind it. */
  spanOf(node: Node): Span {
    const [start = 0, end = 0] = node.range ?? [];
    return { start, end: trimEnd(this.text, start, end) };
  }

  replace({ start, end }: Span, insert: string): void {
    this.text = this.text.slice(0, start) + insert + this.text.slice(end);
    for (const piece of this.pieces) if (piece.at >= end) piece.at += insert.length - (end - start);
  }

  insert(at: number, text: string): void {
    this.replace({ start: at, end: at }, text);
  }

  /** Adds a line behind the line of `at`. */
  addLine(at: number, indent: number, line: string): void {
    const end = endOfLine(this.text, at);
    const newline = end < this.text.length ? newlineAt(this.text, end) : this.newline;
    this.insert(end, `${newline}${" ".repeat(indent)}${line}`);
  }

  /** Reads the changed text. @throws ErrInvalidRoadmap unless only `key` has changed, and now has this value */
  check(key: string, value: unknown): void {
    const before = this.map;
    this.known = this.read();
    if (!sameBut(before, this.known, key, value)) this.refuse(key);
  }

  /**
   * Replaces a plain word by another, if it is the whole value of `key`. Then nothing else can have changed, so the text is read only
   * once. @returns false: it is not, and the item is as before
   */
  replaceWord(start: number, old: string, word: string, key: string): boolean {
    this.replace({ start, end: start + old.length }, word);
    this.known = undefined;
    const [from, end] = (this.find(key)?.value as Node | null | undefined)?.range ?? [];
    if (from === start && end === start + word.length) return true;
    this.replace({ start, end: start + word.length }, old);
    this.known = undefined;
    return false;
  }

  refuse(what: string): never {
    return refuse(this.node.id, what);
  }

  /** The pieces that have changed. */
  replacements(): Replacement[] {
    return this.pieces.flatMap(({ at, outer }, i) => {
      const next = this.pieces[i + 1]?.at;
      const text = this.text.slice(at, next);
      if (text === this.doc.text.slice(outer.start, outer.end)) return [];
      return { ...outer, text, itemEnd: (next ?? this.spanOf(this.map).end) - at };
    });
  }

  /** Where the value of the key `id` is: the beginning of its piece in the plan's old text, and how far behind that. */
  idPlace(): { outer: number; shift: number } {
    const at = (this.find("id")?.value as Node | null | undefined)?.range?.[0] ?? 0;
    const piece = this.pieces.findLast((one) => one.at <= at) ?? { at, outer: { start: at } };
    return { outer: piece.outer.start, shift: at - piece.at };
  }

  private read(): YAMLMap {
    const map = parseAlone(this.text);
    return isMap(map) && map.range?.[0] === this.indent ? map : this.refuse(this.what);
  }
}

export function spanOfPair(pair: Pair | undefined): Span {
  const key = pair?.key as Node | undefined;
  const value = pair?.value as Node | null | undefined;
  return { start: key?.range?.[0] ?? 0, end: value?.range?.[1] ?? key?.range?.[1] ?? 0 };
}
