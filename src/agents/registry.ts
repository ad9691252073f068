/** From agent settings to the agent that runs. */
import { ErrInvalidConfig } from "../core/errors.ts";
import { BUILT_IN_EXEC } from "../core/matching.ts";
import type { AgentKind, AgentSettings } from "../core/settings.ts";
import type { Agent } from "./agent.ts";
import { ExecAgent } from "./exec-agent.ts";
import { ModuleAgent } from "./module-agent.ts";
import type { ReadLine } from "./stream/facts.ts";

/** A kind of agent that a part brings. */
export interface AgentKindEntry {
  readonly kind: AgentKind;
  make(settings: AgentSettings): Agent;
  /** Of a coding agent: how its stream is read by those who only look. */
  newReader?(): ReadLine;
  /** It takes messages while it runs. */
  readonly takesMessages?: true;
}

const BUILT_IN: readonly AgentKindEntry[] = [
  { kind: "exec", make: (settings) => new ExecAgent(settings) },
  { kind: "module", make: (settings) => new ModuleAgent(settings) },
];

export class AgentRegistry {
  private readonly agents = new Map<string, Agent>();

  /** @throws ErrInvalidConfig when an agent is of a kind that is not built in */
  constructor(configured: readonly AgentSettings[], kinds: readonly AgentKindEntry[] = []) {
    const known = new Map([...BUILT_IN, ...kinds].map((entry) => [entry.kind, entry]));
    this.agents.set(BUILT_IN_EXEC.name, new ExecAgent(BUILT_IN_EXEC));
    for (const settings of configured) {
      const { name, kind } = settings;
      const entry = known.get(kind);
      if (entry === undefined)
        throw new ErrInvalidConfig(`agents: ${name}: the kind ${kind} is not built in`);
      this.agents.set(name, entry.make(settings));
    }
  }

  get(name: string): Agent | undefined {
    return this.agents.get(name);
  }

  /** Has every agent make ready what its first run would wait for. */
  warmUp(): void {
    for (const agent of this.agents.values()) agent.warmUp();
  }
}
