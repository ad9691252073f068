/** Dead letters: the settlement of a task that failed for good. Its record holds the task, or says where its bytes are. */
import { encodeRecord } from "../../codec/records.ts";
import type { DecodedTask } from "../../codec/task-codec.ts";
import type { BatchCounts } from "../../core/batch.ts";
import { wallSeconds } from "../../core/clock.ts";
import { compact } from "../../core/compact.ts";
import type { Skip } from "../../core/dependencies.ts";
import type { KeptWork } from "../../core/landing.ts";
import { leaseOf } from "../../core/names.ts";
import type { RunUsage } from "../../core/run-usage.ts";
import type { ErrorRecord, FailureKind } from "../../core/task.ts";
import type { Claim } from "../claim/claim.ts";
import { randomToken } from "../files/random.ts";
import type { Trays } from "../files/trays.ts";
import { newSettlement, type Settlement } from "./settle.ts";

/** How the task failed. */
export interface FailureFacts {
  error: string;
  code: string;
  kind: FailureKind;
  agentId: string;
  /** Other agents that had the task before. */
  agents_before?: string[];
  /** How many runs were started. */
  attempts: number;
  /** Unix seconds; 0 when no run was started. */
  lastAttemptAt: number;
  exitCode?: number | null;
  signal?: string | null;
  /** Name of the run's directory. */
  run?: string | null;
  /** The resources that its last run used. */
  usage?: RunUsage;
  /** Where its work is that its branch lacks. */
  kept?: KeptWork;
  /** What the program reported although it failed. */
  output?: unknown;
  /** For a batch: how many of its lines completed and failed. */
  batch?: BatchCounts | undefined;
  /** For a skipped task. */
  skip?: Skip;
  /** For a task that did not run because another one has its key: the id of that one. */
  of?: string;
  /** The other machine that ran the last attempt. */
  machine?: string;
  /** False when another run cannot help: see `Failed`. */
  canRetry?: boolean;
}

/**
 * @param task undefined when the claimed file holds no task that may run, because it was replaced after it was accepted: the file
 *   itself is then kept in `failed/`, because nothing else has its bytes
 * @param settler owner string of the process that settles
 */
export function newDeadLetter(
  trays: Trays,
  claim: Claim,
  facts: FailureFacts,
  task: DecodedTask | undefined,
  settler = claim.name.token,
): Settlement {
  const { id } = claim.name;
  // A batch is always kept beside its record.
  const isLost = task === undefined && claim.name.isBatch !== true;
  const keptAs = isLost ? `failed/${id}~${randomToken(8)}.json` : undefined;
  const record: ErrorRecord = {
    task_id: id,
    status: "failed",
    error:
      keptAs === undefined ? facts.error : `${facts.error}; the claimed file is kept as ${keptAs}`,
    attempts: facts.attempts,
    last_attempt_at: facts.lastAttemptAt,
    failed_at: wallSeconds(trays.clock),
    code: facts.code,
    kind: facts.kind,
    agent_id: facts.agentId,
    ...compact({ agents_before: facts.agents_before }),
    lease: leaseOf(claim.name),
    exit_code: facts.exitCode ?? null,
    signal: facts.signal ?? null,
    run: facts.run ?? null,
    ...facts.usage,
    ...facts.kept,
    ...(facts.batch === undefined ? {} : { batch: facts.batch }),
    ...facts.skip,
    ...(facts.of === undefined ? {} : { of: facts.of }),
    ...(facts.machine === undefined ? {} : { machine: facts.machine }),
    ...(facts.canRetry === false ? { can_retry: false } : {}),
    ...(facts.output === undefined ? {} : { output: facts.output }),
    ...(keptAs === undefined ? {} : { file: keptAs }),
  };
  const bytes = encodeRecord(record, task?.text);
  const settlement = newSettlement(claim, "failed", bytes, settler, task?.task);
  return keptAs === undefined ? settlement : { ...settlement, keptAs };
}
