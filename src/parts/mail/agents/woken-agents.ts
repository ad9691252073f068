/** The agents that a supervisor wakes: the coding agents of its settings, and the agents that were spawned from them. */
import { type AgentSettings, isCoding } from "../../../core/settings.ts";
import { statOf } from "../../../host/regular-file.ts";
import { explainBadName, HUMAN } from "../scope/scope.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { type AgentRecord, createAgent, listAgents, livesElsewhere } from "./agents.ts";

/** Two changes of the folder within this time may leave the same mtime (ms). */
const STAMP_MS = 100;

export class WokenAgents {
  /** For each agent, by its name in lower case: the name of its settings, as they write it. */
  readonly names = new Map<string, string>();
  /** The first task of each spawned agent, by its name. */
  readonly firstTasks = new Map<string, string>();
  /** Coding agents of the settings, by names in lower case. */
  private readonly configured: ReadonlyMap<string, AgentSettings>;
  private stamp: number | undefined;

  /** @param home the state tree */
  constructor(
    private readonly folder: MailFolder,
    private readonly home: string,
    agents: readonly AgentSettings[],
  ) {
    this.configured = new Map(
      agents
        .filter(isCoding)
        .map((agent) => [agent.name.toLowerCase(), agent] as const)
        .filter(([name]) => name !== HUMAN && explainBadName(name) === undefined),
    );
  }

  /** Makes the agents of the settings. @throws a system error */
  async open(wallMs: number): Promise<void> {
    const known = new Set(listAgents(this.folder, true).map(({ name }) => name));
    for (const [name, { kind }] of this.configured)
      if (!known.has(name)) {
        const draft = { name, type: kind, home: this.home, isOfSettings: true };
        await createAgent(this.folder, draft, wallMs);
      }
  }

  /** Makes the next `look` read all records again. */
  forget(): void {
    this.stamp = undefined;
  }

  /**
   * Reads which agents exist now.
   * @returns the spawned agents whose first task may not be submitted yet; empty when nothing has changed
   * @throws a system error: then the agents of the last look stay
   */
  look(): AgentRecord[] {
    const stamp = statOf(this.folder.path("agents"))?.mtimeMs;
    if (stamp !== undefined && stamp === this.stamp) return [];
    const isSure = stamp === undefined || Date.now() - stamp > STAMP_MS;
    // The list has no archived agents. The supervisor of another tree wakes the agents of that tree.
    const own = listAgents(this.folder).filter(
      (one) => !livesElsewhere(this.folder, one, this.home),
    );
    // Set only after the list was read: a list that cannot be read is tried again.
    this.stamp = isSure ? stamp : undefined;
    this.names.clear();
    this.firstTasks.clear();
    for (const { from, name, spawned } of own) {
      const settings = this.configured.get(from ?? name);
      if (settings === undefined) continue;
      this.names.set(name, settings.name);
      if (spawned !== null) this.firstTasks.set(name, spawned.task_id);
    }
    return own.filter(({ spawned }) => spawned !== null && spawned.task !== null);
  }
}
