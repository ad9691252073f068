/** Wakes the agents of a state tree for their mail while a supervisor runs. Without the setting `mail_enabled` it does and loads nothing. */
import { messageOf, systemCode } from "../../core/errors.ts";
import type { Part, PartPorts } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import type { MailWatch } from "./delivery/mail-watch.ts";

/** Between two looks at the files (ms). */
const LOOK_MS = 300;

class MailPart implements Part {
  readonly ports: PartPorts;
  private readonly env: PartHost["env"];
  private readonly isOn: boolean;
  private watch: MailWatch | undefined;
  private lookAtMs = 0;
  private isLooking = false;
  /** False until the first look: then it is not known whether there is mail. */
  private hasLooked = false;

  constructor({ env }: Pick<PartHost, "env">) {
    this.env = env;
    this.isOn = env.settings.mail_enabled;
    const isIdle = (): boolean => this.hasLooked && this.watch?.hasWork !== true;
    const work = { canStart: () => false, isBusy: () => this.isLooking, isIdle };
    this.ports = this.isOn ? { work } : {};
  }

  /** The first tick opens the files, because a dry run has no ticks and must make none. */
  async start(): Promise<void> {}

  work({ nowMs }: Tick): void {
    if (!this.isOn || nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    if (this.isLooking) return;
    this.isLooking = true;
    void this.look();
  }

  nextMs(): number {
    return this.isOn ? this.lookAtMs : NEVER;
  }

  async finish(): Promise<void> {}

  close(): void {}

  /** Never rejects: the next look tries again. */
  private async look(): Promise<void> {
    const isStart = this.watch === undefined;
    try {
      const { openWatch } = await import("./delivery/mail-watch.ts");
      this.watch ??= await openWatch(this.env);
      await this.watch.look(isStart);
    } catch (error) {
      this.env.alerts.report(`mail:${systemCode(error)}`, `mail: ${messageOf(error)}`);
    }
    this.isLooking = false;
    this.hasLooked = true;
  }
}

export const mail: MakePart = (host) => new MailPart(host);
