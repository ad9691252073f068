/** Why nothing, or not everything, moves on a state tree, and what a person can do about it. Pure. */
import { join } from "node:path";
import type { SupervisorDocument } from "../core/documents.ts";
import type { NodeStatus } from "../core/roadmap.ts";
import type { Obstacle, Snapshot } from "./snapshot.ts";
import { isAttended } from "./supervisor-view.ts";

/** A heartbeat older than this from a live process means that it is stuck (ms). */
const HEARTBEAT_LATE_MS = 60_000;

/** In the order in which a person would look. */
export function findObstacles(s: Omit<Snapshot, "obstacles">): Obstacle[] {
  const found: Obstacle[] = [];
  const say = (what: string, todo: string): void => void found.push({ what, do: todo });
  const backlog = s.counts.waiting.count + s.counts.ready + s.counts.delayed;
  const { state, document, heartbeat_age_ms: lateMs } = s.supervisor;
  const isOn = isAttended(s.supervisor);
  if (state === "dead")
    say(
      `the supervisor (pid ${document?.pid}) died without stopping`,
      "start it again: mailchute run; it takes back what was running",
    );
  else if (!isOn && (backlog > 0 || s.counts.running > 0))
    say("no supervisor runs on this state tree", "mailchute run");
  if (state === "unknown")
    say(
      `the supervisor runs on another host or in a container (${document?.host})`,
      "look at it there",
    );
  if (isOn && state !== "unknown" && lateMs !== null && lateMs > HEARTBEAT_LATE_MS) {
    say(
      "the supervisor is alive but its heartbeat is late: it may be stuck, or the disk full",
      "mailchute doctor; then stop and run it again",
    );
  }
  if (state === "draining")
    say("the supervisor drains: it ends when nothing is left", "wait, or mailchute stop");
  if (state === "stopping") say("the supervisor is stopping", "wait until it has ended");
  if (s.control.paused) {
    const by = s.control.paused_by === null ? "" : ` by command ${s.control.paused_by}`;
    say(
      `claiming is paused since ${s.control.paused_at ?? "an unknown time"}${by}`,
      "mailchute resume",
    );
  }
  if (s.control.replan_paused)
    say(
      "the plan is made anew: other nodes wait until the planner is through",
      "wait, or mailchute roadmap next --explain",
    );
  if (s.control.max_workers === 0)
    say("the number of slots is set to 0", "mailchute set-workers N");
  const hands = s.workers.filter((worker) => worker.verdict !== "dead");
  if (isOn && state !== "unknown" && hands.length === 0 && backlog > 0) {
    say(
      "no worker process is alive",
      "it should be started again within seconds; see mailchute events",
    );
  }
  if (backlog > 0 && (isOn || state === "stopped") && document !== null) sayWaiting(document, say);
  if (document?.roadmap) sayPlan(document.roadmap, s.counts.running + backlog > 0, say);
  if (s.unreadable.length > 0)
    say(
      `${s.unreadable.length} accepted ${s.unreadable.length === 1 ? "task" : "tasks"} cannot be read: ${s.unreadable.slice(0, 3).join(", ")}`,
      `check the disk, and the owner and rights of the files in ${join(s.mailbox_dir, "processing")}; they are tried again by themselves`,
    );
  const orphans = s.running.filter((one) => one.verdict === "dead").length;
  if (orphans > 0)
    say(
      `${orphans} running ${orphans === 1 ? "task is" : "tasks are"} held by processes that are dead`,
      isOn ? "they are taken back within seconds" : "mailchute run, or mailchute recover",
    );
  return found;
}

/** @param isBusy something runs, or waits in the mailbox: the plan may go on by itself */
function sayPlan(
  { needs_human: asking, open, in_progress: launched }: Record<NodeStatus, number>,
  isBusy: boolean,
  say: (what: string, todo: string) => void,
): void {
  if (asking > 0)
    say(
      `${asking} ${asking === 1 ? "node of the plan waits" : "nodes of the plan wait"} for an answer`,
      "mailchute roadmap next --explain names them, mailchute show ID the question; then mailchute answer ID TEXT",
    );
  if (open > 0 && launched === 0 && !isBusy)
    say(
      `${open} open ${open === 1 ? "node of the plan does" : "nodes of the plan do"} not start`,
      "mailchute roadmap next --explain says why",
    );
}

function sayWaiting(document: SupervisorDocument, say: (what: string, todo: string) => void): void {
  const waiting = document.waiting ?? {};
  const more = waiting.is_complete === false ? " or more" : "";
  const tasks = (count: number, one: string, many: string): string =>
    `${count}${more} ${count === 1 && more === "" ? `task ${one}` : `tasks ${many}`}`;
  if (waiting.blocked > 0)
    say(
      tasks(
        waiting.blocked,
        "waits for others that it depends on",
        "wait for others that they depend on",
      ),
      "mailchute show ID names them",
    );
  if (waiting.delayed > 0)
    say(
      tasks(
        waiting.delayed,
        "waits for its time (not_before, backoff)",
        "wait for their time (not_before, backoff)",
      ),
      "wait, or mailchute ls --state-is waiting",
    );
  if (waiting.unmatched > 0)
    say(
      tasks(waiting.unmatched, "fits no configured agent", "fit no configured agent"),
      "configure an agent in config.yaml, see mailchute config",
    );
  if ((waiting.unreadable ?? 0) > 0)
    say(
      tasks(waiting.unreadable ?? 0, "cannot be read", "cannot be read"),
      "check the disk, and the owner and rights of the files in the inbox; they are tried again by themselves",
    );
  if (waiting.unsettled > 0)
    say(
      tasks(
        waiting.unsettled,
        "is still being written, or does not parse",
        "are still being written, or do not parse",
      ),
      "they are refused with a reason when they stay as they are",
    );
}
