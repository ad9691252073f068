/** Makes the overview of a pool from a snapshot and a few more facts. Pure. */
import { ago } from "../text/render.ts";
import { batchBar } from "./batches.ts";
import { groupsOf } from "./groups.ts";
import { findObstacles } from "./obstacles.ts";
import type { Facts, Health, Overview, RunningRow } from "./overview.ts";
import type { QuestionView, RunningView, Snapshot, SupervisorView } from "./snapshot.ts";
import { isAttended, nodeQuestions } from "./supervisor.ts";
import { pausedText, slotsOf, waitingGroups } from "./waiting-groups.ts";

/** A heartbeat older than this (ms) is late. The supervisor writes it every 2 s. */
const LIVE_MS = 5000;
export const RUNNING_MAX = 200;

export function overviewOf(facts: Facts): Overview {
  const { snapshot: s, minutes, failures, cost } = facts;
  const { running: _leases, groups: _groups, ...spent } = cost;
  const nowMs = Date.parse(s.at);
  const waiting = waitingGroups(facts, nowMs);
  for (const task of waiting.flatMap(({ tasks }) => tasks)) {
    const title = facts.titles.get(task.id) ?? "";
    if (title !== "") task.title = title;
  }
  return {
    at_ms: nowMs,
    state_dir: s.state_dir,
    health: healthOf(s.supervisor, nowMs),
    slots: slotsOf(s),
    workers: s.workers,
    paused: s.control.paused ? pausedText(s, nowMs) : null,
    counts: s.counts,
    minutes,
    run_time: runTimeOf(s.metrics),
    cost: spent,
    running: s.running.slice(0, RUNNING_MAX).map((one) => runningRow(one, facts)),
    waiting,
    groups: groupsOf(facts, waiting),
    failures,
    questions: questionsOf(s),
    obstacles: findObstacles(s, facts.isPlanNewer, false),
    alerts: [...facts.alerts],
  };
}

export function healthOf(view: SupervisorView, nowMs: number): Health {
  const { state, document: d, heartbeat_age_ms: ageMs } = view;
  const seen = ago(nowMs - (ageMs ?? 0), nowMs);
  const is_attended = isAttended(view);
  switch (state) {
    case "none":
      return { state, text: "no supervisor", is_attended };
    case "stopped":
      return { state, text: `stopped ${seen}`, is_attended };
    case "dead":
      return { state, text: `dead: pid ${d?.pid} is gone, last seen ${seen}`, is_attended };
    case "unknown":
      return { state, text: `unknown: it runs on ${d?.host}, last seen ${seen}`, is_attended };
    default: {
      const doing = state === "running" ? "" : `, ${state}`;
      if ((ageMs ?? 0) < LIVE_MS) return { state: "live", text: `live${doing}`, is_attended };
      return { state: "silent", text: `silent${doing}: last heartbeat ${seen}`, is_attended };
    }
  }
}

function runTimeOf(metrics: Snapshot["metrics"]): Overview["run_time"] {
  const { p50, p95 } = (metrics?.["duration_ms"] ?? {}) as { p50?: unknown; p95?: unknown };
  return typeof p50 === "number" && typeof p95 === "number" ? { p50_ms: p50, p95_ms: p95 } : null;
}

function runningRow(one: RunningView, { tasks, lastLines, cost }: Facts): RunningRow {
  const { id, attempt, age_ms, verdict, batch, progress = null, run, lease } = one;
  const { machine = null, last_line: ownLine } = one;
  const line = ownLine ?? lastLines.get(run ?? "") ?? null;
  const task = tasks.get(lease ?? "");
  return {
    id,
    title: task?.title ?? "",
    attempt,
    attempts_max: task?.attempts_max ?? null,
    agent: task?.agent ?? null,
    age_ms,
    is_alive: verdict !== "dead",
    progress,
    last_line: batch === undefined ? line : batchBar(batch),
    cost_usd_micro: cost.running.get(lease ?? "") ?? null,
    run,
    machine,
  };
}

/** Questions that wait for a person, with those of the plan, whose time is not known. */
export function questionsOf({ questions, supervisor }: Snapshot): QuestionView[] {
  const ofPlan = [...nodeQuestions(supervisor)].map(([id, question]) => ({
    id,
    question: question || `${id} waits for a person`,
    who: `node ${id}`,
    expects: "text" as const,
    asked_at_ms: 0,
  }));
  return [...questions, ...ofPlan];
}
