/** A kind of agent that a part brings. Its code is loaded when the first agent of that kind gets ready, because most pools have none. */
import { messageOf } from "../core/errors.ts";
import { type AttemptOutcome, deferred } from "../core/outcome.ts";
import type { AgentKind, AgentSettings, Settings } from "../core/settings.ts";
import { Agent, type Assignment } from "./agent.ts";
import type { EnterFunction } from "./module-agent.ts";
import type { ReadLine } from "./stream/facts.ts";

/** An entry in the list of kinds. `other`: for all kinds that are not built in. */
export interface AgentKindEntry<K extends AgentMaker = AgentMaker> {
  readonly kind: AgentKind | "other";
  load(): Promise<K>;
}

/** Where the agents work. */
export interface AgentPlace {
  readonly settings: Settings;
  readonly stateDir: string;
}

/** Makes the agents of one kind. */
export interface AgentMaker {
  /** @param enter see `EnterFunction` */
  make(settings: AgentSettings, enter?: EnterFunction): Agent;
}

/** A kind of coding agent. It also reads their streams. */
export interface CodingKind extends AgentMaker {
  /** Reads the stream of such an agent for people who only look. */
  newReader(): ReadLine;
  /** Whether such an agent takes messages while it runs. */
  takesMessages(settings: AgentSettings): boolean;
  /** How a person goes on in a session, on the program's own screen. */
  readonly byHand?: {
    /** Undefined when it is not known for this program: its agent then needs `screen`. */
    argv(settings: AgentSettings, sessionId: string): string[] | undefined;
    /** The variable that names the folder in which the program keeps its login and its sessions. */
    homeVariable?: string;
  };
}

/** Stands for an agent until the code of its kind is loaded. */
export class LoadedAgent extends Agent {
  private agent: Agent | undefined;

  constructor(
    settings: AgentSettings,
    private readonly entry: AgentKindEntry,
    private readonly enter?: EnterFunction,
  ) {
    super(settings);
  }

  override warmUp(): void {
    // The first run that needs the code reports the error.
    this.load().catch(() => {});
  }

  override async run(assignment: Assignment): Promise<AttemptOutcome> {
    let agent: Agent;
    try {
      agent = this.agent ?? (await this.load());
    } catch (error) {
      // This is no fault of the task, so it waits until the installation is complete again.
      const todo = this.entry.kind === "other" ? "mend its plugin" : "install mailchute again";
      return deferred(
        `cannot load the code for agents of kind ${this.settings.kind}: ${messageOf(error)}: ${todo}`,
      );
    }
    return await agent.run(assignment);
  }

  override reopen(assignment: Assignment): AttemptOutcome | undefined {
    return this.agent?.reopen(assignment);
  }

  override keepSession(assignment: Assignment): void {
    this.agent?.keepSession(assignment);
  }

  private async load(): Promise<Agent> {
    const kind = await this.entry.load();
    // Two runs may begin at once. They share one agent, which counts failures in a row.
    this.agent ??= kind.make(this.settings, this.enter);
    return this.agent;
  }
}
