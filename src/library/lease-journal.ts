/**
 * Writes the journal lines of a program that uses the library. They are the same as those of a worker. Nothing is written when
 * the mailbox is not part of a state tree.
 */
import fs from "node:fs";
import { dirname, resolve } from "node:path";
import { decodeRecord } from "../codec/records.ts";
import type { EventSubject } from "../core/events.ts";
import { headOf, leaseOf, type ProcessingName } from "../core/names.ts";
import { type StateTree, stateTree } from "../core/state-tree.ts";
import {
  type PutBackDetails,
  recordClaimed,
  recordConflict,
  recordFenced,
  recordPutBack,
  recordReclaimed,
  recordReleased,
  recordSettled,
} from "../journal/attempts.ts";
import { Telemetry } from "../journal/telemetry.ts";
import type { Trays } from "../mailbox/files/trays.ts";
import type { Recovered } from "../mailbox/recover/recoverer.ts";
import type { Settlement } from "../mailbox/settle/settle.ts";

export class LeaseJournal {
  /** The state tree of the mailbox, if it has one. */
  readonly tree: StateTree | undefined;
  private readonly telemetry: Telemetry | undefined;

  constructor(
    { dir, clock }: Trays,
    private readonly agentId: string,
    leaseTtlMs: number,
  ) {
    const tree = treeAround(dir);
    this.tree = tree;
    if (tree !== undefined)
      this.telemetry = new Telemetry(
        { events: tree.events, leases: tree.leases },
        agentId,
        leaseTtlMs,
        clock,
      );
  }

  /** @param wasWaiting true when the task was taken from the inbox; false when a supervisor had accepted it */
  noteClaimed(name: ProcessingName, acquiredAtMs: number, wasWaiting: boolean): void {
    this.write((telemetry) => {
      const subject = this.subjectOf(name);
      if (wasWaiting) telemetry.event("selected", { ...subject, lease: headOf(name) });
      recordClaimed(telemetry, subject, acquiredAtMs);
    });
  }

  notePutBack(name: ProcessingName, acquiredAtMs: number, details: PutBackDetails): void {
    this.write((telemetry) => {
      recordPutBack(telemetry, this.subjectOf(name), acquiredAtMs, details);
    });
  }

  /** Called between publishing the record and removing the marker. */
  noteSettled(settled: Settlement, acquiredAtMs: number, durationMs: number | null): void {
    this.write((telemetry) => {
      const record = decodeRecord(settled.record)?.record;
      if (record === undefined) return;
      const isFailure = record.status === "failed";
      const details = {
        isCompleted: !isFailure,
        acquiredAtMs,
        pid: process.pid,
        durationMs,
        error: isFailure ? record.error : null,
        kind: isFailure ? record.kind : null,
      };
      const { task_id, agent_id, attempts: attempt, lease } = record;
      const subject = { task_id, agent_id, attempt, lease, group: settled.task?.group };
      recordSettled(telemetry, subject, details, settled.mayBeRecorded);
    });
  }

  /** @param recordAs path of the record, relative to the mailbox */
  noteConflict(name: ProcessingName, acquiredAtMs: number, recordAs: string): void {
    this.write((telemetry) => {
      recordConflict(telemetry, this.subjectOf(name), recordAs);
      recordReleased(telemetry, this.subjectOf(name), acquiredAtMs);
    });
  }

  noteReclaimed(what: Extract<Recovered, { action: "reclaimed" }>): void {
    this.write((telemetry) => {
      const { name, next, reason, hasBegun } = what;
      recordReclaimed(telemetry, this.subjectOf(name), {
        reason,
        hasBegun,
        nextAttempt: next.attempt,
      });
    });
  }

  noteFenced(name: ProcessingName): void {
    this.write((telemetry) => {
      recordFenced(telemetry, this.subjectOf(name));
    });
  }

  private subjectOf(name: ProcessingName): EventSubject {
    const { id, attempt } = name;
    return { task_id: id, agent_id: this.agentId, attempt, lease: leaseOf(name) };
  }

  /** Flushes at once, because the program may end without another turn of its event loop. */
  private write(lines: (telemetry: Telemetry) => void): void {
    if (this.telemetry === undefined) return;
    lines(this.telemetry);
    this.telemetry.flush();
  }
}

/** The state tree that a mailbox is part of; undefined when the control mailbox is not in the same folder. */
function treeAround(dir: string): StateTree | undefined {
  const tree = stateTree(dirname(resolve(dir)));
  return tree.mailbox === resolve(dir) && fs.existsSync(tree.control) ? tree : undefined;
}
