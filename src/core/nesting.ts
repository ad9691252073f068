/** How deep a JSON value nests. What reads and writes JSON recursively must not be handed more than it can bear. */

/**
 * True when objects and arrays nest deeper than `depthMax`, the outermost included.
 * @param value without circles; what stands side by side may be any number
 */
export function isDeeperThan(value: unknown, depthMax: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depthMax === 0) return true;
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value);
  for (const member of members) if (isDeeperThan(member, depthMax - 1)) return true;
  return false;
}
