/** Wakes the agents of a state tree for their mail while a supervisor runs. Without the setting `mail_enabled` it does and loads nothing. */
import { messageOf, systemCode } from "../../core/errors.ts";
import type { Part, PartPorts } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import type { MailWatch } from "./mail-watch.ts";

/** Between two looks at the files (ms). */
const LOOK_MS = 300;

class MailPart implements Part {
  readonly ports: PartPorts;
  private readonly env: PartHost["env"];
  private watch: MailWatch | undefined;
  private lookAtMs = 0;
  private isLooking = false;

  constructor({ env }: Pick<PartHost, "env">) {
    this.env = env;
    const isIdle = (): boolean => this.watch?.hasWork !== true;
    const work = { canStart: () => false, isBusy: () => this.isLooking, isIdle };
    this.ports = env.settings.mail_enabled ? { work } : {};
  }

  async start(): Promise<void> {
    if (!this.env.settings.mail_enabled) return;
    try {
      const { openWatch } = await import("./mail-watch.ts");
      this.watch = await openWatch(this.env);
      await this.watch.look(true);
    } catch (error) {
      this.report(error);
    }
  }

  work({ nowMs }: Tick): void {
    if (this.watch === undefined || this.isLooking || nowMs < this.lookAtMs) return;
    this.isLooking = true;
    const done = (): void => {
      this.isLooking = false;
      this.lookAtMs = this.env.trays.clock.monotonicMs() + LOOK_MS;
    };
    this.watch
      .look()
      .catch((error: unknown) => this.report(error))
      .finally(done);
  }

  nextMs(): number {
    return this.watch === undefined || this.isLooking ? NEVER : this.lookAtMs;
  }

  async finish(): Promise<void> {}

  close(): void {
    this.watch = undefined;
  }

  private report(error: unknown): void {
    this.env.alerts.report(`mail:${systemCode(error)}`, `mail: ${messageOf(error)}`);
  }
}

export const mail: MakePart = (host) => new MailPart(host);
