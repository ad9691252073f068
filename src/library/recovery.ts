/** Takes back the tasks of dead or silent owners for a program that uses the library. Keeps what it needs between two rounds. */
import { join } from "node:path";
import { leaseOf, runOf } from "../core/names.ts";
import type { Task } from "../core/task.ts";
import { judgeOwner } from "../host/identity.ts";
import { endTree } from "../host/process-tree.ts";
import { hasStarted } from "../journal/lookup.ts";
import type { Trays } from "../mailbox/files/trays.ts";
import { findRecoverable } from "../mailbox/recover/find-recoverable.ts";
import { LeaseObserver } from "../mailbox/recover/lease-observer.ts";
import { recoverStep } from "../mailbox/recover/recover.ts";
import type {
  Recovered,
  Recoverer,
  RunTraces,
  SettledFacts,
} from "../mailbox/recover/recoverer.ts";
import type { Settlement } from "../mailbox/settle/settle.ts";
import type { LeaseJournal } from "./lease-journal.ts";

export interface RecoveryOptions {
  trays: Trays;
  journal: LeaseJournal;
  newOwner: () => string;
  leaseTtlMs: number;
  /** For tasks without `max_attempts`. */
  maxAttempts: number;
  agentId: string;
}

export class Recovery {
  /** Names that this process holds and the disk did not let it finish. As this process lives, no other one takes them. */
  readonly unfinished = new Set<string>();
  private readonly options: RecoveryOptions;
  private readonly observer: LeaseObserver;
  private readonly excused = new Map<string, number>();

  constructor(options: RecoveryOptions) {
    this.options = options;
    this.observer = new LeaseObserver(options.leaseTtlMs);
  }

  /** @throws a system error */
  async recover(): Promise<Recovered[]> {
    const { trays, leaseTtlMs } = this.options;
    const recovered: Recovered[] = [];
    const recoverer = this.recoverer(recovered);
    const files = trays.storage.list(trays.processing);
    for (const step of findRecoverable(recoverer, files, leaseTtlMs))
      await recoverStep(recoverer, step);
    return recovered;
  }

  private recoverer(recovered: Recovered[]): Recoverer {
    const { trays, journal, newOwner, maxAttempts, agentId } = this.options;
    const { observer, unfinished, excused } = this;
    return {
      trays,
      newOwner,
      judge: judgeOwner,
      observer,
      unfinished,
      excused,
      endLease: async (lease: string) => {
        await endTree(lease, 0);
      },
      policyOf: (task: Task | undefined) => ({
        maxAttempts: task?.max_attempts ?? maxAttempts,
        agentId,
      }),
      ...runTraces(journal),
      onRecovered: (what: Recovered) => {
        recovered.push(what);
        if (what.action === "reclaimed") journal.noteReclaimed(what);
      },
      onSettled: (settled: Settlement, facts: SettledFacts) => {
        const mayBeRecorded = facts.mayBeRecorded || settled.mayBeRecorded === true;
        journal.noteSettled({ ...settled, mayBeRecorded }, 0, null);
      },
    };
  }
}

/** Finds traces of earlier runs by the workers of the state tree, if there is a tree. */
function runTraces({ tree }: LeaseJournal): { traces?: RunTraces } {
  if (tree === undefined) return {};
  const traces: RunTraces = {
    dirOf: (name) => join(tree.runs, runOf(name)),
    // Only the settings of the state tree say which agents are programs, and a library does not read them. For tasks without
    // `exec`, the journal is asked, too.
    isProgram: (task) => task.exec !== undefined,
    hasStarted: (name) => hasStarted(tree.events, leaseOf(name)),
  };
  return { traces };
}
