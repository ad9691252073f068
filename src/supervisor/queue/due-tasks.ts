/** Makes waiting tasks runnable when their time has come. */
import type { Backlog } from "../../core/backlog.ts";
import type { Environment } from "../environment/environment.ts";
import { NEVER, type Service, type Tick } from "../environment/service.ts";

export class DueTasks implements Service {
  private nextDueMs = NEVER;

  constructor(
    private readonly env: Pick<Environment, "trays">,
    private readonly backlog: Backlog,
  ) {}

  work({ nowMs }: Tick): void {
    const inMs = this.backlog.promoteDue(this.env.trays.clock.wallMs(), nowMs);
    this.nextDueMs = inMs === undefined ? NEVER : nowMs + Math.max(1, inMs);
  }

  nextMs(): number {
    return this.nextDueMs;
  }
}
