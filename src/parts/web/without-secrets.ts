/** Hides the values of a program's environment variables, which often hold secrets. Pure. */

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
