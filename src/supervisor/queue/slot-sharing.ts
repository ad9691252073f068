/** Shares the slots among the workers by the number of tasks that each runs. Workers read their share in `control.json`. */
import type { ControlFile } from "../documents/control-file.ts";
import type { Pool } from "../pool/pool.ts";
import type { ProcessingTray } from "./processing-tray.ts";

export class SlotSharing {
  constructor(
    private readonly pool: Pool,
    private readonly processing: ProcessingTray,
    private readonly control: ControlFile,
  ) {}

  share(): void {
    const { pool, processing, control } = this;
    const running = processing.runningByOwner();
    if (running === undefined) return;
    pool.retireIdle(running);
    if (control.setSlots(pool.shares(running))) pool.workers.tellAll({ type: "control" });
  }
}
