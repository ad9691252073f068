/**
 * The files of the tree that has the tasks. A task that waits for its result is in `processing/` as `~hold-cluster-<target>`. No
 * process owns that name, so no dead process can lose it. The result settles the task by a rename of exactly that name.
 */

import { setTimeout as wait } from "node:timers/promises";
import { encodeRecord } from "../../../codec/records.ts";
import type { DecodedTask } from "../../../codec/task-codec.ts";
import { wallSeconds } from "../../../core/clock.ts";
import { ErrInvalidTask, systemCode } from "../../../core/errors.ts";
import type { EventSubject } from "../../../core/events.ts";
import {
  CLUSTER_GATE,
  leaseOf,
  type ProcessingName,
  parseName,
  prefixOf,
  withStage,
} from "../../../core/names.ts";
import { type AttemptOutcome, decide, errorText, retryPolicyOf } from "../../../core/outcome.ts";
import type { Settings } from "../../../core/settings.ts";
import type { ResultRecord } from "../../../core/task.ts";
import { ownerSequence } from "../../../host/identity.ts";
import {
  recordClaimed,
  recordConflict,
  recordFenced,
  recordPutBack,
  recordReleased,
  recordSettled,
} from "../../../journal/attempts.ts";
import type { Telemetry } from "../../../journal/telemetry.ts";
import { type Claim, claimAt, putBack, readClaim } from "../../../mailbox/claim/claim.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";
import { newDeadLetter } from "../../../mailbox/settle/dead-letter.ts";
import { newSettlement, type Settlement, settleAll } from "../../../mailbox/settle/settle.ts";
import { clusterGate, type Dispatch, dispatchId, readHeld } from "../protocol/dispatch.ts";
import type { EndUsage, Job, Result } from "../protocol/messages.ts";
import type { HoldState, OriginTree } from "../protocol/ports.ts";
import { sentFields } from "../protocol/sent-task.ts";
import { costsOfEnd, outcomeOf, usageOf } from "./ends.ts";
import { Gathered } from "./gathered.ts";
import type { CostlyRun, OriginCosts } from "./origin-costs.ts";
import { RecentListings } from "./recent-listings.ts";

/** Longest pause before a settlement that the disk refused is tried again (ms). */
const SETTLE_AGAIN_MS_MAX = 5000;

/** A part of the name of each task that waits for its result. */
const HOLD = `~hold-${CLUSTER_GATE}`;

/** A dispatch that waits for its result. */
export interface Held {
  /** See `dispatchId`. */
  id: string;
  dispatch: Dispatch;
  target: string;
}

/** A settlement with the functions that write its journal lines. */
interface Ending {
  settlement: Settlement;
  begin: () => void;
  record: () => void;
}

export interface OriginPlace {
  trays: Trays;
  settings: Settings;
  telemetry: Telemetry;
  /** The name of the tree in the cluster. */
  tree: string;
  costs: OriginCosts;
}

export class OriginFiles implements OriginTree {
  private readonly deps: OriginPlace;
  private readonly newOwner = ownerSequence();
  private readonly listings: RecentListings;
  private readonly settling = new Gathered((endings: readonly Ending[]) =>
    this.settleTogether(endings),
  );
  private readonly runs = new WeakMap<Held, CostlyRun>();
  /** The result of the last `held`, by file name. */
  private known: ReadonlyMap<string, Held> = new Map();

  constructor(place: OriginPlace) {
    this.deps = place;
    this.listings = new RecentListings(place.trays);
  }

  /** The dispatches that wait for their results. @throws a system error when `processing/` cannot be listed */
  held(): Held[] {
    const { trays, tree } = this.deps;
    const known = new Map<string, Held>();
    for (const file of trays.storage.list(trays.processing)) {
      if (!file.includes(HOLD)) continue;
      const held = this.known.get(file) ?? heldBy(tree, file);
      if (held !== undefined) known.set(file, held);
    }
    this.known = known;
    return [...known.values()];
  }

  /**
   * The job of a held task; undefined when it is no longer held.
   * @param agentOf gives the name that the agent of a task has at the other machine
   * @throws ErrInvalidTask when the file holds no task that may run
   */
  jobOf(
    dispatch: Dispatch,
    target: string,
    agentOf: (task: DecodedTask["task"]) => string,
  ): Job | undefined {
    const decoded = this.read(this.claimOf(dispatch, target));
    if (decoded === undefined) return undefined;
    return { dispatch, target, task: sentFields(decoded.task, agentOf(decoded.task)) };
  }

  /** The run of a dispatch. */
  runOf(held: Held): CostlyRun {
    const known = this.runs.get(held);
    if (known !== undefined) return known;
    const claim = this.claimOf(held.dispatch, held.target);
    const run = { name: claim.name, agent: this.agentOf(claim) };
    this.runs.set(held, run);
    return run;
  }

  standing(dispatch: Dispatch, target: string): HoldState {
    const { storage } = this.deps.trays;
    const { listings } = this;
    try {
      // Most tasks wait, and this check costs the same however many there are.
      if (storage.look(this.claimOf(dispatch, target).path) !== undefined) return "waits";
      const find = (files: readonly string[]): HoldState | undefined => this.find(dispatch, files);
      return find(listings.of(dispatch.task)) ?? find(listings.ofAnother(dispatch.task)) ?? "over";
    } catch {
      // A tray that cannot be read proves nothing.
      return "unsure";
    }
  }

  /** @throws a system error when the disk refuses the settlement before anything has changed */
  async settle(dispatch: Dispatch, result: Result): Promise<boolean> {
    const { trays, settings } = this.deps;
    const claim = this.claimOf(dispatch, result.target);
    let decoded: DecodedTask | undefined;
    try {
      decoded = this.read(claim);
      if (decoded === undefined) return false;
    } catch (error) {
      if (!(error instanceof ErrInvalidTask)) throw error;
    }
    this.book({ name: claim.name, agent: agentIdOf(decoded) }, result);
    const outcome = outcomeOf(result.end, result.machine);
    const policy = retryPolicyOf(settings, decoded?.task);
    const decision = decide(outcome, dispatch.attempt, policy, trays.clock.random());
    if (decision.action === "retry") {
      const delayMs = decision.delayMs;
      return this.putBack(claim, outcome, delayMs, decoded?.task, usageOf(result.end));
    }
    return this.publish(claim, outcome, decoded, result);
  }

  /** Called before the settlement, so that a crash does not lose the costs of the run. */
  private book(run: CostlyRun, { machine, end }: Result): void {
    const { costs } = this.deps;
    costs.book(costs.recordsOf(run, machine, costsOfEnd(end)));
  }

  /** The file of the task is gone, but the costs so far say which agent it had. */
  bookCosts(result: Result): void {
    const { name } = this.claimOf(result.dispatch, result.target);
    this.book({ name, agent: this.deps.costs.agentOf(leaseOf(name)) ?? "none" }, result);
  }

  private agentOf(claim: Claim): string {
    try {
      return agentIdOf(this.read(claim));
    } catch (error) {
      if (!(error instanceof ErrInvalidTask)) throw error;
      return agentIdOf(undefined);
    }
  }

  private claimOf({ task, submission, attempt }: Dispatch, target: string): Claim {
    const name: ProcessingName = { id: task, submission, attempt, stage: "ready", token: "" };
    return claimAt(this.deps.trays, withStage(name, "hold", clusterGate(target)));
  }

  /** Undefined when the file has just left. */
  private read(claim: Claim): DecodedTask | undefined {
    try {
      return readClaim(this.deps.trays, claim);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Undefined when no name of this run was seen. */
  private find(
    { task, submission, attempt }: Dispatch,
    files: readonly string[],
  ): HoldState | undefined {
    const prefix = prefixOf({ id: task, submission });
    for (const file of files) {
      const name = file.startsWith(prefix) ? parseName(file) : undefined;
      if (name === undefined) continue;
      if (name.attempt !== attempt || name.stage === "ok" || name.stage === "err") return "over";
      return readHeld(this.deps.tree, name) === undefined ? "unsure" : "waits";
    }
    return undefined;
  }

  private putBack(
    claim: Claim,
    outcome: AttemptOutcome,
    delayMs: number,
    task: EndedTask,
    { duration_ms: durationMs, ...runUsage }: EndUsage,
  ): boolean {
    const { trays, telemetry } = this.deps;
    const next = putBack(trays, claim, delayMs, true);
    if (next === undefined) return false;
    recordPutBack(telemetry, this.subjectOf(claim, task), 0, {
      event: "retry_scheduled",
      error: outcome.kind === "failed" ? outcome.message : null,
      delayMs,
      notBeforeMs: trays.clock.wallMs() + delayMs,
      nextAttempt: next.attempt,
      kind: outcome.kind === "failed" ? outcome.failure : undefined,
      ...(durationMs === undefined ? {} : { effort: { duration_ms: durationMs, ...runUsage } }),
    });
    telemetry.flush();
    return true;
  }

  private async publish(
    claim: Claim,
    outcome: AttemptOutcome,
    decoded: DecodedTask | undefined,
    result: Result,
  ): Promise<boolean> {
    const { trays, telemetry } = this.deps;
    // The records name this process as owner, but the commit is still a rename of the held name.
    const own = { ...claim, name: withStage(claim.name, "w", this.newOwner()) };
    const settlement = this.settlementOf(own, outcome, decoded, result);
    const subject = this.subjectOf(own, decoded?.task);
    const takenMs = trays.clock.wallMs();
    const ending: Ending = {
      settlement,
      begin: () => {
        // The end has this lease in the journal, so the beginning must have it, too. The machine of the run is known only now.
        const start = { hasBegun: true, details: { machine: result.machine } };
        recordClaimed(telemetry, subject, takenMs, start);
      },
      record: () => this.record(settlement, takenMs, outcome, usageOf(result.end)),
    };
    for (let waitMs = 50; ; waitMs = Math.min(2 * waitMs, SETTLE_AGAIN_MS_MAX)) {
      await this.settling.add(ending);
      if (settlement.error === undefined) break;
      if (settlement.phase === "new" || settlement.phase === "staged") {
        recordReleased(telemetry, subject, takenMs);
        throw settlement.error;
      }
      // The task is committed and this process lives, so no other process would finish the steps that the disk refuses now.
      await wait(waitMs);
    }
    if (settlement.outcome === "fenced") {
      recordFenced(telemetry, subject);
      recordReleased(telemetry, subject, takenMs);
    }
    if (settlement.recordAs !== undefined) recordConflict(telemetry, subject, settlement.recordAs);
    telemetry.flush();
    return settlement.outcome !== "fenced";
  }

  /** Settles together, because many results come at once when many tasks are on their way. */
  private async settleTogether(endings: readonly Ending[]): Promise<void> {
    const { trays, telemetry } = this.deps;
    for (const { settlement, begin } of endings) if (settlement.phase === "new") begin();
    telemetry.flush();
    const records = new Map(endings.map(({ settlement, record }) => [settlement, record]));
    await settleAll(trays, [...records.keys()], (published) => {
      for (const settlement of published) records.get(settlement)?.();
      telemetry.flush();
    });
  }

  private settlementOf(
    claim: Claim,
    outcome: AttemptOutcome,
    decoded: DecodedTask | undefined,
    { machine, end }: Result,
  ): Settlement {
    const { trays } = this.deps;
    const usage = usageOf(end);
    const { duration_ms: _, ...runUsage } = usage;
    const { id, attempt } = claim.name;
    const owner = claim.name.token;
    const agentId = agentIdOf(decoded);
    if (outcome.kind === "completed" && decoded !== undefined) {
      const record: ResultRecord = {
        task_id: id,
        status: "completed",
        verdict: outcome.verdict,
        verdict_reason: outcome.verdictReason,
        output: outcome.output,
        duration_ms: usage.duration_ms ?? 0,
        completed_at: wallSeconds(trays.clock),
        attempts: attempt,
        agent_id: agentId,
        lease: leaseOf(claim.name),
        exit_code: outcome.exitCode,
        run: null,
        ...runUsage,
        ...(end.status === "completed" ? end.work : {}),
        machine,
      };
      return newSettlement(
        claim,
        "completed",
        encodeRecord(record, decoded.text),
        owner,
        decoded.task,
      );
    }
    const failure = outcome.kind === "failed" ? outcome : undefined;
    const facts = {
      error: failure === undefined ? "the file holds no task any more" : errorText(failure),
      code: failure?.code ?? "ErrInvalidTask",
      kind: failure?.failure ?? "invalid",
      agentId,
      attempts: attempt,
      lastAttemptAt: wallSeconds(trays.clock),
      exitCode: failure?.exitCode ?? null,
      signal: failure?.signal ?? null,
      canRetry: failure?.canRetry ?? false,
      usage: runUsage,
      machine,
      ...(failure?.output === undefined ? {} : { output: failure.output }),
    };
    return newDeadLetter(trays, claim, facts, decoded, owner);
  }

  private record(
    settled: Settlement,
    takenMs: number,
    outcome: AttemptOutcome,
    usage: EndUsage,
  ): void {
    const failure = outcome.kind === "failed" ? outcome : undefined;
    const { traceparent } = settled.task ?? {};
    const { duration_ms: durationMs = null, ...runUsage } = usage;
    const details = {
      isCompleted: settled.status === "completed",
      acquiredAtMs: takenMs,
      pid: process.pid,
      durationMs,
      usage: runUsage,
      error: failure?.message ?? null,
      kind: failure?.failure ?? null,
      ...(traceparent === undefined ? {} : { traceparent }),
    };
    const { telemetry } = this.deps;
    const subject = this.subjectOf(settled.claim, settled.task);
    recordSettled(telemetry, subject, details, settled.mayBeRecorded);
  }

  private subjectOf({ name }: Claim, { agent = "", group }: EndedTask = {}): EventSubject {
    const { id, attempt } = name;
    return { task_id: id, agent_id: agent, attempt, lease: leaseOf(name), group };
  }
}

/** What journal lines say of a task. */
type EndedTask = Pick<DecodedTask["task"], "agent" | "group"> | undefined;

function heldBy(tree: string, file: string): Held | undefined {
  const name = parseName(file);
  const held = name && readHeld(tree, name);
  return held && { id: dispatchId(held.dispatch), ...held };
}

function agentIdOf(decoded: DecodedTask | undefined): string {
  return decoded?.task.agent ?? "none";
}
