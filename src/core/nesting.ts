/** Checks how deep and how wide a JSON value is, before it is passed to code that can only handle so much. */

/**
 * True when objects and arrays nest deeper than `depthMax`, the outermost included.
 * @param value has no circles, and may have any number of members
 */
export function isDeeperThan(value: unknown, depthMax: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depthMax === 0) return true;
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value);
  for (const member of members) if (isDeeperThan(member, depthMax - 1)) return true;
  return false;
}

/** True when any object in the value has more than `membersMax` members. @param value has no circles, and is not too deep */
export function isWiderThan(value: unknown, membersMax: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value);
  if (!Array.isArray(value) && members.length > membersMax) return true;
  return members.some((member) => isWiderThan(member, membersMax));
}
