/** The type of the task that lands the work of another one. Its `landing_of` names that one. The worker runs it by itself. */
export const LANDING_TYPE = "landing";
/** The type of the task in which an agent reviews the work of another one. Its `review_of` names that one, its `payload` the commit. */
export const REVIEW_TYPE = "review";
