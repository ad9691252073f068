/** The fields of a task by what they hold: for tests that try each with values of another kind. */

export const TEXT_FIELDS = [
  "title",
  "description",
  "epic_id",
  "parent_id",
  "type",
  "status",
  "last_error",
  "claimed_by",
  "operator",
  "verdict",
  "verdict_reason",
  "test_mode",
  "test_scope",
  "test_command",
  "agent",
  "prompt",
  "cwd",
  "group",
  "dedup_key",
  "callback_of",
];
/** In unix seconds. */
export const TIME_FIELDS = ["claimed_at", "created_at", "updated_at", "not_before"];
/** Whole numbers, times among them. */
export const NUMBER_FIELDS = [
  ...TIME_FIELDS,
  "attempts",
  "max_attempts",
  "sequence_number",
  "priority",
  "timeout_ms",
  "dedup_window_ms",
];
