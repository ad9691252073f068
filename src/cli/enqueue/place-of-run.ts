/** Finds out who would run the program of a new task, and whether that is at other machines. */
import { decodeTask } from "../../codec/task-codec.ts";
import { checkExec } from "../../core/matching.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { dropOf } from "../shell/inside-run.ts";
import { openSettings } from "../shell/options.ts";
import type { EnqueueContext } from "./task-options.ts";

/** @throws ErrInvalidTask when `--agent` cannot run the program, ErrInvalidConfig */
export async function withPlaceOfRun(ctx: EnqueueContext): Promise<EnqueueContext> {
  const { options, rest } = ctx;
  const { agent: name = "", group = "", shell } = options;
  const hasProgram = rest !== undefined || shell !== undefined;
  // Inside a run the settings may be out of reach. The supervisor checks the task.
  if (!hasProgram || dropOf(ctx) !== undefined) return ctx;
  const { agents, cluster } = (await openSettings(ctx)).settings;
  if (name !== "")
    checkExec({ exec: [...(rest ?? [])], agent: name }, agents, { phase: "enqueue" });
  const isRemote = agents.some((agent) => agent.name === name && agent.kind === "remote");
  return { ...ctx, isAbroad: isRemote || Object.hasOwn(cluster.groups, group) };
}

/** @throws ErrInvalidTask when nothing would judge the work of the agent */
export function checkAgentOf(id: string, text: string, agents: readonly AgentSettings[]): void {
  checkExec(decodeTask(Buffer.from(text), id).task, agents, { id, phase: "enqueue" });
}
