/** The type of the task that lands the work of another one. Its `landing_of` names that one. The worker runs it by itself. */
export const LANDING_TYPE = "landing";
