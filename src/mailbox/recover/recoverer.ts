/** What a recoverer needs and reports: types only. */
import type { ProcessingName } from "../../core/names.ts";
import type { Task } from "../../core/task.ts";
import type { Claim } from "../claim/claim.ts";
import type { Trays } from "../files/trays.ts";
import type { SkippedTasks } from "../find/skipped-records.ts";
import type { Settlement } from "../settle/settle.ts";
import type { LeaseObserver } from "./lease-observer.ts";

export interface Recoverer {
  trays: Trays;
  /** Makes the owner strings under which this recoverer settles. */
  newOwner: () => string;
  judge: (owner: string) => "alive" | "dead" | "unknown";
  /**
   * When the process of this owner last reported in another file that it lives (epoch ms); undefined when that is not known.
   * Needed for claims on files of another user, because the owner may not be allowed to set their times.
   */
  beatOf?: (owner: string) => number | undefined;
  /** Remembers how long each file has not changed, on this process's own clock. */
  observer: LeaseObserver;
  /** Names that this recoverer holds and could not finish. As this process lives, no other recoverer would take them. */
  unfinished: Set<string>;
  /** How often the death of a worker did not use up a run: by submission, and also by run number where the run had not begun. */
  excused: Map<string, number>;
  /** The skipped tasks; set when this round finishes a retry. */
  skipped?: Promise<SkippedTasks> | undefined;
  /** Whether the process of a dead owner ended for lack of memory. */
  lackedMemory?: (owner: string) => boolean;
  /** Called once for each crash of the machine during a run. True when it uses up no attempt; false without this function. */
  excusesCrash?: (name: ProcessingName) => boolean;
  /** Ends every process of that lease; resolves when none is left. */
  endLease: (lease: string) => Promise<void>;
  policyOf: (task: Task | undefined) => { maxAttempts: number; agentId: string };
  /** Without it, every claimed run of a task counts as begun. */
  traces?: RunTraces;
  onRecovered: (what: Recovered) => void;
  /** Writes the journal lines for a settlement that this recovery published or found published. */
  onSettled: (settled: Settlement, facts: SettledFacts) => void;
}

/** The trace that a worker leaves before a run begins: a directory for a program, a journal line for a function. */
export interface RunTraces {
  /** The run's directory. A function has one, too, when its journal line could not be written. */
  dirOf: (name: ProcessingName) => string;
  /** Whether the task runs a program and not a function. */
  isProgram: (task: Task) => boolean;
  /** Whether that journal line is there; undefined when this cannot be known. */
  hasStarted: (name: ProcessingName) => boolean | undefined;
}

export interface SettledFacts {
  agentId: string;
  error: string | null;
  kind: string | null;
  /** True when the dead owner had published the record, and so may have written the journal lines too. */
  mayBeRecorded: boolean;
}

/** Why a claim is taken back: its owner died, died because memory was short, or fell silent. */
export type ReclaimReason = "dead" | "memory" | "silent";

export type Recovered =
  | {
      action: "reclaimed";
      name: ProcessingName;
      next: ProcessingName;
      reason: ReclaimReason;
      /** False: its worker died before the run began. */
      hasBegun: boolean;
      agentId: string;
      /** The group of the task, if it has one. */
      group: string | undefined;
      /** The death of its worker counts against the task, and only one run is left. */
      isLastRun: boolean;
    }
  | { action: "failed"; name: ProcessingName; reason: ReclaimReason; agentId: string }
  | { action: "published"; name: ProcessingName }
  /** A skip was not carried out: the task waits in the inbox again. */
  | { action: "unskipped"; id: string }
  /** Another file is at the final name of a record, which was published as `recordAs` (relative to the mailbox). */
  | {
      action: "conflict";
      name: ProcessingName;
      agentId: string;
      lease: string;
      recordAs: string;
      group: string | undefined;
    }
  | { action: "reopened"; name: ProcessingName; next: ProcessingName; group: string | undefined }
  | { action: "quarantined"; name: ProcessingName }
  | { action: "resubmitted"; name: ProcessingName }
  | { action: "reclaimed_foreign"; next: ProcessingName; group: string | undefined }
  | { action: "cleaned_foreign"; id: string };

export type RecoverStep =
  | {
      kind: "reclaim";
      claim: Claim;
      reason: ReclaimReason;
      /** Its worker held other tasks as well: this one need not have caused the death. */
      isBeside: boolean;
    }
  | { kind: "publish"; claim: Claim }
  /** The task already has a record, so it must not run: see `recordOfSubmission`. */
  | { kind: "tidy"; claim: Claim }
  | { kind: "finish"; name: ProcessingName }
  | { kind: "foreign"; id: string };
