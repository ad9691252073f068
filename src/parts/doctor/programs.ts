/** Lists the programs of coding agents: those that config.yaml names, and those on PATH. Only reads. */
import { dirname } from "node:path";
import { type AgentSettings, CODING_AGENTS, isCoding, type Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { findProgram } from "../../host/find-program.ts";

export interface AgentProgramFile {
  kind: string;
  /** The name in config.yaml, or the name that was looked for on PATH. */
  name: string;
  /** Undefined when it was not found. */
  path: string | undefined;
  /** The agents that run it; empty when it is only on PATH. */
  agents: readonly AgentSettings[];
}

export function listPrograms(
  settings: Settings,
  tree: StateTree,
  env: NodeJS.ProcessEnv,
): AgentProgramFile[] {
  const found = new Map<string, AgentProgramFile & { agents: AgentSettings[] }>();
  const add = (kind: string, name: string, path: string | undefined) => {
    const key = `${kind} ${path ?? name}`;
    const program = found.get(key) ?? { kind, name, path, agents: [] };
    found.set(key, program);
    return program;
  };
  for (const agent of settings.agents) {
    if (!isCoding(agent)) continue;
    const name = agent.command?.[0] ?? agent.program ?? agent.kind;
    const path = findProgram(name, agent.env?.["PATH"] ?? env["PATH"], dirname(tree.dir));
    add(agent.kind, name, path).agents.push(agent);
  }
  for (const kind of CODING_AGENTS) {
    const path = findProgram(kind, env["PATH"], "/");
    if (path !== undefined) add(kind, kind, path);
  }
  return [...found.values()];
}
