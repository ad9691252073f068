/** If systemd has started this supervisor, tells it when the supervisor is ready, that it works, and when it stops. */
import type { Part } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { SystemdSocket } from "./tell-systemd.ts";

class ServicePart implements Part {
  private readonly env: PartHost["env"];
  private readonly socket: SystemdSocket | undefined;
  private pingAtMs = NEVER;
  private stopping: NodeJS.Timeout | undefined;

  constructor({ env }: PartHost) {
    this.env = env;
    this.socket = SystemdSocket.from(process.env);
  }

  async start(): Promise<void> {
    if (this.socket === undefined) return;
    this.tell("READY=1", `STATUS=watching ${this.env.trays.inbox}`);
    this.pingAtMs = 0;
  }

  /** Pings from the tick, so that systemd restarts a supervisor whose tick hangs. */
  work({ nowMs }: Tick): void {
    const pingMs = this.socket?.pingMs;
    if (pingMs === undefined || nowMs < this.pingAtMs) return;
    this.pingAtMs = nowMs + pingMs;
    this.socket?.ping(this.onCannot);
  }

  nextMs(): number {
    return this.socket?.pingMs === undefined ? NEVER : this.pingAtMs;
  }

  /** Pings by a timer from now on, because no tick comes any more and running tasks may need long to end. */
  stop(): void {
    this.tell("STOPPING=1");
    const pingMs = this.socket?.pingMs;
    if (pingMs !== undefined)
      this.stopping = setInterval(() => this.socket?.ping(this.onCannot), pingMs);
  }

  close(): void {
    clearInterval(this.stopping);
  }

  private tell(...lines: string[]): void {
    this.socket?.tell(lines, this.onCannot);
  }

  private readonly onCannot = (reason: string): void =>
    this.env.alerts.report("systemd", `systemd cannot be told how the supervisor is: ${reason}`);
}

export const service: MakePart = (host) => new ServicePart(host);
