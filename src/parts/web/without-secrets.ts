/** Leaves out the values of variables of programs, which often hold what is secret. Pure. */

export function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      name === "env" && typeof one === "object" && one !== null
        ? Object.fromEntries(Object.keys(one).map((key) => [key, "…"]))
        : withoutSecrets(one),
    ]),
  );
}
