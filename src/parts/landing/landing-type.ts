/** The type of a task that lands the work of another task. Its `landing_of` names that task. The worker runs it itself. */
export const LANDING_TYPE = "landing";
/** The type of a task in which an agent reviews another task's work. Its `review_of` names that task, its `payload` the commit. */
export const REVIEW_TYPE = "review";
