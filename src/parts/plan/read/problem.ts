/** A fault in a plan and its place. Types only. */

export type ProblemCode =
  | "yaml"
  | "duplicate_key"
  | "alias"
  | "shape"
  | "missing_id"
  | "bad_id"
  | "duplicate_id"
  | "bad_value"
  | "unknown_key"
  /** Only a warning. */
  | "no_effect"
  | "unknown_dependency"
  | "unknown_parent"
  | "bad_parent"
  | "cycle"
  | "too_large";

export interface RoadmapProblem {
  code: ProblemCode;
  message: string;
  /** From 1. */
  line: number;
  /** From 1, in UTF-16 units. */
  col: number;
  hint: string;
}
