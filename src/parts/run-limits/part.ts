/** Before a worker starts, moves the pool to a place where its runs can have control groups. Does nothing if there is none. */
import { enterPoolGroup, findGroupPlace, groupSystem } from "../../host/run-groups.ts";
import type { MakePart } from "../../supervisor/part.ts";

export const poolGroup: MakePart = () => {
  try {
    const place = findGroupPlace(groupSystem());
    if (typeof place !== "string" && !place.isEntered) enterPoolGroup(place);
  } catch {
    // Then runs are watched. `doctor` says so.
  }
  return {};
};
