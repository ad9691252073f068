/** Explains why a task or node has not ended, from the trays, the id readers, the settings, and obstacles for all tasks. Reads only. */
import type { ClosedGate } from "../core/documents.ts";
import { isoTime } from "../core/iso-time.ts";
import { matchAgent } from "../core/matching.ts";
import { foldId, isUnclaimed } from "../core/names.ts";
import { type ControlDocument, controlOf } from "../core/saved-documents.ts";
import type { AgentSettings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import type { Task } from "../core/task.ts";
import { describeUnmet, findUnmet, type Standing, UNKNOWN, type Unmet } from "../core/unmet.ts";
import { judgeOwner } from "../host/identity.ts";
import { statOf } from "../host/regular-file.ts";
import { duplicateOf, lastOf } from "../mailbox/find/failures.ts";
import { nearestId } from "./blocked-tasks.ts";
import { idsIn, lookForTask, type TaskPlace, traysOf } from "./find-task.ts";
import type { IdReader } from "./id-reader.ts";
import { explainUnlanded } from "./landing.ts";
import { readJsonObject } from "./scan.ts";
import { closedGates, gateTest, isAttended, readSupervisor, whyAt } from "./supervisor.ts";
import { dependencyIds, mayFail, readTask } from "./task-rows.ts";

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
  private general: Why | undefined;
  private isAttended = false;
  /** Agents that the supervisor has besides those of the settings. */
  private handlers: ReadonlySet<unknown> = new Set();
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
    const supervisor = readSupervisor(this.tree, Date.now());
    this.isAttended = isAttended(supervisor);
    this.handlers = new Set(this.isAttended ? supervisor.document?.handlers : []);
    this.general = this.holdsAll(this.isAttended);
    this.gates = closedGates(supervisor);
  }

  /** Undefined when the task has ended, or there is no such task or node. */
  explain(id: string): Why | undefined {
    const place = lookForTask(this.tree, id);
    if (place === undefined) return this.explainNode(id);
    switch (place.state) {
      case "running":
        return this.explainRunning(place);
      case "settling":
        return RUNS;
      case "ready": {
        const dueMs = statOf(place.path)?.mtimeMs ?? 0;
        return dueMs > Date.now()
          ? this.waitsUntil(dueMs, "waits for its next run")
          : this.orGeneral("waits for a worker", readTask(place.path));
      }
      case "held":
        return this.explainHeld(place);
      case "waiting":
        return this.explainWaiting(id, place);
      case "done":
        return this.explainLanding(place.id);
      default:
        return undefined;
    }
  }

  private explainRunning({ name }: TaskPlace): Why {
    if (name?.stage !== "w" || judgeOwner(name.token) !== "dead") return RUNS;
    return this.isAttended
      ? { text: "is taken back from its dead worker", isStuck: false }
      : {
          text: "does not run: its worker is dead, and no supervisor runs that takes it back",
          isStuck: true,
          do: "mailchute run",
        };
  }

  /** A task whose work is on its way to land has not ended. */
  private explainLanding(id: string): Why | undefined {
    const standing = explainUnlanded(this.tree, id);
    return standing?.is === "moving" ? { text: standing.how, isStuck: false } : undefined;
  }

  private explainHeld({ id, name }: TaskPlace): Why {
    const gate = this.gates.find((one) => one.gate === name?.token);
    const own = gate && { ...gate, why: whyAt(gate, id) };
    return this.general ?? this.atGate(own) ?? { text: `waits for ${name?.token}`, isStuck: false };
  }

  private atGate(gate: ClosedGate | undefined): Why | undefined {
    return (
      gate && { text: `waits: ${gate.why}`, isStuck: gate.until_ms > this.untilMs, do: gate.do }
    );
  }

  /** Undefined when the task waits at no gate. */
  private explainGate(task: Record<string, unknown> | undefined): Why | undefined {
    if (task === undefined || this.agents === undefined || this.gates.length === 0)
      return undefined;
    const { agent } = matchAgent(task as unknown as Task, this.agents);
    const full = this.gates.find(gateTest(task));
    return this.gateOf(agent?.name) ?? this.atGate(full);
  }

  private gateOf(agent = ""): Why | undefined {
    return this.atGate(this.gates.find((one) => one.agents.includes(agent)));
  }

  private explainNode(id: string): Why | undefined {
    const standing = this.others.standing(id);
    if (standing === undefined || standing.is === "met" || standing.how === "failed")
      return undefined;
    if (standing.on !== undefined) {
      const { named, count } = findUnmet(id, standing.on, (one) => this.standingOf(one));
      if (count > 0) return unmet(named, count);
    }
    if (standing.is === "stuck") return { text: standing.how, isStuck: true, isOwn: true };
    return standing.how === "runs"
      ? { text: "runs", isStuck: false }
      : (this.general ?? this.gateOf(standing.agent) ?? this.orGeneral(standing.how));
  }

  private explainWaiting(id: string, place: TaskPlace): Why {
    const task = readTask(place.path);
    const look = (one: string): Standing => this.standingOf(one);
    const { named, count } = findUnmet(id, this.toWaitFor(task), look);
    if (count > 0) {
      const shown = named.map((one) => {
        const near = one.isUnknown
          ? nearestId(this.tree, one.id, this.others.ids(), id)
          : undefined;
        return near === undefined ? one : { ...one, how: `${one.how} (did you mean ${near}?)` };
      });
      return unmet(shown, count);
    }
    const reason = this.noAgent(task);
    if (reason !== undefined) {
      const why = { text: `cannot run: ${reason}`, isStuck: true, do: withAnAgent(id) };
      // The next pool may know its agent.
      return this.isAttended ? { ...why, isOwn: true } : why;
    }
    const notBefore = task?.["not_before"];
    if (typeof notBefore === "number" && notBefore * 1000 > Date.now())
      return this.waitsUntil(notBefore * 1000, "waits for its time");
    return this.orGeneral("waits its turn", task);
  }

  /** The task's dependencies, except those that have failed and need not complete. */
  private toWaitFor(task: Record<string, unknown> | undefined): string[] {
    return dependencyIds(task).filter(
      (one) => !mayFail(task, one) || this.standingOf(one).how !== "failed",
    );
  }

  private waitsUntil(dueMs: number, what: string): Why {
    const general = this.general;
    if (general !== undefined) return general;
    return { text: `${what}, ${isoTime(dueMs)}`, isStuck: dueMs > this.untilMs };
  }

  private orGeneral(text: string, task?: Record<string, unknown>): Why {
    return this.general ?? this.explainGate(task) ?? { text, isStuck: false };
  }

  private standingOf(id: string): Standing {
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
        const task = readTask(place.path);
        const on = this.toWaitFor(task);
        const reason = this.noAgent(task);
        if (on.length > 0) return { is: "moving", how: "waits its turn", on };
        return reason === undefined
          ? { is: "moving", how: "waits its turn" }
          : { is: "stuck", how: `cannot run: ${reason}` };
      }
      default:
        return { is: "moving", how: isUnclaimed(place?.name) ? "waits its turn" : "runs" };
    }
  }

  /** Tasks that depend on a duplicate wait for the task that holds its key. */
  private standingOfFailed(id: string): Standing {
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

  private noAgent(task: Record<string, unknown> | undefined): string | undefined {
    if (task === undefined || this.agents === undefined) return undefined;
    const { agent, capabilities } = task;
    if (this.handlers.has(agent)) return undefined;
    if (capabilities !== undefined && !Array.isArray(capabilities)) return undefined;
    const match = matchAgent(task as unknown as Task, this.agents);
    return match.agent === undefined ? match.reason : undefined;
  }

  /** The reason why nothing can start at all. */
  private holdsAll(hasSupervisor: boolean): Why | undefined {
    if (!hasSupervisor)
      return {
        text: "waits, and no supervisor runs (mailchute run)",
        isStuck: true,
        do: "mailchute run",
      };
    const control: ControlDocument = controlOf(readJsonObject(this.tree.controlState));
    if (control.paused)
      return {
        text: `waits: paused since ${control.paused_at ?? "an unknown time"} (mailchute resume)`,
        isStuck: true,
        do: "mailchute resume",
      };
    return control.max_workers === 0
      ? {
          text: "waits: there are 0 slots (mailchute set-workers N)",
          isStuck: true,
          do: "mailchute set-workers N",
        }
      : undefined;
  }
}

function unmet(named: readonly Unmet[], count: number): Why {
  const stuck = named.find((one) => one.isStuck);
  const text = describeUnmet(named, count);
  if (stuck === undefined) return { text, isStuck: false };
  const why = { text, isStuck: true, isOwn: true } as const;
  if (stuck.isUnknown)
    return { ...why, do: `drop a task with the id ${stuck.id}, or cancel this one` };
  return {
    ...why,
    do: stuck.how === "failed" ? `mailchute retry ${stuck.id}` : `mailchute why ${stuck.id}`,
  };
}

function withAnAgent(id: string): string {
  return `add the agent to config.yaml and start \`mailchute run\` again, or: mailchute cancel ${id}`;
}
