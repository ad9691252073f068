/** Settles as cancelled a task that no longer runs. If the disk does not let it read the task for the record, the task is given back. */
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type DecodedTask, decodeTask } from "../../codec/task-codec.ts";
import type { BatchCounts } from "../../core/batch.ts";
import { ErrInvalidTask, ErrIo, messageOf } from "../../core/errors.ts";
import {
  CLUSTER_GATE,
  leaseOf,
  type ProcessingName,
  parseRun,
  prefixOf,
  runsFolderOf,
} from "../../core/names.ts";
import { remoteRunsOf } from "../../core/saved-documents.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { loadDocument } from "../../host/documents.ts";
import { listDir } from "../../host/list-dir.ts";
import { statOf } from "../../host/regular-file.ts";
import { recordConflict, recordSettled } from "../../journal/attempts.ts";
import { type Claim, putBack, readBytes } from "../../mailbox/claim/claim.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { gatherCounts } from "../../mailbox/recover/reclaim.ts";
import { type FailureFacts, newDeadLetter } from "../../mailbox/settle/dead-letter.ts";
import { settleAll } from "../../mailbox/settle/settle.ts";
import type { CommandContext } from "./command-context.ts";

/** Longest pause before a settlement that the disk refused is tried again (ms). */
const SETTLE_AGAIN_MS_MAX = 5000;

const READ_TRIES_MAX = 5;

/**
 * Settles as cancelled a task that no longer runs.
 * @param from whether it ran, or waited in `processing/` or in the inbox
 * @param before its name in `processing/` before it was taken for this
 */
export async function settleAsCancelled(
  context: CommandContext,
  claim: Claim,
  from: "run" | "ready" | "inbox",
  before: ProcessingName | undefined,
): Promise<void> {
  const { env, queue } = context;
  const { trays, telemetry } = env;
  const { id } = claim.name;
  queue.backlog.remove(id);
  const isBatch = claim.name.isBatch === true;
  const decoded = isBatch ? undefined : await readForSure(trays, claim);
  // Results of finished lines are kept: a retry continues from there.
  const batch = isBatch ? await gatherForSure(trays, claim) : undefined;
  const { attempt } = claim.name;
  const group = decoded?.task.group;
  const subject = { task_id: id, agent_id: "none", attempt, lease: leaseOf(claim.name), group };
  const facts = {
    error: "cancelled before it ran",
    code: "ErrCancelled",
    kind: "cancelled" as const,
    agentId: subject.agent_id,
    attempts: attempt - 1,
    lastAttemptAt: 0,
    batch,
    ...(from === "inbox" ? {} : factsOfRuns(env.tree.runs, claim, from === "run")),
    ...(before === undefined ? {} : factsElsewhere(env.tree, before)),
  };
  const settlement = newDeadLetter(trays, claim, facts, decoded);
  for (let waitMs = 50; ; waitMs = Math.min(2 * waitMs, SETTLE_AGAIN_MS_MAX)) {
    await settleAll(trays, [settlement], ([settled]) => {
      if (settled === undefined) return;
      const details = {
        isCompleted: false,
        acquiredAtMs: 0,
        pid: process.pid,
        durationMs: null,
        error: facts.error,
        kind: "cancelled",
      };
      recordSettled(telemetry, subject, details, settled.mayBeRecorded);
      telemetry.flush();
    });
    if (settlement.error === undefined) break;
    // We hold the lease and live, so no other process would finish a step that the disk refuses now.
    await wait(waitMs);
  }
  if (settlement.recordAs !== undefined) {
    recordConflict(telemetry, subject, settlement.recordAs);
    telemetry.flush();
  }
  queue.accepted.delete(id);
  env.facts.emit("processing:changed");
  env.facts.emit("task:failed", id);
}

/** Facts of the runs of an accepted task. If a run was given back, the next run gets its number. */
function factsOfRuns(runsDir: string, { name }: Claim, isRunning: boolean): Partial<FailureFacts> {
  const last = findLastRun(runsDir, name);
  const before = last?.attempt ?? name.attempt - 1;
  if (!isRunning && before === 0) return {};
  return {
    error: isRunning ? "cancelled while it ran" : "cancelled between two runs",
    attempts: isRunning ? name.attempt : before,
    ...(last === undefined || (isRunning && last.attempt !== name.attempt)
      ? {}
      : { run: last.dir, lastAttemptAt: Math.floor(last.mtimeMs / 1000) }),
  };
}

/** Facts of a run that another machine had begun. */
function factsElsewhere(
  { remoteRuns }: Pick<StateTree, "remoteRuns">,
  name: ProcessingName,
): Partial<FailureFacts> {
  if (name.stage !== "hold" || !name.token.startsWith(CLUSTER_GATE)) return {};
  const runs = loadDocument(remoteRuns, remoteRunsOf)?.runs ?? [];
  const lease = leaseOf(name);
  const run = runs.find((one) => one.lease === lease);
  if (run === undefined || typeof run.began_ms !== "number") return {};
  const { machine, began_ms: beganMs } = run;
  return {
    error: `cancelled while it ran at ${machine}`,
    attempts: name.attempt,
    lastAttemptAt: Math.floor(beganMs / 1000),
    machine,
  };
}

function findLastRun(
  runsDir: string,
  name: ProcessingName,
): { dir: string; attempt: number; mtimeMs: number } | undefined {
  const prefix = prefixOf(name);
  const folder = runsFolderOf(name.submission);
  return listDir(join(runsDir, folder))
    .filter((dir) => dir.startsWith(prefix))
    .flatMap((dir) => {
      const attempt = parseRun(dir)?.attempt;
      const stats = statOf(join(runsDir, folder, dir));
      return attempt === undefined || stats === undefined
        ? []
        : [{ dir: `${folder}${dir}`, attempt, mtimeMs: stats.mtimeMs }];
    })
    .sort((a, b) => a.attempt - b.attempt || a.mtimeMs - b.mtimeMs)
    .at(-1);
}

/** @throws a system error; the batch then waits again, with all results of its lines */
async function gatherForSure(trays: Trays, claim: Claim): Promise<BatchCounts> {
  try {
    return await gatherCounts(trays, claim.name);
  } catch (error) {
    putBack(trays, claim, 0, false);
    throw error;
  }
}

/**
 * The task for the record; undefined when the file holds no task.
 * @throws ErrIo when the disk cannot be read: the task then waits again, because its bytes would be lost with the claim
 */
async function readForSure(trays: Trays, claim: Claim): Promise<DecodedTask | undefined> {
  for (let tries = 1; ; tries++) {
    try {
      return decodeTask(readBytes(trays, claim), claim.name.id);
    } catch (error) {
      if (error instanceof ErrInvalidTask) return undefined;
      if (tries === READ_TRIES_MAX) {
        putBack(trays, claim, 0, false);
        throw new ErrIo(`cannot read ${claim.name.id}: ${messageOf(error)}`, {
          id: claim.name.id,
          path: claim.path,
          cause: error,
          hint: "it waits as before; cancel it again when the disk can be read",
        });
      }
      await wait(50);
    }
  }
}
