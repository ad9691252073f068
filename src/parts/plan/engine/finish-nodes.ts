/**
 * Writes the result of a node's task: outputs, evidence, escalation, and all edits of the plan as one replacement of the
 * roadmap. A crash before the replacement leaves a node in progress with a settled task. The next start finds it and repeats this.
 */
import type { Checkpoint } from "../../../core/envelope.ts";
import { ErrLeaseLost, messageOf, systemCode } from "../../../core/errors.ts";
import type { EventSubject, LifecycleEvent } from "../../../core/events.ts";
import { foldId, leaseOfLine, parseLease } from "../../../core/names.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import { isNodeTask } from "../../../core/roadmap.ts";
import { hasRecord } from "../../../journal/lookup.ts";
import { findLive } from "../../../mailbox/find/locate.ts";
import { readSettled, type SettledRecord } from "../../../mailbox/find/settled-record.ts";
import { type FollowUp, followUp, type SettledRun } from "../rules/follow-up.ts";
import { inputNodesOf } from "../rules/node-task.ts";
import { finishedContainers } from "../rules/progress.ts";
import { readEvidence, writeEvidence } from "../run/evidence.ts";
import { envelopeOfRecord, writeOutputsOfRecord } from "../run/run-outputs.ts";
import type { EngineParts } from "./engine-parts.ts";
import type { NodeLauncher } from "./launch-nodes.ts";

/** The last journal line of a run may be late, for example after a full disk. The evidence waits for it this long (ms). */
const EVENTS_WAIT_MS = 2000;
/** Pauses before a task that is still settling is checked again, and before a failed write is tried again (ms). */
const LOOK_AGAIN_MS = 5;
const TRY_AGAIN_MS = 250;

interface SettledNode {
  sinceMs: number;
  /** Do nothing before this time (both are monotonic ms). */
  dueMs: number;
  /** What follows from it is being written. */
  isApplying: boolean;
  /** The last try to write that has failed. */
  hasFailed: boolean;
}

export class NodeFinisher {
  /** Nodes whose task was reported as settled, by folded id. */
  private readonly settled = new Map<string, SettledNode>();

  constructor(
    private readonly deps: EngineParts,
    private readonly launcher: NodeLauncher,
  ) {}

  /** When the next settled node is due (monotonic ms). */
  get nextMs(): number {
    const idle = [...this.settled.values()].filter((one) => !one.isApplying);
    return Math.min(Number.POSITIVE_INFINITY, ...idle.map(({ dueMs }) => dueMs));
  }

  get isBusy(): boolean {
    return this.settled.size > 0;
  }

  /** False when only nodes are left whose changes could not be written. The next start finds them again. */
  get hasUntried(): boolean {
    return [...this.settled.values()].some((one) => one.isApplying || !one.hasFailed);
  }

  has(id: string): boolean {
    return this.settled.has(foldId(id));
  }

  noteSettled(id: string): void {
    const nowMs = this.deps.env.trays.clock.monotonicMs();
    const fresh = { sinceMs: nowMs, dueMs: nowMs, isApplying: false, hasFailed: false };
    if (!this.settled.has(foldId(id))) this.settled.set(foldId(id), fresh);
  }

  work(): void {
    const nowMs = this.deps.env.trays.clock.monotonicMs();
    for (const [key, settled] of this.settled)
      if (settled.dueMs <= nowMs && !settled.isApplying) void this.apply(key, settled);
  }

  /** Every step may be repeated. The last one replaces the roadmap in one write. */
  private async apply(key: string, settled: SettledNode): Promise<void> {
    const id = this.deps.active.idOf(key);
    let againMs = TRY_AGAIN_MS;
    try {
      const record = id === undefined ? undefined : this.settledRecord(id);
      if (id === undefined || record === undefined) {
        this.settled.delete(key);
        return;
      }
      const { isAsked } = this.deps.active.events;
      if (record === "settling" || (isAsked && !this.areEventsThere(settled, id, record))) {
        againMs = LOOK_AGAIN_MS;
        return;
      }
      settled.isApplying = true;
      await this.deps.active.events.load(this.deps.env.tree.events);
      await this.applyRecord(id, record);
      this.settled.delete(key);
      this.deps.active.leave(id);
    } catch (error) {
      settled.hasFailed = true;
      this.deps.env.alerts.report(
        `apply:${systemCode(error)}`,
        `cannot write the changes that follow from ${id}: ${messageOf(error)}; trying again`,
      );
      // `settled` still holds the node, so all steps are repeated.
    } finally {
      settled.dueMs = this.deps.env.trays.clock.monotonicMs() + againMs;
      if (settled.isApplying) this.deps.env.wake();
      settled.isApplying = false;
    }
  }

  /** The settled record; "settling" while its marker exists, because journal lines may be missing until the marker is removed. */
  private settledRecord(id: string): SettledRecord["record"] | "settling" | undefined {
    const { trays } = this.deps.env;
    const settled = readSettled(trays, id);
    if (settled === undefined) return undefined;
    const live = findLive(trays, id).find(({ name }) => name !== undefined && name.stage !== "bad");
    if (live === undefined) return settled.record;
    return live.name?.stage === "ok" || live.name?.stage === "err" ? "settling" : undefined;
  }

  private areEventsThere(
    { sinceMs }: SettledNode,
    id: string,
    record: SettledRecord["record"],
  ): boolean {
    this.deps.readJournal();
    const isThere = this.deps.active.events
      .of(id)
      .some((event) => event.event === "completed" && leaseOfLine(event) === record.lease);
    return isThere || this.deps.env.trays.clock.monotonicMs() - sinceMs > EVENTS_WAIT_MS;
  }

  private async applyRecord(id: string, record: SettledRecord["record"]): Promise<void> {
    const { store } = this.deps;
    if (!isNodeTask(record.task, id)) {
      this.launcher.noteForeign(id);
      if (store.find(id)?.status === "in_progress") this.deps.store.setStatus(id, "open");
      return;
    }
    const node = store.find(id);
    const { run, checkpoint } = readRun(record);
    await this.writeOutputs(record);
    if (checkpoint !== undefined)
      await this.deps.questions.ask(id, checkpoint, {
        run: record.run,
        lease: record.lease,
        attempt: record.attempts,
        by: record.agent_id,
      });
    if (node === undefined) return;
    const follow = followUp(node, run, store);
    this.keepEvidence(node, record, follow, this.deps.active.events.of(id));
    this.tell(id, record, follow);
    store.edit(follow.edits, id);
    const finished = finishedContainers(store.nodes).filter((each) => store.saysStatus(each));
    store.edit(finished.map((each) => ({ kind: "status", id: each.id, status: "done" })));
  }

  /**
   * Fails a node when a person's save makes its follow-up edits impossible. None of them is made, because half of them would
   * make a different plan. A node whose result asks for impossible changes fails in the same way.
   */
  fail(id: string, why: string): void {
    const { store } = this.deps;
    const { trays, tree } = this.deps.env;
    const node = store.find(id);
    const record = readSettled(trays, id)?.record;
    const error = `the changes that follow from it are no longer possible: ${why}`;
    if (node?.status !== "in_progress" || record === undefined) {
      this.deps.env.alerts.report(
        `end:${id}`,
        `the end of ${id} does not change the plan: ${error}`,
      );
      return;
    }
    const run = { ended: "failed", kind: "invalid_result", error } as const;
    const find = (other: string): RoadmapNode | undefined => store.find(other);
    const follow = followUp(node, run, { find, explainRefused: () => undefined });
    try {
      const { events } = readEvidence(tree.evidence, id);
      this.keepEvidence(node, record, { ...follow, error }, events);
      store.edit(follow.edits, id);
      this.tell(id, record, follow);
    } catch (fault) {
      this.deps.env.alerts.report(
        `end:${id}`,
        `cannot escalate ${id}, which failed: ${messageOf(fault)}`,
      );
      store.setStatus(id, "failed");
    }
  }

  private keepEvidence(
    node: RoadmapNode,
    record: SettledRecord["record"],
    { status = node.status, error }: FollowUp,
    events: readonly LifecycleEvent[],
  ): void {
    const { tree, settings } = this.deps.env;
    const why = error === undefined ? {} : { error };
    const facts = { node, status, record, events, runsDir: tree.runs, ...why };
    writeEvidence(tree.evidence, facts, settings.durability === "power");
  }

  /** Writes the outputs. The worker has written the same ones already, unless it died first. A task that never ran has no outputs. */
  private async writeOutputs(record: SettledRecord["record"]): Promise<void> {
    if (parseLease(record.lease) === undefined || record.attempts === 0) return;
    try {
      await writeOutputsOfRecord(this.deps.kv, record, this.deps.env.tree.runs);
    } catch (error) {
      // A newer run has written its outputs already.
      if (!(error instanceof ErrLeaseLost)) throw error;
    }
  }

  private tell(id: string, record: SettledRecord["record"], follow: FollowUp): void {
    const { telemetry, tree } = this.deps.env;
    const subject: EventSubject = {
      task_id: id,
      agent_id: record.agent_id,
      attempt: record.attempts,
      lease: record.lease,
    };
    const say = (event: "escalated" | "blocked", details: Record<string, unknown>): void => {
      if (this.deps.active.isInherited(id) && hasRecord(tree.events, record.lease, event)) return;
      telemetry.event(event, subject, details);
    };
    if (follow.escalation !== undefined)
      say("escalated", { to: follow.escalation.id, subject: follow.escalation.subject });
    if (follow.status === "needs_human") say("blocked", { reason: "needs_human" });
    telemetry.flush();
    for (const { kind, message } of follow.alerts) this.deps.env.alerts.alert(kind, message);
  }
}

/**
 * Reads a settled record for the plan, with the checkpoint of a run that ended with a question. The worker has checked the
 * envelope of its run. If another program wrote the record and its envelope is not valid, the envelope counts as empty.
 */
function readRun(record: SettledRecord["record"]): { run: SettledRun; checkpoint?: Checkpoint } {
  if (record.status === "failed") {
    const { kind, error } = record;
    return { run: { ended: "failed", kind, error } };
  }
  const { next, checkpoint: asked } = envelopeOfRecord(record);
  if (record.verdict !== "checkpoint")
    return { run: { ended: "success", next, shown: inputNodesOf(record.task) } };
  const checkpoint = asked ?? { question: "(no question)", context: "", options: [] };
  return { run: { ended: "checkpoint", next, question: checkpoint.question }, checkpoint };
}
