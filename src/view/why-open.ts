/** Explains why a task or node has not ended, from the trays, the id readers, the settings, and obstacles for all tasks. Reads only. */
import type { ClosedGate } from "../core/documents.ts";
import { type ChosenTask, closedPool, isAttendedIn, type PoolState } from "../core/gates.ts";
import { isoTime } from "../core/iso-time.ts";
import { foldId, isUnclaimed } from "../core/names.ts";
import { mendNodes } from "../core/roadmap.ts";
import { controlOf } from "../core/saved-documents.ts";
import type { AgentSettings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import {
  type DependencyState,
  describeUnmet,
  findUnmet,
  UNKNOWN,
  type Unmet,
} from "../core/unmet.ts";
import type { WaitingTask } from "../core/waiting-task.ts";
import { judgeOwner } from "../host/identity.ts";
import { statOf } from "../host/regular-file.ts";
import { duplicateOf, lastOf } from "../mailbox/find/failures.ts";
import { nearestId } from "./blocked-tasks.ts";
import { idsIn, lookForTask, type TaskPlace, traysOf } from "./find-task.ts";
import { type IdReader, isFailedNode } from "./id-reader.ts";
import { explainUnlanded } from "./landing.ts";
import { readJsonObject } from "./scan.ts";
import {
  closedGates,
  gateOf,
  handlersOf,
  NO_SUPERVISOR,
  poolOf,
  readSupervisor,
} from "./supervisor.ts";
import { readWaiting } from "./task-rows.ts";

/** How often a task whose id differs only in case is looked for (ms). */
const LIST_AGAIN_MS = 10_000;
const RUNS: Why = { text: "runs", isStuck: false };

export interface Why {
  /** A phrase that fits after "it": "runs", "waits for a, which failed". */
  text: string;
  /** True if it does not start until a person acts, or not before the caller stops waiting. */
  isStuck: boolean;
  /** The reason lies in the task itself: it stays stuck while the pool runs on. */
  isOwn?: true;
  /** What a person can do about it. */
  do?: string;
}

export class WhyOpen {
  private pool: PoolState = poolOf(NO_SUPERVISOR, 0);
  /** The agents of the settings, and those that the supervisor has besides. */
  private known: readonly AgentSettings[] | undefined;
  private gates: readonly ClosedGate[] = [];
  /** Ids by their folded form. */
  private spelled: ReadonlyMap<string, string> = new Map();
  private listAgainMs = Number.NEGATIVE_INFINITY;

  /**
   * @param agents undefined when the settings cannot be read: agents are then not mentioned, because `run` reports the fault
   * @param untilMs wall clock: when the caller stops waiting
   */
  constructor(
    private readonly tree: StateTree,
    private readonly agents: readonly AgentSettings[] | undefined,
    private readonly untilMs: number,
    /** Knows ids that are not in the trays. */
    readonly others: IdReader,
  ) {}

  /** Reads what all explanations need. Call it before each round of explanations. */
  async refresh(): Promise<void> {
    await this.others.refresh();
    const nowMs = Date.now();
    const supervisor = readSupervisor(this.tree, nowMs);
    const control = controlOf(readJsonObject(this.tree.controlState));
    this.pool = poolOf(supervisor, nowMs, control);
    this.gates = closedGates(supervisor);
    this.known = this.agents && [...this.agents, ...handlersOf(supervisor)];
  }

  /** Undefined when the task has ended, or there is no such task or node. */
  explain(id: string): Why | undefined {
    const place = lookForTask(this.tree, id);
    switch (place?.state) {
      case undefined:
        return this.explainNode(id);
      case "running":
        return this.explainRunning(place);
      case "settling":
        return RUNS;
      case "ready": {
        const text = "waits for a worker";
        return this.explainTask(place, text, "waits for its next run", statOf(place.path)?.mtimeMs);
      }
      case "held":
        return this.explainTask(place, `waits for ${place.name?.token}`);
      case "waiting":
        return this.explainTask(place, "waits its turn");
      case "done": {
        // A task whose work is on its way to land has not ended.
        const standing = explainUnlanded(this.tree, place.id);
        return standing?.is === "moving" ? { text: standing.how, isStuck: false } : undefined;
      }
      default:
        return undefined;
    }
  }

  private explainRunning({ name }: TaskPlace): Why {
    if (name?.stage !== "w" || judgeOwner(name.token) !== "dead") return RUNS;
    return isAttendedIn(this.pool.supervisor)
      ? { text: "is taken back from its dead worker", isStuck: false }
      : {
          text: "does not run: its worker is dead, and no supervisor runs that takes it back",
          isStuck: true,
          do: "mailchute run",
        };
  }

  /** The first gate that is closed for this task; `text` when all are open. */
  private explainTask(
    place: TaskPlace,
    text: string,
    timed = "waits for its time",
    atMs?: number,
  ): Why {
    const task = readWaiting(place, this.known);
    const dueMs = atMs ?? task.notBeforeMs ?? 0;
    return (
      this.explainUnmet(task) ??
      this.noAgent(task) ??
      this.atPool(task) ??
      (dueMs > Date.now()
        ? { text: `${timed}, ${isoTime(dueMs)}`, isStuck: dueMs > this.untilMs }
        : this.atGate(task)) ?? { text, isStuck: false }
    );
  }

  private explainNode(id: string): Why | undefined {
    const standing = this.others.standing(id);
    if (standing === undefined || standing.is === "met" || standing.how === "failed")
      return undefined;
    if (standing.on !== undefined) {
      const { named, count } = findUnmet(id, standing.on, (one) => this.standingOf(one));
      if (count > 0) return this.unmet(named, count);
    }
    if (standing.is === "stuck") return { text: standing.how, isStuck: true, isOwn: true };
    if (standing.how === "runs") return { text: "runs", isStuck: false };
    const { agent: agentId, isPlanner } = standing;
    const node = { id, attempt: 1, agentId, ...(isPlanner && { isPlanner }) };
    return this.atPool(node) ?? this.atGate(node) ?? { text: standing.how, isStuck: false };
  }

  private explainUnmet(task: WaitingTask): Why | undefined {
    const { id } = task;
    const look = (one: string): DependencyState => this.standingOf(one);
    const { named, count } = findUnmet(id, this.toWaitFor(task), look);
    if (count === 0) return undefined;
    const shown = named.map((one) => {
      const near = one.isUnknown ? nearestId(this.tree, one.id, this.others.ids(), id) : undefined;
      return near === undefined ? one : { ...one, how: `${one.how} (did you mean ${near}?)` };
    });
    return this.unmet(shown, count);
  }

  private noAgent({ id, agentId, reason }: WaitingTask): Why | undefined {
    if (agentId !== undefined) return undefined;
    const why = { text: `cannot run: ${reason}`, isStuck: true, do: withAnAgent(id) };
    // The next pool may know its agent.
    return isAttendedIn(this.pool.supervisor) ? { ...why, isOwn: true } : why;
  }

  private atPool(task: ChosenTask & Parameters<typeof gateOf>[1]): Why | undefined {
    const closed = closedPool(this.pool, task);
    const gate = closed?.code === "supervisor" ? gateOf(this.gates, task) : undefined;
    return (
      closed && {
        text: `waits: ${closed.why} (${closed.do})${gate ? `; also: ${gate.why}` : ""}`,
        isStuck: closed.goesOn !== true,
        do: closed.do,
      }
    );
  }

  private atGate(task: Parameters<typeof gateOf>[1]): Why | undefined {
    const gate = gateOf(this.gates, task);
    return (
      gate && { text: `waits: ${gate.why}`, isStuck: gate.until_ms > this.untilMs, do: gate.do }
    );
  }

  private unmet(named: readonly Unmet[], count: number): Why {
    const stuck = named.find((one) => one.isStuck);
    const text = describeUnmet(named, count);
    if (stuck === undefined) return { text, isStuck: false };
    const { id } = stuck;
    const why = { text, isStuck: true, isOwn: true } as const;
    if (stuck.isUnknown) return { ...why, do: `drop a task with the id ${id}, or cancel this one` };
    if (stuck.how !== "failed") return { ...why, do: `mailchute why ${id}` };
    return {
      ...why,
      do: isFailedNode(this.others, id) ? mendNodes([id]) : `mailchute retry ${id}`,
    };
  }

  /** The task's dependencies, except those that have failed and need not complete. */
  private toWaitFor({ unmet: all = [], toEnd = [] }: WaitingTask): string[] {
    return all.filter((one) => !toEnd.includes(one) || this.standingOf(one).how !== "failed");
  }

  private standingOf(id: string): DependencyState {
    const node = this.others.standing(id);
    if (node !== undefined) return node;
    const place = lookForTask(this.tree, id) ?? this.lookInAnyCase(id);
    switch (place?.state) {
      case undefined:
        return UNKNOWN;
      case "done":
        return explainUnlanded(this.tree, place.id) ?? { is: "met", how: "has completed" };
      case "failed":
        return this.standingOfFailed(place.id);
      case "waiting": {
        const task = readWaiting(place, this.known);
        const on = this.toWaitFor(task);
        if (on.length > 0) return { is: "moving", how: "waits its turn", on };
        return task.agentId === undefined
          ? { is: "stuck", how: `cannot run: ${task.reason}` }
          : { is: "moving", how: "waits its turn" };
      }
      default:
        return { is: "moving", how: isUnclaimed(place?.name) ? "waits its turn" : "runs" };
    }
  }

  /** Tasks that depend on a duplicate wait for the task that holds its key. */
  private standingOfFailed(id: string): DependencyState {
    const trays = traysOf(this.tree);
    const last = lastOf(trays, id);
    const isLast = last !== id && duplicateOf(trays, last) === undefined;
    return isLast ? this.standingOf(last) : { is: "stuck", how: "failed" };
  }

  /** Uses a listing that is made at the first need, and only rarely made again. */
  private lookInAnyCase(id: string): TaskPlace | undefined {
    const nowMs = performance.now();
    if (nowMs >= this.listAgainMs) {
      this.listAgainMs = nowMs + LIST_AGAIN_MS;
      const trays = ["inbox", "outbox", "failed"] as const;
      const ids = trays.flatMap((tray) => idsIn(this.tree, tray));
      this.spelled = new Map(ids.map((one) => [foldId(one), one]));
    }
    const spelled = this.spelled.get(foldId(id));
    return spelled === undefined ? undefined : lookForTask(this.tree, spelled);
  }
}

function withAnAgent(id: string): string {
  return `add the agent to config.yaml and start \`mailchute run\` again, or: mailchute cancel ${id}`;
}
