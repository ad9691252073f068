/** Stops the intake while the disk has too little room, and reports it: by an alert, an event, and `supervisor.json`. */
import { explainShortage, type Shortage } from "../../core/free-space.ts";
import type { DiskRoom } from "../../host/disk-room.ts";
import type { Environment } from "../environment/environment.ts";
import { NEVER, type Service, type Tick } from "../environment/service.ts";

/** Pause before the disk is checked again (ms). */
const AGAIN_MS = 500;

export class DiskLimit implements Service {
  /** What the disk lacks; undefined when there is room. */
  shortage: Shortage | undefined;

  constructor(
    private readonly env: Pick<Environment, "telemetry" | "alerts" | "facts">,
    private readonly room: DiskRoom,
  ) {}

  work({ nowMs }: Tick): void {
    const was = this.shortage;
    this.shortage = this.room.shortageAt(nowMs);
    if ((was === undefined) === (this.shortage === undefined)) return;
    const { telemetry, alerts, facts } = this.env;
    if (this.shortage === undefined) {
      telemetry.note("intake_resumed", { reason: "disk" });
      alerts.alert("intake_resumed", "intake goes on: there is room on the disk again");
    } else {
      telemetry.note("intake_stopped", { reason: "disk", ...this.shortage });
      alerts.alert("intake_stopped", explainShortage(this.shortage));
    }
    facts.emit("status:changed");
  }

  nextMs(nowMs: number): number {
    return this.shortage === undefined ? NEVER : nowMs + AGAIN_MS;
  }
}
