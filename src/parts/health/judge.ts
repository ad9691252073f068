/** Judges whether a pool is well: a supervisor lives, writes its heartbeat, has room on the disk and reads a valid plan. Pure. */
import { explainShortage } from "../../core/free-space.ts";
import { ago } from "../../text/render.ts";
import type { SupervisorView } from "../../view/snapshot.ts";
import { HANG_TODO, intakeStopped, isAttended } from "../../view/supervisor.ts";

export interface Ailment {
  /** A word for programs; it never changes. */
  code: "stopped" | "dead" | "late" | "disk" | "trouble" | "plan";
  what: string;
  do: string;
}

/** @param lateMs an older heartbeat counts as late */
export function findAilments(view: SupervisorView, nowMs: number, lateMs: number): Ailment[] {
  const { state, document, heartbeat_age_ms: ageMs } = view;
  if (state === "dead")
    return [
      {
        code: "dead",
        what: `the supervisor (pid ${document?.pid}) died without stopping`,
        do: "mailchute run; it takes back what was running",
      },
    ];
  if (!isAttended(view) || document === null)
    return [
      { code: "stopped", what: "no supervisor runs on this state tree", do: "mailchute run" },
    ];
  const found: Ailment[] = [];
  if (ageMs !== null && ageMs > lateMs)
    found.push({
      code: "late",
      what: `the last heartbeat of the supervisor (pid ${document.pid}) was ${ago(nowMs - ageMs, nowMs)}`,
      do: HANG_TODO,
    });
  const shortage = intakeStopped(view);
  if (shortage !== undefined)
    found.push({
      code: "disk",
      what: explainShortage(shortage),
      do: "make room on the disk; it goes on by itself",
    });
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
