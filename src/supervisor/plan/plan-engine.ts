/**
 * Drives the plan: launches what may run as tasks of the mailbox, and carries what became of them back into the plan.
 * The order survives a crash: a node is `in_progress` on disk before its task is submitted, and all that follows from a
 * settled task is one replacement of the roadmap. So a node in progress without a task was never launched, and one with a
 * settled task waits for what follows from it; both are found again at the start.
 */
import { join } from "node:path";
import { wallSeconds } from "../../core/clock.ts";
import { ErrLeaseLost, messageOf, systemCode } from "../../core/errors.ts";
import type { EventSubject } from "../../core/events.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { resolveAgent } from "../../core/matching.ts";
import { foldId, parseLease, parseName, parsePlainClaim } from "../../core/names.ts";
import { isContainer, type RoadmapNode } from "../../core/roadmap.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { hasRecord } from "../../journal/lookup.ts";
import type { Telemetry } from "../../journal/telemetry.ts";
import { archive, readSettled, type SettledRecord } from "../../mailbox/archive.ts";
import { submitAll } from "../../mailbox/submit.ts";
import type { Trays } from "../../mailbox/trays.ts";
import { withdraw } from "../../mailbox/withdraw.ts";
import { writeEvidence } from "../../roadmap/evidence.ts";
import { type FollowUp, followUp } from "../../roadmap/follow-up.ts";
import type { KvStore } from "../../roadmap/kv.ts";
import { Planner } from "../../roadmap/next.ts";
import { isNodeTask, taskOfNode } from "../../roadmap/node-task.ts";
import { countStatuses, finishedContainers, type StatusCounts } from "../../roadmap/progress.ts";
import { outputsOfRecord, writeRunOutputs } from "../../roadmap/run-outputs.ts";
import { CheckpointDesk } from "./checkpoint-desk.ts";
import { NodeEvents } from "./node-events.ts";
import type { PlanStore } from "./plan-store.ts";
import { readRun } from "./settled-run.ts";

export interface PlanParts {
  tree: StateTree;
  settings: Settings;
  trays: Trays;
  telemetry: Telemetry;
  store: PlanStore;
  kv: KvStore;
  /** Brings what the journal says up to date: calls `addLine`. */
  readJournal(): void;
  alert(kind: string, message: string): void;
  report(key: string, message: string): void;
  hint(file: string): void;
  wake(): void;
}

/** What the supervisor allows at this tick. */
export interface LaunchGate {
  /** Nodes that may be in flight at once, beside those that wait for their retry. */
  slots: number;
  /** New launches at most. */
  launchesMax: number;
  onlyPlanners: boolean;
}

/** The planner that `replan` opens again. */
const PLANNER_ID = "plan-000";
/** The journal may be late with the last line of a run when the disk was full; then evidence goes without it (ms). */
const EVENTS_WAIT_MS = 2000;
const LOOK_AGAIN_MS = 5;
const SUBMIT_AGAIN_MS = 250;
const FLUSH_TRIES_MAX = 200;

export class PlanEngine {
  private readonly p: PlanParts;
  private readonly events = new NodeEvents();
  private readonly desk: CheckpointDesk;
  private readonly chooser = new Planner();
  /** Ids (folded) whose task is in the mailbox and has not settled, as far as we know. */
  private readonly inFlight = new Map<string, string>();
  /** In progress on disk as soon as the plan is flushed; their tasks come next. */
  private readonly toSubmit = new Set<string>();
  private readonly submitting = new Set<string>();
  private readonly archiving = new Set<string>();
  /** Settled, or said to be: what follows is to be done. With the time since when (monotonic ms). */
  private readonly settled = new Map<string, number>();
  private readonly applying = new Set<string>();
  private readonly absentOnce = new Set<string>();
  /** Whose follow-up a dead supervisor may have begun. */
  private readonly inherited = new Set<string>();
  /** With `--once`: what this pass may launch. */
  private pass: Set<string> | undefined;
  private ready: RoadmapNode[] | undefined;
  /** Ids that a task which is not the plan's own has taken, as of the last survey. */
  private readonly foreign = new Set<string>();
  private readonly unselected = new Set<string>();
  private submitAtMs = 0;
  isStarted = false;

  readonly started: Promise<void>;
  private tellStarted: () => void = () => {};

  constructor(parts: PlanParts) {
    this.p = parts;
    this.started = new Promise((resolve) => {
      this.tellStarted = resolve;
    });
    this.desk = new CheckpointDesk(parts.kv, parts.trays.clock);
  }

  /**
   * Loads the plan and finds out what a supervisor before us left. Never rejects: without a plan the mailbox goes on.
   * @param isOnePass only what is ready now may ever be launched
   */
  async start(isOnePass: boolean): Promise<void> {
    try {
      await this.p.store.start();
      await this.takeOver();
      if (isOnePass) this.pass = new Set(this.launchable().map((node) => node.id));
    } catch (error) {
      this.p.report("roadmap:start", `cannot load the roadmap: ${messageOf(error)}`);
    }
    this.isStarted = true;
    this.tellStarted();
  }

  private async takeOver(): Promise<void> {
    this.adoptRunning();
    await this.events.load(this.p.tree.events);
    this.survey(this.p.trays.storage.list(this.p.trays.processing));
  }

  /** Why the roadmap on disk cannot be used, when it cannot. */
  get problem(): string | undefined {
    const [first, ...more] = this.p.store.problems;
    if (first === undefined) return undefined;
    const others = more.length === 0 ? "" : ` (and ${more.length} more)`;
    return `roadmap.yaml:${first.line}:${first.col}: ${first.message}${others}`;
  }

  /** Tasks that are on their way to be selected. */
  get unselectedCount(): number {
    return this.unselected.size;
  }

  summary(): { roadmap?: StatusCounts; roadmapProblem?: string } {
    const roadmap = this.counts();
    const { problem } = this;
    return {
      ...(roadmap === undefined ? {} : { roadmap }),
      ...(problem === undefined ? {} : { roadmapProblem: problem }),
    };
  }

  // ── what the supervisor tells ───────────────────────────────────────────────────────────────────────────────────

  addLine(line: string): void {
    this.events.addLine(line);
  }

  /** A task was selected to run: also one that a person retried, or that came back. */
  noteSelected(id: string): void {
    const node = this.p.store.find(id);
    if (node === undefined || node.id !== id || isContainer(node)) return;
    this.unselected.delete(id);
    this.inFlight.set(foldId(id), id);
    this.events.track(id);
    if (node.status === "in_progress") return;
    // Blocked, done: a person's word about a node whose task runs all the same stands.
    if (node.status === "open" || node.status === "failed") this.setStatus(id, "in_progress");
  }

  noteSettled(id: string): void {
    if (!this.inFlight.has(foldId(id))) return;
    if (!this.settled.has(foldId(id))) this.settled.set(foldId(id), this.nowMs());
  }

  /** Whether the mailbox holds, or is about to hold, the node's task. */
  isLive(id: string): boolean {
    return this.inFlight.has(foldId(id));
  }

  isNode(id: string): boolean {
    const node = this.p.store.find(id);
    return node !== undefined && !isContainer(node);
  }

  isOpen(id: string): boolean {
    return this.p.store.find(id)?.status === "open";
  }

  /** For tasks that depend on roadmap items; undefined when the plan does not know the id. */
  isDone(id: string): boolean | undefined {
    const node = this.p.store.find(id);
    if (node === undefined) return undefined;
    if (node.status === "done") return true;
    return isContainer(node) && finishedContainers(this.nodes()).some((one) => one.id === node.id);
  }

  /** Another plan is in force. */
  onAdopted(): void {
    this.ready = undefined;
    this.foreign.clear();
    this.adoptRunning();
  }

  /** Nodes that are said to be in progress, and are not as far as we know: the next survey tells what is true. */
  private adoptRunning(): void {
    for (const node of this.nodes()) {
      const id = foldId(node.id);
      if (node.status !== "in_progress" || isContainer(node) || this.inFlight.has(id)) continue;
      this.inFlight.set(id, node.id);
      this.inherited.add(id);
      this.events.trackBegun(node.id);
    }
  }

  /** Compares with a listing of `processing/`: what settled unnoticed, what vanished. */
  survey(files: readonly string[]): void {
    const { trays } = this.p;
    this.foreign.clear();
    const live = new Set<string>();
    for (const file of files) {
      const id = parseName(file)?.id ?? parsePlainClaim(file);
      if (id !== undefined) live.add(foldId(id));
    }
    for (const [key, id] of this.inFlight) {
      const isKnown =
        live.has(key) ||
        this.toSubmit.has(id) ||
        this.submitting.has(id) ||
        this.settled.has(key) ||
        this.applying.has(key);
      if (isKnown || trays.storage.look(join(trays.inbox, `${id}.json`)) !== undefined) {
        this.absentOnce.delete(key);
        continue;
      }
      if (readSettled(trays, id) !== undefined) this.settled.set(key, this.nowMs());
      // One listing may miss a name that is being renamed; two in a row hardly do.
      else if (!this.absentOnce.has(key)) this.absentOnce.add(key);
      else this.vanished(key, id);
    }
  }

  private vanished(key: string, id: string): void {
    this.absentOnce.delete(key);
    this.leave(key, id);
    // Never launched by a supervisor that died, or taken out of the mailbox by somebody.
    if (this.p.store.find(id)?.status === "in_progress") this.setStatus(id, "open");
  }

  // ── the tick ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** @param gate what may be launched; undefined = nothing */
  work(gate: LaunchGate | undefined): void {
    const { store } = this.p;
    store.look(this.nowMs());
    if (store.doc === undefined) return;
    for (const key of this.settled.keys()) if (!this.applying.has(key)) void this.apply(key);
    this.answerInTime();
    if (gate !== undefined) this.launch(gate);
    if (store.flush()) this.submitDue();
  }

  /** Monotonic ms at which there is something to do by itself. */
  nextMs(): number {
    const soon = this.nowMs() + LOOK_AGAIN_MS;
    if (this.settled.size > 0 || this.p.store.hasPending) return soon;
    return Math.min(
      this.toSubmit.size > 0 ? Math.max(soon, this.submitAtMs) : Number.POSITIVE_INFINITY,
      this.nowMs() + (this.desk.nextInMs() ?? Number.POSITIVE_INFINITY),
    );
  }

  /** Nothing is under way and nothing could be launched. */
  isIdle(onlyPlanners: boolean): boolean {
    return (
      this.inFlight.size === 0 &&
      !this.isApplying() &&
      !this.canLaunch(onlyPlanners) &&
      this.desk.nextInMs() === undefined
    );
  }

  /** What settled is being carried into the plan, or is about to be launched. */
  isApplying(): boolean {
    const { settled, applying, archiving, toSubmit, submitting, unselected } = this;
    const sets = [settled, applying, archiving, toSubmit, submitting, unselected];
    return this.p.store.hasPending || sets.some((set) => set.size > 0);
  }

  canLaunch(onlyPlanners: boolean): boolean {
    return this.launchable().some((node) => !onlyPlanners || node.type === "plan");
  }

  /** Carries over what settled last. */
  async finish(limitMs: number): Promise<void> {
    const untilMs = this.nowMs() + limitMs;
    this.survey(this.p.trays.storage.list(this.p.trays.processing));
    while (this.nowMs() < untilMs) {
      this.work(undefined);
      const isOpen = this.settled.size + this.applying.size > 0 || this.p.store.hasPending;
      if (!isOpen) break;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
    try {
      await this.p.store.close();
    } catch (error) {
      this.p.report("roadmap:close", `the last look at the roadmap failed: ${messageOf(error)}`);
    }
    this.p.kv.close();
  }

  /** Whether there is a plan: somebody may save it at any moment. */
  get isInForce(): boolean {
    return this.p.store.doc !== undefined;
  }

  counts(): StatusCounts | undefined {
    const { doc } = this.p.store;
    return doc === undefined ? undefined : countStatuses(doc.nodes);
  }

  /** What would be launched, best first. */
  wouldRun(): string[] {
    return this.launchable().map((node) => node.id);
  }

  // ── launching ───────────────────────────────────────────────────────────────────────────────────────────────────

  private launch(gate: LaunchGate): void {
    let room = Math.min(gate.slots - this.inFlight.size, gate.launchesMax);
    if (room <= 0) return;
    for (const node of this.launchable()) {
      if (room <= 0) break;
      if (gate.onlyPlanners && node.type !== "plan") continue;
      if (this.archiving.has(node.id)) continue;
      if (!this.isFree(node)) continue;
      room--;
      this.inFlight.set(foldId(node.id), node.id);
      this.events.track(node.id);
      this.unselected.add(node.id);
      this.setStatus(node.id, "in_progress");
      this.toSubmit.add(node.id);
    }
  }

  /** Best first; with `--once` only what could run when the pass began. */
  private launchable(): RoadmapNode[] {
    this.ready ??= this.chooser.next(this.nodes(), {
      matchAgent: (node) => resolveAgent(node, this.p.settings.agents),
    }).ready;
    return this.ready.filter(
      (node) =>
        !this.inFlight.has(foldId(node.id)) &&
        !this.foreign.has(node.id) &&
        this.pass?.has(node.id) !== false,
    );
  }

  /** The id is free in the mailbox. The record of its last run moves to the evidence first. */
  private isFree(node: RoadmapNode): boolean {
    const { trays, tree } = this.p;
    const live = this.liveTask(node.id);
    if (live !== undefined) {
      // Ours: a supervisor before us launched it, and an old copy of the file has hidden that.
      if (live === "own") this.noteSelected(node.id);
      else if (live === "foreign") this.noteForeign(node.id);
      return false;
    }
    const settled = readSettled(trays, node.id);
    if (settled === undefined) return true;
    if (!isNodeTask(settled.record.task, node.id)) {
      this.noteForeign(node.id);
      return false;
    }
    this.archiving.add(node.id);
    const submission = parseLease(settled.record.lease)?.submission ?? "none";
    const target = join(tree.evidence, node.id, "earlier", submission, "record.json");
    archive(trays, settled.path, target)
      .catch((error: unknown) =>
        this.p.report(
          `archive:${systemCode(error)}`,
          `cannot move the last record of ${node.id} to its evidence: ${messageOf(error)}`,
        ),
      )
      .finally(() => {
        this.archiving.delete(node.id);
        this.p.wake();
      });
    return false;
  }

  /** Whose task of this id is in the inbox or in `processing/`; "unsure": it is on the move. Undefined: there is none. */
  private liveTask(id: string): "own" | "foreign" | "unsure" | undefined {
    const { trays } = this.p;
    const waiting = join(trays.inbox, `${id}.json`);
    const paths = trays.storage.look(waiting) === undefined ? [] : [waiting];
    for (const file of trays.storage.list(trays.processing)) {
      const live = parseName(file)?.id ?? parsePlainClaim(file);
      if (live !== undefined && foldId(live) === foldId(id))
        paths.push(join(trays.processing, file));
    }
    for (const path of paths) {
      try {
        const { bytes } = trays.storage.read(path, TASK_BYTES_MAX);
        if (bytes !== undefined)
          return isNodeTask(JSON.parse(bytes.toString("utf8")), id) ? "own" : "foreign";
      } catch {
        // Moved on meanwhile, or not to be read: the next look tells.
      }
    }
    return paths.length === 0 ? undefined : "unsure";
  }

  /** Somebody else's task has this id: the node waits until it is gone. */
  private noteForeign(id: string): void {
    const why = `${id} cannot run: a task of this id that is not the plan's own is in the mailbox`;
    this.foreign.add(id);
    this.p.report(`foreign:${id}`, why);
  }

  private submitDue(): void {
    const { trays, settings } = this.p;
    if (this.toSubmit.size === 0 || this.nowMs() < this.submitAtMs) return;
    const submissions: { id: string; bytes: Buffer }[] = [];
    for (const id of this.toSubmit) {
      this.toSubmit.delete(id);
      const node = this.p.store.find(id);
      if (node === undefined || node.status !== "in_progress") {
        this.leave(foldId(id), id);
        continue;
      }
      const agent = resolveAgent(node, settings.agents).agent?.name ?? "none";
      const answers = this.desk.answersOf(id);
      const task = taskOfNode(node, agent, wallSeconds(trays.clock), answers);
      submissions.push({ id, bytes: Buffer.from(`${JSON.stringify(task)}\n`, "utf8") });
    }
    for (const { id } of submissions) this.submitting.add(id);
    submitAll(trays, submissions).then(
      (outcomes) => {
        for (const outcome of outcomes) {
          this.submitting.delete(outcome.id);
          if (outcome.outcome !== "refused") this.p.hint(`${outcome.id}.json`);
          else this.submitRefused(outcome.id, outcome.error);
        }
        this.p.wake();
      },
      (error: unknown) => {
        for (const { id } of submissions) {
          this.submitting.delete(id);
          this.submitRefused(id, error);
        }
      },
    );
  }

  private submitRefused(id: string, error: unknown): void {
    const code = systemCode(error);
    this.p.report(`submit:${code}`, `cannot launch ${id}: ${messageOf(error)}`);
    if (code === "ErrIo") {
      this.toSubmit.add(id);
      this.submitAtMs = this.nowMs() + SUBMIT_AGAIN_MS;
      return;
    }
    this.leave(foldId(id), id);
    // Too large, or somebody else's task was faster: a person must look.
    this.setStatus(id, code === "ErrTaskExists" ? "open" : "blocked");
    if (code === "ErrTaskExists") this.noteForeign(id);
  }

  // ── what became of it ───────────────────────────────────────────────────────────────────────────────────────────

  /** From a settled task to what follows. Everything but the last step may be repeated; the last is one replacement. */
  private async apply(key: string): Promise<void> {
    const id = this.inFlight.get(key);
    const record = id === undefined ? undefined : this.settledRecord(id);
    if (id === undefined || record === undefined) {
      this.settled.delete(key);
      return;
    }
    if (record === "settling") return;
    if (this.events.isAsked && !this.areEventsThere(key, id, record)) return;
    this.applying.add(key);
    try {
      await this.events.load(this.p.tree.events);
      await this.applyRecord(key, id, record);
      this.settled.delete(key);
      this.leave(key, id);
    } catch (error) {
      this.p.report(
        `apply:${systemCode(error)}`,
        `what follows from ${id} cannot be written: ${messageOf(error)}; trying again`,
      );
      // `settled` still holds it: the next look repeats all of it.
    } finally {
      this.applying.delete(key);
      this.p.wake();
    }
  }

  /** "settling" while its marker is there: its journal lines may not be written yet. */
  private settledRecord(id: string): SettledRecord["record"] | "settling" | undefined {
    const { trays } = this.p;
    const settled = readSettled(trays, id);
    if (settled === undefined) return undefined;
    for (const file of trays.storage.list(trays.processing)) {
      const name = parseName(file);
      if (name !== undefined && foldId(name.id) === foldId(id) && name.stage !== "bad")
        return name.stage === "ok" || name.stage === "err" ? "settling" : undefined;
    }
    return settled.record;
  }

  private areEventsThere(key: string, id: string, record: SettledRecord["record"]): boolean {
    this.p.readJournal();
    const isThere = this.events
      .of(id)
      .some((event) => event.event === "completed" && event.lease === record.lease);
    return isThere || this.nowMs() - (this.settled.get(key) ?? 0) > EVENTS_WAIT_MS;
  }

  private async applyRecord(
    key: string,
    id: string,
    record: SettledRecord["record"],
  ): Promise<void> {
    const { store, tree } = this.p;
    if (!isNodeTask(record.task, id)) {
      this.noteForeign(id);
      if (store.find(id)?.status === "in_progress") this.setStatus(id, "open");
      return;
    }
    const node = store.find(id);
    const { run, checkpoint } = readRun(record);
    await this.writeOutputs(record);
    if (checkpoint !== undefined)
      await this.desk.ask(id, checkpoint, {
        run: record.run,
        lease: record.lease,
        attempt: record.attempts,
        by: record.agent_id,
      });
    if (node === undefined) return;
    const follow = followUp(
      node,
      run,
      (other) => store.find(other),
      (edits) => store.explainRefused(edits),
    );
    const status = follow.status ?? node.status;
    const facts = { node, status, record, events: this.events.of(id), runsDir: tree.runs };
    writeEvidence(tree.evidence, facts, this.p.settings.durability === "power");
    this.tell(key, id, record, follow);
    store.edit(follow.edits);
    this.ready = undefined;
    const finished = finishedContainers(this.nodes()).filter((each) => store.saysStatus(each));
    if (finished.length > 0)
      store.edit(finished.map((each) => ({ kind: "status", id: each.id, status: "done" })));
  }

  /** What its worker wrote already, or did not live to write. What never ran has no outputs. */
  private async writeOutputs(record: SettledRecord["record"]): Promise<void> {
    if (parseLease(record.lease) === undefined || record.attempts === 0) return;
    try {
      await writeRunOutputs(this.p.kv, outputsOfRecord(record, this.p.tree.runs));
    } catch (error) {
      // A newer run has written already.
      if (!(error instanceof ErrLeaseLost)) throw error;
    }
  }

  private tell(key: string, id: string, record: SettledRecord["record"], follow: FollowUp): void {
    const { telemetry, tree } = this.p;
    const subject: EventSubject = {
      task_id: id,
      agent_id: record.agent_id,
      attempt: record.attempts,
      lease: record.lease,
    };
    const say = (event: "escalated" | "blocked", details: Record<string, unknown>): void => {
      if (this.inherited.has(key) && hasRecord(tree.events, record.lease, event)) return;
      telemetry.event(event, subject, details);
    };
    if (follow.escalation !== undefined)
      say("escalated", { to: follow.escalation.id, subject: follow.escalation.subject });
    if (follow.status === "needs_human") say("blocked", { reason: "needs_human" });
    telemetry.flush();
    for (const { kind, message } of follow.alerts) this.p.alert(kind, message);
  }

  /** Checkpoints with a time limit and a safe default answer themselves. */
  private answerInTime(): void {
    for (const id of this.desk.due(this.nodes())) {
      void this.desk.answerByDefault(id).then(
        (answer) => {
          if (answer === undefined) return;
          this.p.alert(
            "answered",
            `nobody answered ${id} in time: it goes on with ${JSON.stringify(answer)}`,
          );
          if (this.p.store.find(id)?.status === "needs_human") this.setStatus(id, "open");
          this.p.wake();
        },
        (error: unknown) => this.p.report(`answer:${id}`, messageOf(error)),
      );
    }
  }

  // ── steering ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Opens the planner again. False when there is none. */
  async reopenPlanner(): Promise<boolean> {
    const planner = this.planner();
    if (planner === undefined) return false;
    if (planner.status !== "open" && planner.status !== "in_progress") {
      this.setStatus(planner.id, "open");
      await this.flushed();
    }
    return true;
  }

  isPlanning(): boolean {
    const status = this.planner()?.status;
    return status === "open" || status === "in_progress";
  }

  /** A node's task was stopped and put back: out of the mailbox with it, and the node is open again. */
  async withdraw(id: string): Promise<boolean> {
    const { store, trays } = this.p;
    const node = store.find(id);
    if (node === undefined || isContainer(node)) return false;
    if (node.status === "in_progress") this.setStatus(id, "open");
    await this.flushed();
    const isOurs = (bytes: Buffer): boolean => {
      try {
        return isNodeTask(JSON.parse(bytes.toString("utf8")), id);
      } catch {
        return false;
      }
    };
    const isOut = withdraw(trays, id, isOurs);
    if (isOut) this.leave(foldId(id), id);
    return isOut;
  }

  /** Waits until the plan on disk is the one in force; not for ever, when the disk is full. */
  private async flushed(): Promise<void> {
    for (let tries = 0; tries < FLUSH_TRIES_MAX && !this.p.store.flush(); tries++) {
      this.p.store.look(this.nowMs());
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }

  /** `plan-000`, or the first plan that stands under no other. */
  private planner(): RoadmapNode | undefined {
    return (
      this.p.store.find(PLANNER_ID) ??
      this.nodes().find((node) => node.type === "plan" && node.parent === undefined)
    );
  }

  /** What cannot be written is told; whoever asked goes on, and the next survey sees what is true. */
  private setStatus(id: string, status: RoadmapNode["status"]): void {
    try {
      this.p.store.edit([{ kind: "status", id, status }]);
    } catch (error) {
      this.p.report(`status:${id}`, `cannot set ${id} to ${status}: ${messageOf(error)}`);
    }
    this.ready = undefined;
  }

  private leave(key: string, id: string): void {
    this.inFlight.delete(key);
    this.inherited.delete(key);
    this.unselected.delete(id);
    this.events.forget(id);
  }

  private nodes(): readonly RoadmapNode[] {
    return this.p.store.doc?.nodes ?? [];
  }

  private nowMs(): number {
    return this.p.trays.clock.monotonicMs();
  }
}
