/** How much tasks and agents may spend. Types only. */

/** How much a task may spend over all its runs. 0 or left out = no limit. */
export interface TaskBudget {
  /** US dollars. Above this, a person is asked before another turn or run begins. */
  soft_usd?: number;
  /** US dollars. Above this, the run is interrupted and a person is asked. */
  hard_usd?: number;
  /** Input and output tokens, with a soft limit and a hard one as for dollars. The fields below work the same way. */
  tokens?: number;
  hard_tokens?: number;
  turns?: number;
  hard_turns?: number;
  time_ms?: number;
  hard_time_ms?: number;
}

/** The same limits for one day (UTC). */
export interface DayBudget {
  day_usd?: number;
  day_hard_usd?: number;
  day_tokens?: number;
  day_hard_tokens?: number;
  day_turns?: number;
  day_hard_turns?: number;
  day_time_ms?: number;
  day_hard_time_ms?: number;
}

export type AgentBudget = TaskBudget & DayBudget;
