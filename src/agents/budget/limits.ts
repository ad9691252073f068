/**
 * The budgets of a task, a plan, an agent on a day and all coding agents on a day, and whether a limit is reached. Pure. Money is in
 * millionths of a US dollar, time in ms. A day is one of UTC, as in `mailchute cost --by day`.
 */

import type { AgentBudget, DayBudget, TaskBudget } from "../../core/budget.ts";
import { isId } from "../../core/names.ts";
import { having, isNumber, type Of } from "../../core/shape.ts";
import { dayOf } from "../../journal/daily.ts";
import { readLimitAnswer } from "../../questions/question-file.ts";

export const SPENT = {
  usd: isNumber,
  tokens: isNumber,
  turns: isNumber,
  time: isNumber,
  runs: isNumber,
};
const isSpent = having(SPENT);
export type Spent = Of<typeof isSpent>;

export type Measure = "usd" | "tokens" | "turns" | "time";

/** Above `soft`, no turn and no run begins until a person has answered. Above `hard`, a turn that has begun is stopped, too. */
interface Limit {
  measure: Measure;
  soft: number;
  hard: number | undefined;
}

/** A group of runs that share one limit. */
export interface Scope {
  /** The key of its sum, and the beginning of the ids of its questions. */
  key: string;
  /** The name for people, such as `task a`. */
  what: string;
  /** A text for people that says who waits for an answer. */
  who: string;
  /** See `Question`. */
  agents: readonly string[];
  limits: readonly Limit[];
  /** When the sum begins at zero again (epoch ms); null: never. */
  endsAtMs: number | null;
}

/** What a run belongs to. */
export interface RunOwner {
  taskId: string;
  submission: string;
  agent: string;
  /** The name of the plan whose node it works on. */
  plan?: string;
}

/** The limits, by the level at which each was set. */
export interface Budgets {
  task: TaskBudget | undefined;
  plan?: TaskBudget | undefined;
  agent: AgentBudget | undefined;
  day: DayBudget;
}

/** The text for `who` in a question about the budget of a plan. */
export const NODES_OF_PLAN = "every node of the plan that a coding agent works on";
export const NOTHING_SPENT: Spent = { usd: 0, tokens: 0, turns: 0, time: 0, runs: 0 };
const DAY_MS = 24 * 60 * 60 * 1000;
const MINUTE_MS = 60_000;
const USD_MICRO = 1_000_000;
/** The unit in which people write a limit. */
const UNITS: Readonly<Record<Measure, { size: number; name: string }>> = {
  usd: { size: USD_MICRO, name: "USD" },
  tokens: { size: 1, name: "tokens" },
  turns: { size: 1, name: "turns" },
  time: { size: MINUTE_MS, name: "minutes" },
};

export function addSpent(a: Spent, b: Spent): Spent {
  return {
    usd: a.usd + b.usd,
    tokens: a.tokens + b.tokens,
    turns: a.turns + b.turns,
    time: a.time + b.time,
    runs: a.runs + b.runs,
  };
}

/** The sums that a run counts for. @param atMs epoch ms of its end */
export function keysOf(owner: RunOwner, atMs: number): string[] {
  const day = dayOf(atMs);
  const plan = owner.plan === undefined ? [] : [planKey(owner.plan)];
  return [taskKey(owner), ...plan, `agent.${owner.agent}.${day}`, `day.${day}`];
}

function taskKey({ taskId, submission }: RunOwner): string {
  return `task.${taskId}.${submission}`;
}

function planKey(plan: string): string {
  return `plan.${plan}`;
}

/** The scopes that limit a run, the narrowest first. Each field of a task's budget overrides that of its agent. */
export function scopesOf(owner: RunOwner, budgets: Budgets, nowMs: number): Scope[] {
  const [dayKey = "", agentKey = ""] = keysOf(owner, nowMs).reverse();
  const endsAtMs = (Math.floor(nowMs / DAY_MS) + 1) * DAY_MS;
  const { plan } = owner;
  const ofPlan: Scope[] =
    plan === undefined
      ? []
      : [
          {
            key: planKey(plan),
            what: `The plan ${plan}`,
            who: NODES_OF_PLAN,
            // The agents may have other tasks, too, so they are not held. Each node checks the limit when it begins, and is held itself.
            agents: [],
            limits: limitsOfTask(budgets.plan ?? {}),
            endsAtMs: null,
          },
        ];
  const scopes: Scope[] = [
    {
      key: taskKey(owner),
      what: `Task ${owner.taskId}`,
      who: `task ${owner.taskId}`,
      agents: [],
      limits: limitsOfTask({ ...budgets.agent, ...budgets.task }),
      endsAtMs: null,
    },
    ...ofPlan,
    {
      key: agentKey,
      what: `Agent ${owner.agent} today`,
      who: `every task of agent ${owner.agent}`,
      agents: [owner.agent],
      limits: limitsOfDay(budgets.agent ?? {}),
      endsAtMs,
    },
    {
      key: dayKey,
      what: "All coding agents today",
      who: "every task of a coding agent",
      agents: ["*"],
      limits: limitsOfDay(budgets.day),
      endsAtMs,
    },
  ];
  return scopes.filter(({ limits }) => limits.length > 0);
}

function limitsOfTask(b: TaskBudget): Limit[] {
  return [
    limit("usd", micro(b.soft_usd), micro(b.hard_usd)),
    limit("tokens", b.tokens, b.hard_tokens),
    limit("turns", b.turns, b.hard_turns),
    limit("time", b.time_ms, b.hard_time_ms),
  ].filter(({ soft }) => soft > 0);
}

function limitsOfDay(b: DayBudget): Limit[] {
  return [
    limit("usd", micro(b.day_usd), micro(b.day_hard_usd)),
    limit("tokens", b.day_tokens, b.day_hard_tokens),
    limit("turns", b.day_turns, b.day_hard_turns),
    limit("time", b.day_time_ms, b.day_hard_time_ms),
  ].filter(({ soft }) => soft > 0);
}

/** A limit of 0 means no limit. With only a hard limit, a person is asked when that is reached. */
function limit(measure: Measure, soft = 0, hard = 0): Limit {
  return { measure, soft: soft === 0 ? hard : soft, hard: hard === 0 ? undefined : hard };
}

function micro(usd = 0): number {
  return Math.round(usd * USD_MICRO);
}

/** A limit together with the answers of people. */
export interface LimitNow {
  soft: number;
  hard: number | undefined;
  /** The last answer was no. */
  isRefused: boolean;
}

/** @param answers to the questions about this limit, the first one first */
export function limitNow(limit: Limit, answers: readonly string[]): LimitNow {
  let { soft } = limit;
  let isRefused = false;
  for (const text of answers) {
    const answer = readLimitAnswer(text);
    isRefused = answer === "no";
    if (answer === "yes") soft += limit.soft;
    else if (typeof answer === "number")
      soft = Math.max(limit.soft, Math.round(answer * UNITS[limit.measure].size));
  }
  const hard = limit.hard === undefined ? undefined : limit.hard + soft - limit.soft;
  return { soft, hard, isRefused };
}

/**
 * What the other runs will probably have spent when they end: the average of earlier runs, or what they have spent already if that
 * is more.
 */
export function reserveFor(measure: Measure, before: Spent, beside: readonly Spent[]): number {
  const usual = before.runs === 0 ? 0 : before[measure] / before.runs;
  return beside.reduce((sum, spent) => sum + Math.max(spent[measure], usual), 0);
}

/** The id of the n-th question about a limit, from 1. @param hash of a text, for ids that would be too long */
export function questionId(
  { key }: Scope,
  measure: Measure,
  n: number,
  hash: (text: string) => string,
): string {
  const id = `budget.${key}.${measure}.${n}`;
  return isId(id) ? id : `budget.${hash(key)}.${measure}.${n}`;
}

export function questionText(scope: Scope, limit: Limit, now: LimitNow, spent: number): string {
  const { name } = UNITS[limit.measure];
  const text = (value: number): string => amount(limit.measure, value);
  return `${scope.what}: spent ${text(spent)} of ${text(now.soft)} ${name}. Go on to ${text(now.soft + limit.soft)} ${name}?`;
}

export function questionContext(limit: Limit): string {
  const { name } = UNITS[limit.measure];
  return `Answer \`yes\` for ${amount(limit.measure, limit.soft)} ${name} more, a number for a new limit in ${name}, or \`no\`: then the tasks that wait for this fail.`;
}

function amount(measure: Measure, value: number): string {
  const units = value / UNITS[measure].size;
  if (measure === "usd") return units.toFixed(2);
  return measure === "time" ? units.toFixed(1) : String(units);
}
