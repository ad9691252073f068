/** What runs of coding agents used, as lines of `analytics/costs.jsonl`. Shapes only. */

/** What one run used in one session. A reader counts a run of a session once. */
export interface CostRecord {
  /** Unix seconds. */
  at: number;
  task_id: string;
  run: string;
  /** Of the run. Runs of different processes may have had the same folder. Missing in records of earlier versions. */
  lease?: string;
  agent: string;
  kind: string;
  account: string;
  model: string | null;
  session_id: string | null;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  /** Millionths of a US dollar; null when the program gives no price. */
  cost_usd_micro: number | null;
  /** completed, failed, deferred, released, or lost_session. */
  outcome: string;
}
