/** Writes the two journals of a state tree, lifecycle events and lease changes, in the order in which these happen. */
import type { Clock } from "../core/clock.ts";
import type { EventSubject, LeaseStatus, LifecycleEventName } from "../core/events.ts";
import { isoTime } from "../core/iso-time.ts";
import { splitLease, submissionOf } from "../core/names.ts";
import { Journal } from "./journal.ts";

/** A subject, with its members as JSON text. */
interface MembersAbout extends EventSubject {
  who: string;
  which: string;
}

/** The subject of events about the pool itself. */
export const NO_SUBJECT: EventSubject = { task_id: "", agent_id: "", attempt: 0, lease: "" };

export class Telemetry {
  readonly events: Journal;
  readonly leases: Journal;
  /** The name of the process, as JSON text. */
  private readonly worker: string;
  private seq = 0;
  private isFlushDue = false;
  private toldDroppedCount = 0;
  private lastAbout: MembersAbout = { ...NO_SUBJECT, attempt: -1, who: "", which: "", group: "" };

  /** @param worker name of the process that writes */
  constructor(
    paths: { events: string; leases: string },
    worker: string,
    private readonly leaseTtlMs: number,
    private readonly clock: Clock,
  ) {
    this.events = new Journal(paths.events, true);
    this.leases = new Journal(paths.leases, false);
    this.worker = JSON.stringify(worker);
  }

  /** @param details further members; their names must differ from those that every event has */
  event(
    event: LifecycleEventName,
    subject: EventSubject,
    details: Record<string, unknown> = {},
  ): void {
    const t = this.clock.wallMs();
    const about = this.membersAbout(subject);
    this.seq += 1;
    this.events.append(
      `{"event":"${event}",${about.who},"timestamp":"${isoTime(t)}","t":${t},` +
        `${about.which},"seq":${this.seq},"worker":${this.worker}${membersOf(details)}}`,
    );
    this.flushSoon();
  }

  /** Writes an event about the pool itself. */
  note(event: LifecycleEventName, details: Record<string, unknown> = {}): void {
    this.event(event, NO_SUBJECT, details);
  }

  /**
   * @param acquiredAtMs epoch ms; 0 when it is not known
   * @param pid process id of the lease's owner; 0 when it is not known
   */
  lease(status: LeaseStatus, subject: EventSubject, acquiredAtMs = 0, pid = 0): void {
    const t = this.clock.wallMs();
    const acquired = acquiredAtMs === 0 ? t : acquiredAtMs;
    const expires = (status === "active" ? t : acquired) + this.leaseTtlMs;
    const about = this.membersAbout(subject);
    this.leases.append(
      `{${about.who},"status":"${status}","acquired_at":"${isoTime(acquired)}",` +
        `"expires_at":"${isoTime(expires)}",${about.which},"worker":${this.worker},` +
        `"pid":${pid},"ts":"${isoTime(t)}","t":${t}}`,
    );
    this.flushSoon();
  }

  /** Writes all buffered records. False when the disk refused; then a later flush writes them. */
  flush(): boolean {
    const events = this.events.flush();
    const isWritten = this.leases.flush() && events;
    return isWritten && (!this.tellDropped() || this.flush());
  }

  close(): void {
    this.flush();
    this.events.close();
    this.leases.close();
  }

  /** Writes an event that says how many records were dropped since the last such event. @returns false when none were dropped */
  private tellDropped(): boolean {
    const count = this.events.droppedCount + this.leases.droppedCount - this.toldDroppedCount;
    if (count === 0) return false;
    this.toldDroppedCount += count;
    this.note("records_dropped", { count });
    return true;
  }

  /** The members of a line about its subject. The last ones are cached, because lines of one attempt often follow each other. */
  private membersAbout(subject: EventSubject): MembersAbout {
    const { task_id, agent_id, attempt, lease, group = "" } = subject;
    const last = this.lastAbout;
    if (
      last.lease === lease &&
      last.task_id === task_id &&
      last.agent_id === agent_id &&
      last.attempt === attempt &&
      last.group === group
    )
      return last;
    const { head, owner } = splitLease(lease);
    this.lastAbout = {
      task_id,
      agent_id,
      attempt,
      lease,
      group,
      who: `"task_id":${quoted(task_id)},"agent_id":${quoted(agent_id)}`,
      which:
        `"attempt":${attempt},"lease":${quoted(head)},"owner":${quoted(owner)},` +
        `"submission":${quoted(submissionOf(lease))}${group === "" ? "" : `,"group":${quoted(group)}`}`,
    };
    return this.lastAbout;
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

/** For commands that only read: writes nothing. */
export class SilentTelemetry extends Telemetry {
  override event(): void {}
  override lease(): void {}
}

/** Lines are put together by hand, because `JSON.stringify` of a whole line would take longer than writing it. */
function membersOf(details: Record<string, unknown>): string {
  let text = "";
  for (const key in details) {
    const value = details[key];
    const json = typeof value === "string" ? quoted(value) : JSON.stringify(value);
    if (json !== undefined) text += `,${quoted(key)}:${json}`;
  }
  return text;
}

/** Writes a text as JSON. Ids and leases hold no character that JSON escapes, so the fast path is enough for them. */
function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

const PLAIN = /^[\w.-]*$/;
