/** Reads values that programs write in loose forms: one string for a list, a number for a text, null for a missing value. */
import { isObject } from "../core/json-object.ts";
import { explainBadId } from "../core/names.ts";
import { NODE_PRIORITIES, type NodePriority, PRIORITY_MAX } from "../core/priority.ts";
import { suggest } from "../core/suggest.ts";
import { shapeOf, shorten } from "./schema.ts";

/** Reads values one by one, and collects the problems. */
export class LenientValues {
  /** Each problem begins with its place: "next.addNodes[0].id: …". */
  readonly problems: string[] = [];

  bad(place: string, message: string): void {
    this.problems.push(`${place}: ${message}`);
  }

  /** Reads one of a few words. Case and surrounding spaces are ignored. */
  word<W extends string>(place: string, value: unknown, words: readonly W[]): W | undefined {
    const text = typeof value === "string" ? value.trim().toLowerCase() : undefined;
    const found = words.find((one) => one === text);
    if (found !== undefined) return found;
    const near = text === undefined || text === "" ? undefined : suggest(text, words);
    const hint = near === undefined ? "" : `; did you mean "${near}"?`;
    this.bad(
      place,
      `expected ${words.slice(0, -1).join(", ")} or ${words.at(-1)}, found ${shapeFound(value)}${hint}`,
    );
    return undefined;
  }

  optionalWord<W extends string>(
    place: string,
    value: unknown,
    words: readonly W[],
  ): W | undefined {
    return isNothing(value) ? undefined : this.word(place, value, words);
  }

  /** Reads a word for a priority, or its number. */
  priority(place: string, value: unknown): NodePriority | number | undefined {
    if (Number.isInteger(value) && Math.abs(value as number) <= PRIORITY_MAX)
      return value as number;
    return this.optionalWord(place, value, NODE_PRIORITIES);
  }

  text(place: string, value: unknown): string | undefined {
    if (isNothing(value)) return undefined;
    if (typeof value === "string") return value;
    if (typeof value === "number" || typeof value === "boolean") return String(value);
    this.bad(place, `expected a text, found ${shapeFound(value)}`);
    return undefined;
  }

  /** Reads a list of texts. It also accepts a single text, and objects that hold the text under one of `names`. */
  lines(value: unknown, names: readonly string[]): string[] {
    if (isNothing(value) || value === "") return [];
    const items: unknown[] = Array.isArray(value) ? value : [value];
    return items.flatMap((item) => {
      if (typeof item === "string") return [item];
      if (Array.isArray(item) && item.every((part) => typeof part === "string"))
        return [item.join(" ")];
      const inside = isObject(item) ? member(item, names) : undefined;
      if (typeof inside === "string") return [inside];
      return isNothing(item) ? [] : [JSON.stringify(item)];
    });
  }

  integer(place: string, value: unknown, min: number, max: number): number | undefined {
    if (isNothing(value)) return undefined;
    if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max)
      return value as number;
    this.bad(place, `expected a whole number from ${min} to ${max}, found ${shapeFound(value)}`);
    return undefined;
  }

  id(place: string, value: unknown): string {
    const text = typeof value === "number" ? String(value) : value;
    if (typeof text !== "string") {
      this.bad(place, `expected an id, found ${shapeFound(value)}`);
      return "";
    }
    const fault = explainBadId(text);
    if (fault !== undefined) this.bad(place, `${shorten(text)}: ${fault}`);
    return text;
  }

  optionalId(place: string, value: unknown): string | undefined {
    return isNothing(value) ? undefined : this.id(place, value);
  }

  argv(place: string, value: unknown): string[] {
    const isArgv =
      Array.isArray(value) &&
      value.length > 0 &&
      value[0] !== "" &&
      value.every((part) => typeof part === "string" && !part.includes("\0"));
    if (isArgv) return value as string[];
    this.bad(
      place,
      `expected a program and its arguments as a list of texts, found ${shapeFound(value)}`,
    );
    return [];
  }

  objects(place: string, value: unknown): [string, Record<string, unknown>][] {
    return list(value).flatMap((item, i): [string, Record<string, unknown>][] => {
      if (isObject(item)) return [[`${place}[${i}]`, item]];
      this.bad(`${place}[${i}]`, `expected an object, found ${shapeFound(item)}`);
      return [];
    });
  }
}

export function member(object: Record<string, unknown>, names: readonly string[]): unknown {
  const name = names.find((one) => Object.hasOwn(object, one));
  return name === undefined ? undefined : object[name];
}

export function list(value: unknown): unknown[] {
  if (isNothing(value)) return [];
  return Array.isArray(value) ? value : [value];
}

export function isNothing(value: unknown): boolean {
  return value === undefined || value === null;
}

export function shapeFound(value: unknown): string {
  return isNothing(value) ? "nothing" : shapeOf(value);
}
