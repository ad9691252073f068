/** `mailchute/plugin`: the types of a plugin, for people who write one: see docs/plugins.md. It loads next to nothing. */
import { Agent } from "./agents/agent.ts";
import type { Handler } from "./agents/handler.ts";
import type { CommandSpec } from "./cli/shell/command-spec.ts";
import type { ClosedGate, GateFacts } from "./core/documents.ts";
import type { AgentSettings, Settings } from "./core/settings.ts";

export type { Assignment, StopReason, StopSignal } from "./agents/agent.ts";
export type { Handler, HandlerContext } from "./agents/handler.ts";
export { type CommandSpec, type Context, defineCommand } from "./cli/shell/command-spec.ts";
export type { AttemptOutcome } from "./core/outcome.ts";
export type { AgentSettings } from "./core/settings.ts";
export type { Task } from "./core/task.ts";
export type { GateFacts };
export { Agent };

/** The version of this interface. A plugin for another one is refused. */
export const PLUGIN_API = 1;

/** The settings of a plugin in config.yaml, after its schema has checked them. */
export type OwnSettings = Readonly<Record<string, unknown>>;
/** A JSON Schema, or one of TypeBox. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Only `name` and `api` are needed. Each part is by name: small letters, digits and `-`. */
export interface Plugin {
  name: string;
  version?: string;
  api: number;
  /** What `settings` of this plugin in config.yaml must be: an object. */
  settings?: JsonSchema;
  kinds?: Readonly<Record<string, PluginKind>>;
  gates?: Readonly<Record<string, PluginGate>>;
  verbs?: Readonly<Record<string, PluginVerb>>;
  pages?: Readonly<Record<string, PluginPage>>;
}

export interface PluginKind {
  /** What `settings` of an agent of this kind must be: an object. */
  settings?: JsonSchema;
  /** Makes what runs the tasks of one agent: a function, as of a `module` agent, or an `Agent`. Called in a worker, before its first run. */
  make(agent: AgentSettings, settings: OwnSettings): Handler | Agent;
}

/**
 * Decides whether tasks with these facts may start now. It is asked again and again, and must be quick: no promise, no files of a net.
 * @param nowMs epoch ms
 * @returns the reason why they wait; undefined when they may start
 */
export type PluginGate = (
  task: GateFacts & { kind: string },
  nowMs: number,
  settings: OwnSettings,
) => undefined | string | { why: string; do?: string; until_ms?: number };

export interface PluginVerb {
  /** A line for the list of commands. */
  summary: string;
  command: CommandSpec;
}

export interface PluginPage {
  /** It stands in the navigation, too. */
  title: string;
  /** Called each time a browser asks. */
  render(
    page: { stateDir: string; query: Readonly<Record<string, string>>; nowMs: number },
    settings: OwnSettings,
  ): readonly PluginBlock[] | Promise<readonly PluginBlock[]>;
}

/** A text, a link to a page of `mailchute web`, or a time. */
export type PluginCell = string | { text: string; to: string } | { at_ms: number };
/** Data and no markup: the browser shows each text as it is. */
export type PluginBlock =
  | { kind: "heading"; text: string }
  | { kind: "text"; text: string; is_bad?: boolean }
  | { kind: "facts"; facts: readonly (readonly [name: string, value: PluginCell])[] }
  | {
      kind: "table";
      title?: string;
      columns: readonly string[];
      rows: readonly (readonly PluginCell[])[];
      none?: string;
    };

/** A plugin with its settings, and its gates as they are asked. */
export interface LoadedPlugin {
  readonly plugin: Plugin;
  readonly settings: OwnSettings;
  readonly gates: readonly LoadedGate[];
}

/** A gate that always answers. */
export interface LoadedGate {
  readonly name: string;
  /** @returns undefined when it is open. @param nowMs epoch ms */
  ask(facts: GateFacts, nowMs: number): ClosedGate | undefined;
}

/** @throws ErrPlugin when one cannot be loaded, or an agent is of a kind that none brings */
export type LoadPlugins = (
  settings: Pick<Settings, "plugins" | "agents">,
  stateDir: string,
) => Promise<readonly LoadedPlugin[]>;

/** Gives a plugin its types. */
export function definePlugin<const P extends Plugin>(plugin: P): P {
  return plugin;
}
