/** Finds the nodes that can never start, because a node that they need has failed for good. Pure. */
import { isTerminal } from "../../../core/roadmap.ts";
import { isEscalation } from "./escalation.ts";
import { linksOf, type Place } from "./places.ts";

/**
 * A failed node counts only when no open escalation deals with it.
 * @param hasFailed says whether a node has failed, or only a person can land its work
 */
export function findLost(
  places: readonly Place[],
  hasFailed: (place: Place) => boolean,
): ReadonlySet<Place> {
  const lost = new Set<Place>();
  const mended = beingMended(places);
  const bad = places.filter((place) => hasFailed(place) && !mended.has(place));
  if (bad.length === 0) return lost;
  const { users, children } = linksOf(places);
  const loseUsers = (of: Place): void => {
    for (const { user, isTerminalEnough } of users.get(of) ?? []) if (!isTerminalEnough) lose(user);
  };
  const lose = (first: Place): void => {
    // What is under a container that cannot start cannot start either.
    const below = [first];
    for (let one = below.pop(); one !== undefined; one = below.pop()) {
      if (one.isContainer || one !== first) below.push(...(children.get(one) ?? []));
      if (one.isContainer || one.node.status !== "open" || lost.has(one)) continue;
      lost.add(one);
      bad.push(one);
    }
  };
  const failedAbove = new Set<Place>();
  for (let one = bad.pop(); one !== undefined; one = bad.pop()) {
    loseUsers(one);
    // Those above a node that was seen were seen with it. This ends a circle of parents, too.
    for (let at = one.above; at !== undefined && !failedAbove.has(at); at = at.above) {
      failedAbove.add(at);
      if (at.isContainer) loseUsers(at);
    }
  }
  return lost;
}

/** The nodes that an open escalation deals with: its own cause, and the one before that in a chain of failed escalations. */
function beingMended(places: readonly Place[]): ReadonlySet<Place> {
  const found = new Set<Place>();
  const left = places.filter(({ node }) => isEscalation(node.id) && !isTerminal(node.status));
  for (let one = left.pop(); one !== undefined; one = left.pop())
    for (const { on, isTerminalEnough } of one.needs) {
      if (!isTerminalEnough || on === undefined || found.has(on)) continue;
      found.add(on);
      if (isEscalation(on.node.id)) left.push(on);
    }
  return found;
}
