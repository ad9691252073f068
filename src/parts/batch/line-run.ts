/** Turns a line of a batch into its task and its agent, or refuses it with a reason. */
import { type Agent, StopSignal } from "../../agents/agent.ts";
import { decodeLine } from "../../codec/batch-codec.ts";
import { messageOf } from "../../core/errors.ts";
import { matchAgent } from "../../core/matching.ts";
import { isFunction } from "../../core/settings.ts";
import type { Task } from "../../core/task.ts";
import type { Line } from "../../mailbox/submit/batch-lines.ts";
import type { AttemptTools } from "../../worker/runner.ts";
import { explainUnlimited, wantsWorktree, withChecks } from "../../worker/task-defaults.ts";

/** A line of a batch with its task and the state of its run. */
export interface LineRun {
  number: number;
  text: string;
  task: Task;
  agent: Agent;
  isModule: boolean;
  /** The number of its run, from 1. */
  attempt: number;
  startedMs: number;
  /** When its next run is due (monotonic ms). */
  dueMs: number;
  stop: StopSignal;
  /** Its place in the list of running lines. */
  slot: number;
  isStuck: boolean;
}

const NO_STOP = new StopSignal();

export class LineRuns {
  private readonly agents = new Map<string, Agent | string>();

  constructor(
    private readonly batchId: string,
    private readonly tools: AttemptTools,
  ) {}

  /** @returns why the line is refused */
  begin({ number, text, fault }: Line): LineRun | string {
    if (text === undefined) return fault;
    let task: Task;
    try {
      task = decodeLine(text, this.batchId, number);
    } catch (error) {
      return messageOf(error);
    }
    const agent = this.agentOf(task);
    if (typeof agent === "string") return agent;
    const { settings } = agent;
    if (settings.kind === "remote") {
      const why = `the agent ${settings.name} is at other machines, and lines of a batch run here`;
      return `${why}; make it a task of its own`;
    }
    if (wantsWorktree(task, settings))
      return "worktree: a line of a batch has none; make it a task of its own";
    const unlimited = explainUnlimited(this.tools, task, settings);
    if (unlimited !== undefined) return unlimited;
    return {
      number,
      text,
      task: withChecks(task, settings),
      agent,
      isModule: isFunction(settings),
      attempt: (task.attempts ?? 0) + 1,
      startedMs: 0,
      dueMs: 0,
      stop: NO_STOP,
      slot: 0,
      isStuck: false,
    };
  }

  /** The agent, or why no agent fits. Most lines of a batch are alike, so similar lines share one answer. */
  private agentOf(task: Task): Agent | string {
    const isPicky = task.capabilities !== undefined || task.type !== undefined;
    const key = isPicky
      ? undefined
      : `${task.exec === undefined ? "" : "exec"} ${task.agent ?? ""}`;
    const known = key === undefined ? undefined : this.agents.get(key);
    if (known !== undefined) return known;
    const { agent: settings, ...match } = matchAgent(task, this.tools.settings.agents);
    const agent =
      settings === undefined
        ? (match as { reason: string }).reason
        : (this.tools.agents.get(settings.name) ?? "this worker does not know the agent");
    if (key !== undefined) this.agents.set(key, agent);
    return agent;
  }
}
