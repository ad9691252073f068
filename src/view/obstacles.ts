/** Finds why a state tree does not move, or not fully, and what a person can do about it. Pure. */
import { join } from "node:path";
import type { PlanHolds, SupervisorDocument } from "../core/documents.ts";
import { closedPoolGates } from "../core/gates.ts";
import type { NodeStatus } from "../core/roadmap.ts";
import { visible } from "../core/visible.ts";
import { holdOf } from "../questions/question-file.ts";
import { ago, counted } from "../text/render.ts";
import type { Obstacle, Snapshot } from "./snapshot.ts";
import { CONFIG_NEWER, closedGates, HANG_TODO, isAttended, poolOf } from "./supervisor.ts";
import { WAITS } from "./waiting-groups.ts";

/** A live process with an older heartbeat counts as stuck. */
const HEARTBEAT_LATE_MS = 60_000;
/** How many tasks or nodes are named. */
const NAMED_MAX = 3;
/** The longest text of a question or a reason. */
const TEXT_CHARS_MAX = 200;

type Say = (what: string, todo: string) => void;
type Looked = Omit<Snapshot, "obstacles">;

/**
 * Returns the obstacles in the order in which a person would look.
 * @param isPlanNewer the plan was saved after the supervisor's last report of it
 * @param areAll false: without the questions and the reasons why single tasks wait, for callers that show these apart
 */
export function findObstacles(s: Looked, isPlanNewer = false, areAll = true): Obstacle[] {
  const found: Obstacle[] = [];
  const say: Say = (what, todo) => void found.push({ what, do: todo });
  const backlog = s.counts.waiting.count + s.counts.ready + s.counts.delayed + s.counts.held;
  const { state, document } = s.supervisor;
  const isOn = isAttended(s.supervisor);
  sayPool(s, backlog, say);
  const hands = s.workers.filter((worker) => worker.verdict !== "dead");
  if (isOn && state !== "unknown" && hands.length === 0 && backlog > 0)
    say(
      "no worker process is alive",
      "it should be started again within seconds; see mailchute events",
    );
  if (areAll)
    for (const gate of closedGates(s.supervisor)) if (gate.is_well !== true) say(gate.why, gate.do);
  if (isOn) for (const trouble of document?.troubles ?? []) say(trouble.what, trouble.do);
  if (areAll && backlog > 0 && (isOn || state === "stopped") && document !== null)
    sayWaiting(document, say);
  if (document?.roadmap) {
    const isPlanOld = !isOn && isPlanNewer;
    if (isPlanOld) say("the plan was changed since it last ran", "mailchute run");
    else {
      if (areAll) sayAsking(document.roadmap, document.plan_holds, say);
      sayPlan(document.roadmap, document.plan_holds, say);
    }
  }
  if (s.config_newer) say(CONFIG_NEWER.what, CONFIG_NEWER.do);
  for (const warning of document?.field_warnings ?? []) say(warning.what, warning.do);
  if (areAll) sayQuestions(s, say);
  sayTasks(s, isOn, say);
  return found;
}

/** Names what is wrong with the supervisor, and what holds back new tasks on purpose. */
function sayPool(s: Looked, backlog: number, say: Say): void {
  const { supervisor, counts, control } = s;
  const { state, document, heartbeat_age_ms: lateMs } = supervisor;
  const isWanted = backlog > 0 || counts.running + counts.elsewhere > 0 || hasPlanLeft(document);
  const pool = poolOf(supervisor, Date.parse(s.at), control);
  for (const { code, why, do: todo } of closedPoolGates(pool))
    if (code !== "supervisor" || state === "dead" || isWanted) say(why, todo);
  if (state === "unknown")
    say(
      `the supervisor runs on another host or in a container (${document?.host})`,
      "look at it there",
    );
  const isLate = lateMs !== null && lateMs > HEARTBEAT_LATE_MS;
  if (isLate && isAttended(supervisor) && state !== "unknown")
    say(
      "the supervisor is alive but its heartbeat is late: it may be stuck, or the disk full",
      HANG_TODO,
    );
}

/** Names open questions. Questions of the plan are read from the plan; a question of a task that waits at a gate is shown with the gate. */
function sayQuestions({ questions: all, supervisor }: Looked, say: Say): void {
  const gates = new Set(closedGates(supervisor).map(({ gate }) => gate));
  const questions = all.filter(({ id }) => !gates.has(holdOf(id)));
  for (const { id, question, who } of questions.slice(0, NAMED_MAX))
    say(
      `${shorten(question)}${who === "" ? "" : ` Until then ${who} waits.`}`,
      `mailchute answer ${id} TEXT, or write the answer into questions/open/${id}.md`,
    );
  const more = questions.length - NAMED_MAX;
  if (more > 0)
    say(
      `${counted(more, "more question waits", "more questions wait")} for an answer`,
      "look into questions/open/",
    );
}

function sayTasks(s: Looked, isOn: boolean, say: Say): void {
  if (s.dropped_again !== null) {
    const { id, state: ended, at_ms: atMs } = s.dropped_again;
    const how = ended === "done" ? "has completed" : "has failed";
    say(
      `${id} was dropped again ${ago(atMs, Date.parse(s.at))}, just as it was: its task ${how}, and nothing more ran`,
      ended === "done"
        ? `mailchute retry ${id} --completed, or drop it under another name`
        : `mailchute retry ${id}`,
    );
  }
  if (s.unreadable.length > 0)
    say(
      `${counted(s.unreadable.length, "accepted task")} cannot be read: ${s.unreadable.slice(0, 3).join(", ")}`,
      `check the disk, and the owner and rights of the files in ${join(s.mailbox_dir, "processing")}; they are tried again by themselves`,
    );
  sayMisnamed(s.misnamed, say);
  const orphans = s.running.filter((one) => one.verdict === "dead").length;
  if (orphans > 0)
    say(
      `${counted(orphans, "running task is", "running tasks are")} held by processes that are dead`,
      isOn ? "they are taken back within seconds" : "mailchute run, or mailchute recover",
    );
}

/** Such a file would wait for ever without a word. */
function sayMisnamed(names: readonly string[], say: Say): void {
  if (names.length === 0) return;
  const [are, endings] =
    names.length === 1 ? ["is no task", "its ending"] : ["are no tasks", "their endings"];
  const more = names.length > NAMED_MAX ? ", …" : "";
  const shown = names.slice(0, NAMED_MAX).map(visible).join(", ");
  say(
    `${counted(names.length, "file")} in the inbox ${are} because of ${endings}: ${shown}${more}`,
    "a task is JSON in NAME.json, a batch JSON lines in NAME.ndjson, in small letters: rename or convert what is meant as one",
  );
}

/** Whether the plan has nodes that would start by themselves. */
function hasPlanLeft(document: SupervisorDocument | null): boolean {
  return (document?.roadmap?.open ?? 0) > (document?.plan_holds?.held_count ?? 0);
}

function sayAsking(
  counts: Record<NodeStatus, number>,
  holds: PlanHolds | null | undefined,
  say: Say,
): void {
  const asking = holds?.asking ?? [];
  for (const { id, question } of asking.slice(0, NAMED_MAX))
    say(
      question === null ? `${id} waits for a person` : `${id} asks: ${shorten(question)}`,
      `mailchute answer ${id} TEXT`,
    );
  const more = counts.needs_human - Math.min(asking.length, NAMED_MAX);
  if (more > 0)
    say(
      `${more} ${asking.length > 0 ? "more " : ""}${more === 1 ? "node waits" : "nodes wait"} for an answer`,
      "mailchute roadmap show --status needs_human; then mailchute answer ID TEXT",
    );
}

function sayPlan(
  { failed }: Record<NodeStatus, number>,
  holds: PlanHolds | null | undefined,
  say: Say,
): void {
  const { held = [], held_count: heldCount = 0 } = holds ?? {};
  if (heldCount > 0)
    say(
      `${heldCount} open ${heldCount === 1 ? "node of the plan does" : "nodes of the plan do"} not start: ${named(held, heldCount)}`,
      failed > 0
        ? "mend roadmap.yaml, then: mailchute roadmap reset --failed --downstream; mailchute roadmap next --explain says more"
        : "mailchute roadmap next --explain",
    );
}

/** `a (why), b (why) and 3 more`. */
function named(held: readonly { id: string; why: string }[], total: number): string {
  const shown = held.slice(0, NAMED_MAX).map(({ id, why }) => `${id} (${shorten(why)})`);
  const more = total - shown.length;
  return shown.join(", ") + (more > 0 && shown.length > 0 ? ` and ${more} more` : "");
}

function shorten(text: string): string {
  return text.length > TEXT_CHARS_MAX ? `${text.slice(0, TEXT_CHARS_MAX)}…` : text;
}

function sayWaiting({ waiting }: SupervisorDocument, say: Say): void {
  const more = waiting.is_complete === false ? " or more" : "";
  for (const code of ["blocked", "delayed", "unmatched", "unreadable", "unsettled"] as const) {
    const count = waiting[code] ?? 0;
    if (count === 0) continue;
    const { one, many, do: todo } = WAITS[code];
    const what = count === 1 && more === "" ? `task ${one}` : `tasks ${many}`;
    const held = (waiting.held ?? []).filter(({ state }) => state === code);
    const those = held.length === 0 ? "" : `: ${named(held, count)}`;
    say(`${count}${more} ${what}${those}`, todo);
  }
}
