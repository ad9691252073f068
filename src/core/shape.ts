/**
 * Shapes of the documents that only mailchute writes: from one shape come the type and the check. People and other programs can change
 * a document, so it is checked when it is read. Members of later versions stay. Pure. The schemas in `codec/` also explain a fault,
 * but take long to load: see docs/decisions.md.
 */
import { isObject } from "./json-object.ts";

export type Is<T> = (value: unknown) => value is T;

/** A member that the document can do without when it is missing or wrong. */
interface Spare<T> {
  is: Is<T>;
  /** What counts then; undefined: it is left out. */
  mend: (value: unknown) => T | undefined;
}
interface Optional<T> extends Spare<T> {
  isOptional: true;
}

type Members = Readonly<Record<string, Is<unknown> | Spare<unknown>>>;
type OptionalIn<M> = { [K in keyof M]: M[K] extends Optional<unknown> ? K : never }[keyof M];
type ValueOf<M> = M extends Is<infer T> ? T : M extends Spare<infer T> ? T : never;
type ObjectOf<M> = { [K in Exclude<keyof M, OptionalIn<M>>]: ValueOf<M[K]> } & {
  [K in OptionalIn<M>]?: ValueOf<M[K]>;
};

/** Reads a JSON object; undefined when it is no such document. When every member has a first value, every object is one. */
export type Shape<T> = (found: Record<string, unknown>) => T | undefined;

/** The documents that a shape reads, or the values that a check accepts. */
export type Of<S> = S extends Is<infer T> ? T : S extends Shape<infer T> ? T : never;

/** Without a member that is missing or wrong there is no document, unless it is `Spare`. Members that are not named are not checked. */
export function shape<M extends Members>(members: M): Shape<ObjectOf<M>> {
  const all = Object.entries(members);
  return (found) => {
    let document = found;
    for (const [name, member] of all) {
      const value = found[name];
      if (typeof member === "function") {
        if (!member(value)) return undefined;
        continue;
      }
      if (member.is(value)) continue;
      const mended = member.mend(value);
      if (mended === value) continue;
      if (document === found) document = { ...found };
      if (mended === undefined) delete document[name];
      else document[name] = mended;
    }
    return document as ObjectOf<M>;
  };
}

/** A value inside a document: an object with these members. One that is spare may be missing, but not wrong. */
export const having = <M extends Members>(members: M): Is<ObjectOf<M>> => {
  const all = Object.entries(members);
  return (value): value is ObjectOf<M> =>
    isObject(value) &&
    all.every(([name, member]) => {
      const one = value[name];
      return typeof member === "function" ? member(one) : one === undefined || member.is(one);
    });
};

/** A member that has this value when it is missing or wrong. */
export const orElse = <T>(is: Is<T>, first: T): Spare<T> => ({ is, mend: () => first });

/** A member that is left out when it is wrong. */
export const optional = <T>(is: Is<T>): Optional<T> => ({
  is,
  mend: () => undefined,
  isOptional: true,
});

/** A list without its wrong items; left out when it is no list. */
export const goodOf = <T>(is: Is<T>): Optional<T[]> => ({
  ...optional(listOf(is)),
  mend: (value) => (Array.isArray(value) ? value.filter(is) : undefined),
});

export const isText = (value: unknown): value is string => typeof value === "string";
export const isFlag = (value: unknown): value is boolean => typeof value === "boolean";
export const isNumber = (value: unknown): value is number => Number.isFinite(value);
export const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0;

export const oneOf =
  <const T>(...values: T[]): Is<T> =>
  (value): value is T =>
    values.includes(value as T);

export const orNull =
  <T>(is: Is<T>): Is<T | null> =>
  (value): value is T | null =>
    value === null || is(value);

/** A member that may be missing, but not wrong. */
export const ifThere =
  <T>(is: Is<T>): Is<T | undefined> =>
  (value): value is T | undefined =>
    value === undefined || is(value);

export const listOf =
  <T>(is: Is<T>): Is<T[]> =>
  (value): value is T[] =>
    Array.isArray(value) && value.every(is);

export const recordOf =
  <T>(is: Is<T>): Is<Record<string, T>> =>
  (value): value is Record<string, T> =>
    isObject(value) && Object.values(value).every(is);
