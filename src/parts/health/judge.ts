/** Judges whether a pool is well: a supervisor lives, writes its heartbeat, has room on the disk and reads a valid plan. Pure. */
import { POOL_GATES, type Reason } from "../../core/gates.ts";
import { ago } from "../../text/render.ts";
import type { SupervisorView } from "../../view/snapshot.ts";
import { HANG_TODO, poolOf } from "../../view/supervisor.ts";

export interface Ailment {
  /** A word for programs; it never changes. */
  code: "stopped" | "dead" | "late" | "disk" | "trouble" | "plan";
  what: string;
  do: string;
}

/** @param lateMs an older heartbeat counts as late */
export function findAilments(view: SupervisorView, nowMs: number, lateMs: number): Ailment[] {
  const { state, document, heartbeat_age_ms: ageMs } = view;
  const pool = poolOf(view, nowMs);
  const gone = POOL_GATES.supervisor(pool);
  if (gone || document === null) return ailmentOf(state === "dead" ? "dead" : "stopped", gone);
  const found: Ailment[] = [];
  if (ageMs !== null && ageMs > lateMs)
    found.push({
      code: "late",
      what: `the last heartbeat of the supervisor (pid ${document.pid}) was ${ago(nowMs - ageMs, nowMs)}`,
      do: HANG_TODO,
    });
  found.push(...ailmentOf("disk", POOL_GATES.disk(pool)));
  for (const { what, do: todo } of document.troubles ?? [])
    found.push({ code: "trouble", what, do: todo });
  if (typeof document.roadmap_problem === "string")
    found.push({
      code: "plan",
      what: `the last valid plan is in force, because roadmap.yaml has a problem: ${document.roadmap_problem}`,
      do: "mailchute roadmap check",
    });
  return found;
}

function ailmentOf(code: Ailment["code"], reason: Reason | false | undefined): Ailment[] {
  return !reason ? [] : [{ code, what: reason.why, do: reason.do }];
}
