/** Submits tasks in groups that share a durability barrier. Reports refused tasks by their line, and counts them. */

import type { Trays } from "../../mailbox/files/trays.ts";
import { SettledNames } from "../../mailbox/find/settled-names.ts";
import { type Submission, submitAll } from "../../mailbox/submit/submit.ts";
import { safe } from "../../text/render.ts";
import type { Output } from "../shell/command-spec.ts";
import { EXIT, exitCodeOf } from "../shell/exit-codes.ts";

/** The largest number of tasks that share one durability barrier. */
const GROUP_MAX = 256;
/** It prints at most this many complaints, and counts the rest. */
const COMPLAINTS_MAX = 20;

export interface SubmitCounts {
  submitted: number;
  /** Tasks that already waited with the same bytes. */
  unchanged: number;
  /** Lines that hold no task. */
  bad: number;
  /** Tasks that the mailbox refused, mostly because the id exists. */
  refused: number;
  exitCode: number;
}

export interface NumberedSubmission extends Submission {
  /** The line that the task comes from, counted from 1. */
  line: number;
}

export class SubmitGroups {
  readonly counts: SubmitCounts = {
    submitted: 0,
    unchanged: 0,
    bad: 0,
    refused: 0,
    exitCode: EXIT.ok,
  };
  private readonly settled: SettledNames | undefined;
  private group: NumberedSubmission[] = [];
  private complaints = 0;

  /**
   * @param trays undefined: the tasks are only printed
   * @param onIds gets the ids of each group that is now in the inbox
   */
  constructor(
    private readonly out: Pick<Output, "note" | "raw">,
    private readonly trays: Trays | undefined,
    private readonly onIds: (ids: readonly string[]) => void,
  ) {
    this.settled = trays && new SettledNames(trays);
  }

  get isFull(): boolean {
    return this.group.length >= GROUP_MAX;
  }

  add(submission: NumberedSubmission): void {
    this.group.push(submission);
  }

  noteBad(line: number, what: string): void {
    this.counts.bad++;
    this.complain(line, what);
  }

  async flush(): Promise<void> {
    const { group, counts } = this;
    if (group.length === 0) return;
    this.group = [];
    if (this.trays === undefined) {
      for (const { bytes } of group) await this.out.raw(bytes);
      return;
    }
    const ids: string[] = [];
    for (const [index, outcome] of (await submitAll(this.trays, group, this.settled)).entries()) {
      if (outcome.outcome === "refused") {
        counts.refused++;
        counts.exitCode = Math.max(counts.exitCode, exitCodeOf(outcome.error));
        const { code, message, hint } = outcome.error;
        const advice = code === "ErrIo" && hint !== undefined ? `; ${hint}` : "";
        this.complain(group[index]?.line ?? 0, `${code}: ${message}${advice}`);
      } else {
        counts[outcome.outcome]++;
        ids.push(outcome.id);
      }
    }
    if (ids.length > 0) this.onIds(ids);
  }

  private complain(line: number, what: string): void {
    this.complaints++;
    if (this.complaints <= COMPLAINTS_MAX) this.out.note(`line ${line}: ${safe(what)}`);
    if (this.complaints === COMPLAINTS_MAX + 1) this.out.note("further bad lines are only counted");
  }
}
