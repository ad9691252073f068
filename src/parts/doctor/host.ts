/** Says how mailchute asks this machine about its processes, and what that means for tasks. */
import { DEFAULT_SETTINGS, type Settings } from "../../core/settings.ts";
import { HOST_VARIABLE, type HostKind, hostKind } from "../../host/host-kind.ts";
import { readProcLink } from "../../host/read-proc.ts";
import { duration } from "../../text/render.ts";
import { type CheckResult, ok, warned } from "./check.ts";

const NAME = "host";
/** The kernel gives this number to the pid namespace in which it starts. */
const FIRST_SPACE = "pid:[4026531836]";

export function checkHost(settings: Settings | undefined): CheckResult {
  const kind = hostKind();
  const space = kind === "proc" ? readProcLink("/proc/self/ns/pid") : undefined;
  return describeHost(kind, process.platform, space, (settings ?? DEFAULT_SETTINGS).lease_ttl_ms);
}

/** @param space the system's name of our pid namespace, if it is known. @param silenceMs the setting `lease_ttl_ms` */
export function describeHost(
  kind: HostKind,
  platform: NodeJS.Platform,
  space: string | undefined,
  silenceMs: number,
): CheckResult {
  if (kind === "portable") {
    const what = "portable: asks ps, so the run_limits of memory and processes do not hold";
    if (platform !== "linux") return ok(NAME, `${what} (docs/macos.md)`);
    return warned(NAME, what, `unset ${HOST_VARIABLE}: this machine has /proc`);
  }
  if (space === undefined || space === FIRST_SPACE)
    return ok(NAME, "/proc: whether a process lives is seen at once");
  return ok(
    NAME,
    `/proc, in a container: processes of another container are not seen. What one that was killed has left is taken back after ${duration(silenceMs)} of silence (lease_ttl_ms)`,
  );
}
