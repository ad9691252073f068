/** Says how `run_limits` are enforced on this machine: by the kernel, or by a watch. */
import { messageOf } from "../../core/errors.ts";
import { hostKind } from "../../host/host-kind.ts";
import { mayExceed } from "../../host/process-room.ts";
import { findGroupPlace, type GroupPlace, groupSystem } from "../../host/run-groups.ts";
import { type CheckResult, ok } from "./check.ts";

const NAME = "run limits";

/** @param pid of the running supervisor; undefined to describe a supervisor that would be started from here */
export function checkRunLimits(pid: number | undefined): CheckResult {
  if (hostKind() !== "proc")
    return ok(
      NAME,
      "time (ulimit -t), the size of files (ulimit -f) and output hold; memory, processes and what is written cannot be watched without /proc",
    );
  return ok(NAME, describe(placeOf(pid), mayExceed()));
}

function placeOf(pid: number | undefined): GroupPlace | string {
  try {
    const place = findGroupPlace(groupSystem(pid));
    if (typeof place === "string" || place.isEntered || pid === undefined) return place;
    return `the pool that runs has not moved below ${place.base}`;
  } catch (error) {
    return messageOf(error);
  }
}

/** @param isFree true if `ulimit -u` does not limit this user */
export function describe(place: GroupPlace | string, isFree: boolean): string {
  const rest = "time by ulimit -t and a watch, disk by ulimit -f and a watch, output by a watch";
  if (typeof place !== "string")
    return `memory and processes by the kernel, in control groups below ${place.base}; ${rest}`;
  const processes = isFree ? "a watch" : "ulimit -u and a watch";
  return `memory by a watch, processes by ${processes} (no control groups: ${place}); ${rest}`;
}
