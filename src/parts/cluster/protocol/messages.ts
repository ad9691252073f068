/** What travels between machines. Types for now. */
import type { FailureKind } from "../../../core/task.ts";
import type { Dispatch } from "./dispatch.ts";

export interface Job {
  dispatch: Dispatch;
  target: string;
  /** The fields of the task that are sent. */
  task: Record<string, unknown>;
}

export type End =
  | { status: "completed"; output: unknown; verdict: string; verdict_reason: string; exit_code: number | null }
  | {
      status: "failed";
      kind: FailureKind;
      code: string;
      error: string;
      exit_code: number | null;
      signal: string | null;
      output?: unknown;
    }
  /** The machine does not run such tasks. */
  | { status: "refused"; reason: string };

export interface Result {
  dispatch: Dispatch;
  target: string;
  machine: string;
  end: End;
}
