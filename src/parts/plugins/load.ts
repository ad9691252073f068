/** Loads the plugins that config.yaml names, and checks what they bring. Each file is loaded once in a process. */
import { isAbsolute } from "node:path";
import type { AgentMaker, AgentPlace } from "../../agents/coding-kind.ts";
import { ModuleAgent } from "../../agents/module-agent.ts";
import { compileCheck, optional } from "../../codec/schema.ts";
import { type TSchema, Type } from "../../codec/typebox.ts";
import { ErrPlugin, messageOf } from "../../core/errors.ts";
import { isObject } from "../../core/json-object.ts";
import { BUILT_IN_EXEC } from "../../core/matching.ts";
import { AGENT_KINDS, type PluginSettings } from "../../core/settings.ts";
import { suggest } from "../../core/suggest.ts";
import { defaultOf, fileOfPackage } from "../../host/load-module.ts";
import { readVersion } from "../../host/package.ts";
import type { JsonSchema, LoadedPlugin, LoadPlugins, Plugin } from "../../plugin.ts";
import { PLUGIN_API } from "../../plugin.ts";
import { gateOf } from "./gate.ts";

const NAME = "^[a-z][a-z0-9-]{0,31}$";
const Strict = { additionalProperties: false } as const;
const Call = Type.Function([], Type.Any());
const Named = (one: TSchema): TSchema =>
  Type.Record(Type.String({ pattern: NAME }), one, { ...Strict });
const NAMED = {
  kinds: Named(Type.Object({ make: Call, settings: Type.Optional(Type.Unknown()) }, Strict)),
  gates: Named(Call),
  pages: Named(Type.Object({ title: Type.String(), render: Call }, Strict)),
  verbs: Named(
    Type.Object({ summary: Type.String(), command: Type.Object({ run: Call }) }, Strict),
  ),
};
const explainBadPlugin = compileCheck(
  Type.Object(
    {
      name: Type.String({ pattern: NAME }),
      api: Type.Number(),
      ...optional({ version: Type.String(), settings: Type.Unknown(), ...NAMED }),
    },
    Strict,
  ),
);

const MEND = "mend the plugin, or remove it from plugins in config.yaml";
const CORRECT = "correct them in config.yaml, as the plugin's documents say";

export const loadPlugins: LoadPlugins = async ({ plugins, agents }, stateDir) => {
  const loaded: LoadedPlugin[] = [];
  const kindOf = new Map([BUILT_IN_EXEC, ...agents].map(({ name, kind }) => [name, kind]));
  for (const one of plugins) {
    const plugin = await loadOne(one, stateDir);
    const settings = one.settings ?? {};
    const gates = Object.entries(plugin.gates ?? {}).map(([name, decide]) =>
      gateOf(`${plugin.name}.${name}`, decide, settings, kindOf),
    );
    loaded.push({ plugin, settings, gates });
  }
  checkNames(loaded.map(({ plugin }) => plugin));
  const kinds = new Map(loaded.flatMap(({ plugin }) => Object.entries(plugin.kinds ?? {})));
  for (const { name, kind, settings = {} } of agents) {
    if (AGENT_KINDS.some((one) => one === kind)) continue;
    const found = kinds.get(kind);
    if (found === undefined) {
      const what = `agents: ${name} is of kind ${kind}, which is not built in, and no plugin brings it`;
      const known = [...AGENT_KINDS, ...kinds.keys()];
      const near = suggest(kind, known);
      throw fault(what, near ? `did you mean "${near}"?` : `known are: ${known.join(", ")}`);
    }
    const wrong = explainBad(found.settings, settings);
    if (wrong !== undefined)
      throw fault(`agents: settings of ${name}, of kind ${kind}: ${wrong}`, CORRECT);
  }
  return loaded;
};

/** The default exports by file, so that a plugin in TypeScript is one module for all its agents, too. */
const files = new Map<string, Promise<unknown>>();

async function loadOne({ path, settings = {} }: PluginSettings, stateDir: string): Promise<Plugin> {
  let plugin: unknown;
  try {
    const file = isAbsolute(path) ? path : await fileOfPackage(path, stateDir);
    const found = files.get(file) ?? defaultOf(file);
    files.set(file, found);
    plugin = await found;
  } catch (error) {
    const todo = "check its path in plugins of config.yaml, or install the package";
    throw fault(`the plugin cannot be loaded: ${messageOf(error)}`, todo, path);
  }
  if (!isObject(plugin)) throw fault("its default export is not a plugin", MEND, path);
  const { api, name } = plugin;
  if (api !== PLUGIN_API)
    throw fault(
      `the plugin ${String(name)} is for api ${String(api)} of plugins, and mailchute ${readVersion()} has api ${PLUGIN_API}`,
      `install a version of the plugin for api ${PLUGIN_API}, or another version of mailchute`,
      path,
    );
  const wrong = explainBadPlugin(plugin);
  if (wrong !== undefined) throw fault(`the plugin ${String(name)}: ${wrong.message}`, MEND, path);
  const bad = explainBad((plugin as unknown as Plugin).settings, settings);
  if (bad !== undefined)
    throw fault(`settings of the plugin ${String(name)}: ${bad}`, CORRECT, path);
  return plugin as unknown as Plugin;
}

function fault(message: string, hint: string, path?: string): ErrPlugin {
  return new ErrPlugin(message, { phase: "plugins", hint, ...(path && { path }) });
}

/** Two plugins with one name, or with one name for what they bring, would hide each other. */
function checkNames(plugins: readonly Plugin[]): void {
  const owners = new Map(AGENT_KINDS.map((kind) => [`kinds ${kind}`, "mailchute"]));
  for (const plugin of plugins) {
    const parts = (["kinds", "pages", "verbs"] as const).flatMap((part) =>
      Object.keys(plugin[part] ?? {}).map((own) => `${part} ${own}`),
    );
    for (const key of [`plugin ${plugin.name}`, ...parts]) {
      const owner = owners.get(key);
      if (owner !== undefined)
        throw fault(`two bring ${key}: ${owner} and the plugin ${plugin.name}`, MEND);
      owners.set(key, plugin.name);
    }
  }
}

/** Why a value does not fit a schema; undefined when it fits, or there is none. */
function explainBad(schema: JsonSchema | undefined, value: unknown): string | undefined {
  return schema && compileCheck(withKinds(schema) as TSchema)(value)?.message;
}

const KIND = Symbol.for("TypeBox.Kind");

/** A plain JSON Schema as the library of schemas reads it: by the kind of each, which it finds under a symbol. */
function withKinds(one: unknown): unknown {
  if (Array.isArray(one)) return one.map(withKinds);
  if (!isObject(one) || KIND in one) return one;
  const { enum: values, ...rest } = one;
  if (Array.isArray(values))
    return withKinds({ ...rest, anyOf: values.map((value) => ({ const: value })) });
  const word = "const" in one ? "literal" : "anyOf" in one ? "union" : one["type"];
  const kind = typeof word === "string" ? word.replace(/^./, (c) => c.toUpperCase()) : "Any";
  const inner = Object.entries(one).map(([key, value]) => [key, withKinds(value)]);
  return { ...Object.fromEntries(inner), [KIND]: kind };
}

/** What makes the agents of kinds that are not built in. @throws ErrPlugin */
export async function kindsIn({ settings, stateDir }: AgentPlace): Promise<AgentMaker> {
  const loaded = await loadPlugins(settings, stateDir);
  return {
    make(agent, enter) {
      const of = loaded.find(({ plugin }) => plugin.kinds?.[agent.kind] !== undefined);
      const made = of?.plugin.kinds?.[agent.kind]?.make(agent, of.settings);
      if (typeof made === "function") return new ModuleAgent(agent, made, enter);
      if (typeof made?.reopen === "function") return made;
      throw new TypeError("make() must return a function, or an object of class Agent");
    },
  };
}
