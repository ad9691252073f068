/**
 * Launches nodes: a node that may run becomes a task of the mailbox. A node is `in_progress` on disk before its task is
 * submitted. So after a crash, a node in progress without a task was never launched.
 */

import { join } from "node:path";
import { wallSeconds } from "../../../core/clock.ts";
import { messageOf, systemCode } from "../../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../../core/limits.ts";
import {
  agentIdOf,
  agentsOf,
  type Match,
  resolveAgent,
  resolveOpenAgent,
} from "../../../core/matching.ts";
import { parseLease } from "../../../core/names.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import { isNodeTask } from "../../../core/roadmap.ts";
import type { AgentSettings } from "../../../core/settings.ts";
import { laneOf } from "../../../core/waiting-task.ts";
import { archive } from "../../../mailbox/clean/archive.ts";
import { findLive } from "../../../mailbox/find/locate.ts";
import { readSettled } from "../../../mailbox/find/settled-record.ts";
import { submitAll } from "../../../mailbox/submit/submit.ts";
import type { Unlanded } from "../../../supervisor/environment/part.ts";
import type { StartAllowance } from "../../../supervisor/queue/start-limits.ts";
import { answersOf } from "../answers.ts";
import type { RoadmapDocument } from "../read/document.ts";
import { type PlanNext, Planner, type WaitingNode } from "../rules/next.ts";
import { taskOfNode } from "../rules/node-task.ts";
import { isEndUntold } from "./earlier-runs.ts";
import type { EngineParts } from "./engine-parts.ts";

/** What the supervisor allows in this tick. */
export interface LaunchAllowance extends StartAllowance {
  onlyPlanners: boolean;
}

const SUBMIT_AGAIN_MS = 250;
/** Pause before a node whose id was taken is launched again, because each try writes the plan twice (ms). */
const TAKEN_AGAIN_MS = 5000;

export class NodeLauncher {
  private readonly chooser = new Planner();
  /** The last decision, and what it was made of. */
  private decided: PlanNext = { ready: [], waiting: [] };
  private decidedOf: { doc: RoadmapDocument | undefined; unlanded: Unlanded } | undefined;
  /** Nodes whose tasks are submitted as soon as the plan on disk says `in_progress`. */
  private readonly toSubmit = new Set<string>();
  private readonly submitting = new Set<string>();
  private readonly archiving = new Set<string>();
  /** With `--once`: the only nodes that may be launched. */
  private pass: Set<string> | undefined;
  /** Ids that other tasks have taken, with the time until which their nodes are not launched (monotonic ms). */
  private readonly foreign = new Map<string, number>();
  /** Nodes whose item in the file cannot be edited. They are tried again when the file changes. */
  private readonly unwritable = new Set<string>();
  private submitAtMs = 0;

  constructor(
    private readonly deps: EngineParts,
    /** Called for an open node that an earlier supervisor launched. */
    private readonly takeUp: (id: string) => void,
  ) {}

  /** After this call only nodes that are ready now may be launched. */
  beginPass(): void {
    this.pass = new Set(this.launchable().map((node) => node.id));
  }

  /** True if the node was launched and its task is not in the mailbox yet. */
  isOnTheWay(id: string): boolean {
    return this.toSubmit.has(id) || this.submitting.has(id);
  }

  get isBusy(): boolean {
    return this.toSubmit.size + this.submitting.size + this.archiving.size > 0;
  }

  /** When the next task is due to be submitted (monotonic ms). */
  get submitDueMs(): number {
    return this.toSubmit.size > 0 ? this.submitAtMs : Number.POSITIVE_INFINITY;
  }

  /** Allows nodes whose pause is over to be launched again: their ids may be free now. */
  forgetForeign(): void {
    const nowMs = this.deps.env.trays.clock.monotonicMs();
    for (const [id, untilMs] of this.foreign) if (untilMs <= nowMs) this.foreign.delete(id);
  }

  onAdopted(): void {
    this.foreign.clear();
    this.unwritable.clear();
  }

  /** True also while the agents of all these nodes have to wait. @param isNow then false */
  canLaunch(onlyPlanners: boolean, isNow = false): boolean {
    return this.launchable().some(
      (node) => (!onlyPlanners || node.type === "plan") && (!isNow || this.mayStart(node)),
    );
  }

  private matchOf(id: string): Match | undefined {
    const node = this.deps.store.find(id);
    return node && resolveAgent(node, this.deps.env.settings.agents);
  }

  private agentOf(id: string): AgentSettings | undefined {
    return this.matchOf(id)?.agent;
  }

  /** False while the node's agent has to wait: the node would be in progress without running. */
  private mayStart({ id }: RoadmapNode): boolean {
    const match = this.matchOf(id);
    if (match?.agent === undefined) return true;
    const { name, slots } = match.agent;
    if (!this.deps.limits.parts.mayStart(laneOf({ agentId: agentIdOf(match) }))) return false;
    // Which agent takes it is chosen when its task starts.
    if (match.fallbacks !== undefined) return true;
    // Each node of the agent in flight takes a slot, even if its task is not accepted yet.
    const inFlight = (): number =>
      this.deps.active.countBut((one) => this.agentOf(one)?.name !== name);
    return slots === undefined || inFlight() < slots;
  }

  /** True if the node's agent got 0 slots after the launch: its task waits without end. */
  isStuck(id: string): boolean {
    const match = this.matchOf(id);
    const isShut = match !== undefined && agentsOf(match).every(({ slots }) => slots === 0);
    return this.deps.limits.isPutOff(id) && isShut;
  }

  launch(allowance: LaunchAllowance): void {
    const { active } = this.deps;
    const isDelayed = (id: string): boolean => this.deps.limits.isPutOff(id);
    const left = allowance.launchesMax - active.unselectedCount;
    let room = Math.min(allowance.slots - active.countBut(isDelayed), left);
    if (room <= 0) return;
    for (const node of this.launchable()) {
      if (room <= 0) break;
      if (allowance.onlyPlanners && node.type !== "plan") continue;
      if (this.archiving.has(node.id) || !this.mayStart(node)) continue;
      if (!this.isFree(node)) continue;
      if (!this.deps.store.setStatus(node.id, "in_progress")) {
        this.unwritable.add(node.id);
        continue;
      }
      room--;
      active.launch(node.id);
      this.toSubmit.add(node.id);
    }
  }

  /** The nodes that may be launched now, best first. With `--once` only those that could run when the pass began. */
  launchable(): RoadmapNode[] {
    const { active } = this.deps;
    this.choose();
    return this.decided.ready.filter(
      (node) =>
        !active.has(node.id) &&
        !this.foreign.has(node.id) &&
        !this.unwritable.has(node.id) &&
        this.pass?.has(node.id) !== false,
    );
  }

  /** Nodes that cannot be launched, each with the reason. */
  held(): readonly WaitingNode[] {
    this.choose();
    return this.decided.waiting;
  }

  /** Knows how each node of the plan stands. */
  planner(): Planner {
    this.choose();
    return this.chooser;
  }

  private choose(): void {
    const { doc, nodes } = this.deps.store;
    const { agents } = this.deps.env.settings;
    const unlanded = this.deps.limits.parts.unlanded();
    if (
      this.decidedOf !== undefined &&
      this.decidedOf.doc === doc &&
      this.decidedOf.unlanded === unlanded
    )
      return;
    this.decidedOf = { doc, unlanded };
    const matchAgent = (node: RoadmapNode): Match => resolveOpenAgent(node, agents);
    this.decided = this.chooser.next(nodes, { matchAgent, unlanded });
  }

  /** True if the id is free in the mailbox. A record of its last run is first moved to the evidence. */
  private isFree(node: RoadmapNode): boolean {
    const { trays, tree } = this.deps.env;
    const live = this.liveTask(node.id);
    if (live !== undefined) {
      // An earlier supervisor launched the node. Then a person saved an old copy of the file, in which the node is open.
      if (live === "own") this.takeUp(node.id);
      else if (live === "foreign") this.noteForeign(node.id);
      return false;
    }
    const settled = readSettled(trays, node.id);
    if (settled === undefined) return true;
    if (!isNodeTask(settled.record.task, node.id)) {
      this.noteForeign(node.id);
      return false;
    }
    if (isEndUntold(tree, node, settled.record, this.deps.openedAtMs(node.id))) {
      this.takeEnd(node.id);
      return false;
    }
    this.archiving.add(node.id);
    const submission = parseLease(settled.record.lease)?.submission ?? "none";
    const target = join(tree.evidence, node.id, "earlier", submission, "record.json");
    archive(trays, settled.path, target)
      .catch((error: unknown) =>
        this.deps.env.alerts.report(
          `archive:${systemCode(error)}`,
          `cannot move the last record of ${node.id} to its evidence: ${messageOf(error)}`,
        ),
      )
      .finally(() => {
        this.archiving.delete(node.id);
        this.deps.env.wake();
      });
    return false;
  }

  /** Counts the node as in flight, so that the next comparison with the mailbox finds its record. */
  private takeEnd(id: string): void {
    if (!this.deps.store.setStatus(id, "in_progress")) {
      this.unwritable.add(id);
      return;
    }
    this.deps.active.inherit(id);
    this.deps.env.alerts.report(
      `ended:${id}`,
      `${id} has run already: its record is taken over; to run it again: mailchute node set-status ${id} open`,
    );
  }

  /** Who owns the task of this id in the inbox or in `processing/`. "unsure": it is being moved or unreadable. Undefined: no task. */
  liveTask(id: string): "own" | "foreign" | "unsure" | undefined {
    const { trays } = this.deps.env;
    const waiting = join(trays.inbox, `${id}.json`);
    const paths = trays.storage.look(waiting) === undefined ? [] : [waiting];
    paths.push(...findLive(trays, id).map(({ path }) => path));
    for (const path of paths) {
      try {
        const { bytes } = trays.storage.read(path, TASK_BYTES_MAX);
        if (bytes !== undefined)
          return isNodeTask(JSON.parse(bytes.toString("utf8")), id) ? "own" : "foreign";
      } catch {
        // The file was moved, or cannot be read: the next check finds out.
      }
    }
    return paths.length === 0 ? undefined : "unsure";
  }

  /** Notes that another task has this id. The node waits until the first `survey` after `pauseMs`, which checks again. */
  noteForeign(id: string, pauseMs = 0): void {
    const why = `${id} cannot run: the mailbox has a task with this id that is not the plan's own`;
    this.foreign.set(id, this.deps.env.trays.clock.monotonicMs() + pauseMs);
    this.deps.env.alerts.report(`foreign:${id}`, why);
  }

  submitDue(): void {
    const { trays } = this.deps.env;
    if (this.toSubmit.size === 0 || this.deps.env.trays.clock.monotonicMs() < this.submitAtMs)
      return;
    const submissions: { id: string; bytes: Buffer }[] = [];
    // A copy, because a node that cannot be submitted now is put back.
    const due = [...this.toSubmit];
    for (const id of due) {
      this.toSubmit.delete(id);
      const node = this.deps.store.find(id);
      if (node === undefined || node.status !== "in_progress") {
        this.deps.active.leave(id);
        continue;
      }
      try {
        const agent = this.agentOf(id)?.name ?? "none";
        const answers = answersOf(this.deps.kv, id);
        const task = taskOfNode(node, agent, wallSeconds(trays.clock), answers);
        submissions.push({ id, bytes: Buffer.from(`${JSON.stringify(task)}\n`, "utf8") });
      } catch (error) {
        // The other nodes are launched. This one is tried again, or waits for a person.
        this.submitRefused(id, error);
      }
    }
    for (const { id } of submissions) this.submitting.add(id);
    const end = ({ id }: { id: string }, error?: unknown): void => {
      this.submitting.delete(id);
      if (error === undefined) this.deps.env.facts.emit("inbox:written", `${id}.json`);
      else this.submitRefused(id, error);
    };
    submitAll(trays, submissions).then(
      (outcomes) => {
        for (const one of outcomes) end(one, one.outcome === "refused" ? one.error : undefined);
        this.deps.env.wake();
      },
      (error: unknown) => {
        for (const one of submissions) end(one, error);
      },
    );
  }

  private submitRefused(id: string, error: unknown): void {
    const code = systemCode(error);
    this.deps.env.alerts.report(`submit:${code}`, `cannot launch ${id}: ${messageOf(error)}`);
    if (code === "ErrIo") {
      this.toSubmit.add(id);
      this.submitAtMs = this.deps.env.trays.clock.monotonicMs() + SUBMIT_AGAIN_MS;
      return;
    }
    this.deps.active.leave(id);
    // If another task took the id first, the node waits. A task that was refused, for example as too large, needs a person.
    this.deps.store.setStatus(id, code === "ErrTaskExists" ? "open" : "blocked");
    if (code === "ErrTaskExists") this.noteForeign(id, TAKEN_AGAIN_MS);
  }
}
