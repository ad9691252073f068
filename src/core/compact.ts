/** Makes objects without their undefined fields. */

type Compact<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Leaves out undefined fields, because our TypeScript settings do not allow an optional field to be set to undefined. */
export function compact<T extends object>(fields: T): Compact<T> {
  const present = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as Compact<T>;
}
