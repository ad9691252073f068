/** Finds out who would run the program of a new task, and whether that is at other machines. */
import { decodeTask } from "../../codec/task-codec.ts";
import { checkExec, matchAgent } from "../../core/matching.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { suggest } from "../../core/suggest.ts";
import { handlersOf, readSupervisor } from "../../view/supervisor.ts";
import { ErrUsage } from "../shell/command-spec.ts";
import { dropOf } from "../shell/inside-run.ts";
import { openSettings, treeOf } from "../shell/options.ts";
import type { EnqueueContext } from "./task-options.ts";

/** @throws ErrInvalidTask when `--agent` cannot run the program, ErrUsage when the settings do not know it, ErrInvalidConfig */
export async function withPlaceOfRun(ctx: EnqueueContext): Promise<EnqueueContext> {
  const { options, rest } = ctx;
  const { agent: name = "", group = "", shell } = options;
  const hasProgram = rest !== undefined || shell !== undefined;
  // Inside a run the settings may be out of reach. The supervisor checks the task.
  if (dropOf(ctx) !== undefined || (!hasProgram && name === "")) return ctx;
  const { agents, cluster } = (await openSettings(ctx)).settings;
  if (!hasProgram) {
    // Settings without agents are those of a new tree, or of a program that brings its own: a warning must do.
    if (agents.length > 0)
      checkNamed(options, [...agents, ...handlersOf(readSupervisor(treeOf(ctx), Date.now()))]);
    return ctx;
  }
  if (name !== "")
    checkExec({ exec: [...(rest ?? [])], agent: name }, agents, { phase: "enqueue" });
  const isRemote = agents.some((agent) => agent.name === name && agent.kind === "remote");
  return { ...ctx, isAbroad: isRemote || Object.hasOwn(cluster.groups, group) };
}

/** @throws ErrUsage when no agent of these would run a task with these options */
export function checkNamed(
  { agent, fallback, cap }: Pick<EnqueueContext["options"], "agent" | "fallback" | "cap">,
  agents: readonly AgentSettings[],
): void {
  const wanted = agent === undefined ? {} : { agent, agents: [agent, ...fallback] };
  const match = matchAgent({ ...wanted, capabilities: cap }, agents);
  if (match.agent !== undefined) return;
  const names = agents.map((one) => one.name);
  const near = agent === undefined ? undefined : suggest(agent, names);
  const all = names.length === 0 ? "config.yaml has no agents" : `agents: ${names.join(", ")}`;
  throw new ErrUsage(
    agent === undefined ? `a list needs --agent NAME: ${match.reason}` : match.reason,
    near === undefined ? all : `did you mean --agent ${near}?`,
  );
}

/** @throws ErrInvalidTask when nothing would judge the work of the agent */
export function checkAgentOf(id: string, text: string, agents: readonly AgentSettings[]): void {
  checkExec(decodeTask(Buffer.from(text), id).task, agents, { id, phase: "enqueue" });
}
