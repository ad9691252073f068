/** `mailchute/supervisor`: runs a pool with worker processes, as `mailchute run` does, inside another program. */
export { Supervisor } from "./app/supervisor.ts";
export { loadSettings } from "./config/load-settings.ts";
export { DEFAULT_SETTINGS, type Settings } from "./core/settings.ts";
export type { RunSummary, SupervisorOptions } from "./supervisor/supervisor.ts";
