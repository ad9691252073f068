/** Agents of the kinds that plugins bring. */
import { Agent, type Assignment } from "../../agents/agent.ts";
import type { AgentMaker } from "../../agents/coding-kind.ts";
import { type EnterFunction, ModuleAgent } from "../../agents/module-agent.ts";
import { messageOf } from "../../core/errors.ts";
import { type AttemptOutcome, deferred, failed } from "../../core/outcome.ts";
import type { AgentSettings } from "../../core/settings.ts";
import type { LoadedPlugin } from "../../plugin.ts";
import { loadPlugins } from "./load.ts";

class PluginAgent extends Agent {
  private made: Pick<Agent, "run"> | undefined;

  constructor(
    settings: AgentSettings,
    private readonly enter?: EnterFunction,
  ) {
    super(settings);
  }

  override async run(assignment: Assignment): Promise<AttemptOutcome> {
    if (this.made === undefined) {
      const { stateDir, settings } = assignment;
      const loaded = await loadPlugins(settings, stateDir).catch((error: unknown) =>
        messageOf(error),
      );
      // This is no fault of the task, so it waits.
      if (typeof loaded === "string") return deferred(loaded);
      try {
        this.made ??= this.make(loaded);
      } catch (error) {
        const message = `cannot make an agent of kind ${this.settings.kind}: ${messageOf(error)}`;
        return failed("spawn", "ErrPlugin", message, { canRetry: false });
      }
    }
    return await this.made.run(assignment);
  }

  private make(loaded: readonly LoadedPlugin[]): Pick<Agent, "run"> {
    const { kind } = this.settings;
    for (const { plugin, settings } of loaded) {
      const made = plugin.kinds?.[kind]?.make(this.settings, settings);
      if (typeof made === "function") return new ModuleAgent(this.settings, made, this.enter);
      if (typeof made?.run === "function") return made;
    }
    throw new TypeError("its make() returned neither a function nor an agent");
  }
}

export const pluginKinds: AgentMaker = {
  make: (settings, enter) => new PluginAgent(settings, enter),
};
