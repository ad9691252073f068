/** The parts of a running pool that commands steer. Shapes only. */
import type { Backlog } from "../core/backlog.ts";
import type { Settings } from "../core/settings.ts";
import type { Telemetry } from "../journal/telemetry.ts";
import type { Trays } from "../mailbox/trays.ts";
import type { ControlState } from "./control-state.ts";
import type { Plan } from "./plan-gate.ts";
import type { Pool } from "./pool.ts";
import type { Selection } from "./selection.ts";

export interface CommandContext {
  stateDir: string;
  trays: Trays;
  backlog: Backlog;
  selection: Selection;
  pool: Pool;
  control: ControlState;
  telemetry: Telemetry;
  /** Path of the journal of events. */
  eventsPath: string;
  /** Path of `runs/`. */
  runsDir: string;
  settings: Settings;
  newOwner: () => string;
  plan: Plan;
  /** True for `--once`: the number of workers is fixed. */
  isFixed: boolean;
  /** A line for the terminal. */
  notice(message: string): void;
  shareSlots(): void;
  wake(): void;
  stop(drain: boolean): void;
  hint(file: string): void;
}
