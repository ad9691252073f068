/** The two journals of a state tree as one writer: lifecycle events and lease changes, in the order they happen. */
import type { Clock } from "../core/clock.ts";
import type { EventSubject, LeaseStatus, LifecycleEventName } from "../core/events.ts";
import { Journal } from "./journal.ts";

export interface LeaseFacts extends EventSubject {
  /** Epoch ms at which it was acquired; 0 when not known. */
  acquiredAtMs: number;
  pid: number;
}

export class Telemetry {
  readonly events: Journal;
  readonly leases: Journal;
  private readonly clock: Clock;
  private readonly worker: string;
  private readonly leaseTtlMs: number;
  private seq = 0;
  private isFlushDue = false;

  /** @param worker name of the process that writes */
  constructor(
    paths: { events: string; leases: string },
    worker: string,
    leaseTtlMs: number,
    clock: Clock,
  ) {
    this.events = new Journal(paths.events);
    this.leases = new Journal(paths.leases);
    this.worker = worker;
    this.leaseTtlMs = leaseTtlMs;
    this.clock = clock;
  }

  event(
    event: LifecycleEventName,
    subject: EventSubject,
    details: Record<string, unknown> = {},
  ): void {
    const t = this.clock.wallMs();
    this.seq += 1;
    this.events.append({
      event,
      task_id: subject.task_id,
      agent_id: subject.agent_id,
      timestamp: new Date(t).toISOString(),
      t,
      attempt: subject.attempt,
      lease: subject.lease,
      seq: this.seq,
      worker: this.worker,
      ...details,
    });
    this.flushSoon();
  }

  /** An event about the pool itself. */
  note(event: LifecycleEventName, details: Record<string, unknown> = {}): void {
    this.event(event, NO_SUBJECT, details);
  }

  lease(status: LeaseStatus, facts: LeaseFacts): void {
    const t = this.clock.wallMs();
    const acquired = facts.acquiredAtMs === 0 ? t : facts.acquiredAtMs;
    this.leases.append({
      task_id: facts.task_id,
      agent_id: facts.agent_id,
      status,
      acquired_at: new Date(acquired).toISOString(),
      expires_at: new Date((status === "active" ? t : acquired) + this.leaseTtlMs).toISOString(),
      lease: facts.lease,
      worker: this.worker,
      pid: facts.pid,
      attempt: facts.attempt,
      ts: new Date(t).toISOString(),
      t,
    });
    this.flushSoon();
  }

  /** Writes now. False when the disk refused; the records stay and a later flush writes them. */
  flush(): boolean {
    const events = this.events.flush();
    return this.leases.flush() && events;
  }

  close(): void {
    this.flush();
    this.events.close();
    this.leases.close();
  }

  private flushSoon(): void {
    if (this.isFlushDue) return;
    this.isFlushDue = true;
    setImmediate(() => {
      this.isFlushDue = false;
      this.flush();
    });
  }
}

const NO_SUBJECT: EventSubject = { task_id: "", agent_id: "", attempt: 0, lease: "" };
