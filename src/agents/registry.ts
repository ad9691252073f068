/** Makes the agents of a process from their settings, and finds them by name. */
import { ErrInvalidConfig } from "../core/errors.ts";
import { LAND_FIELDS } from "../core/landing.ts";
import { BUILT_IN_EXEC } from "../core/matching.ts";
import type { AgentSettings } from "../core/settings.ts";
import type { Agent } from "./agent.ts";
import { type AgentKindEntry, LoadedAgent } from "./coding-kind.ts";
import { ExecAgent } from "./exec-agent.ts";
import type { Handler } from "./handler.ts";
import { type EnterFunction, ModuleAgent } from "./module-agent.ts";

export class AgentRegistry {
  private readonly agents = new Map<string, Agent>();
  /** Agents that do the work of another one, by both names. */
  private readonly standIns = new Map<string, Agent>();

  /**
   * @param handlers functions of this process, by the names of their agents
   * @param enterFunction see `ModuleAgent`
   * @throws ErrInvalidConfig when an agent is of a kind that is not built in
   */
  constructor(
    configured: readonly AgentSettings[],
    private readonly kinds: readonly AgentKindEntry[] = [],
    handlers: ReadonlyMap<string, Handler> = new Map(),
    private readonly enterFunction?: EnterFunction,
  ) {
    this.agents.set(BUILT_IN_EXEC.name, new ExecAgent(BUILT_IN_EXEC));
    for (const settings of configured) {
      const handler = handlers.get(settings.name);
      const isModule = handler !== undefined || settings.kind === "module";
      const agent = isModule
        ? new ModuleAgent(settings, handler, enterFunction)
        : makeAgent(settings, kinds, enterFunction);
      this.agents.set(settings.name, agent);
    }
  }

  get(name: string): Agent | undefined {
    return this.agents.get(name);
  }

  /**
   * The agent for a task of another one: what that one says about the place, the checks and the landing of work stays.
   * @throws ErrInvalidConfig as the constructor
   */
  standIn(settings: AgentSettings, first: AgentSettings): Agent {
    const key = JSON.stringify([settings.name, first.name]);
    const agent =
      this.standIns.get(key) ??
      makeAgent(withWorkOf(settings, first), this.kinds, this.enterFunction);
    this.standIns.set(key, agent);
    return agent;
  }

  /** Prepares every agent for its first run. */
  warmUp(): void {
    for (const agent of this.agents.values()) agent.warmUp();
  }
}

function makeAgent(
  settings: AgentSettings,
  kinds: readonly AgentKindEntry[],
  enterFunction?: EnterFunction,
): Agent {
  const { name, kind } = settings;
  if (kind === "exec") return new ExecAgent(settings);
  const find = (wanted: string) => kinds.find((one) => one.kind === wanted);
  const entry = find(kind) ?? find("other");
  if (entry === undefined)
    throw new ErrInvalidConfig(`agents: ${name}: the kind ${kind} is not built in`);
  return new LoadedAgent(settings, entry, enterFunction);
}

/** Settings about the work of an agent. They stay when another agent does it. */
const OF_WORK: readonly (keyof AgentSettings)[] = [
  "worktree",
  "setup",
  "cache",
  "verify",
  "expect_files",
  ...LAND_FIELDS,
];

function withWorkOf(settings: AgentSettings, first: AgentSettings): AgentSettings {
  const entriesOf = (agent: AgentSettings, isOfWork: boolean): [string, unknown][] =>
    Object.entries(agent).filter(([name]) => OF_WORK.some((one) => one === name) === isOfWork);
  return Object.fromEntries([
    ...entriesOf(settings, false),
    ...entriesOf(first, true),
  ]) as unknown as AgentSettings;
}
