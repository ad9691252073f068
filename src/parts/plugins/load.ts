/** Loads the plugins that config.yaml names, and checks what they bring. Each is loaded once in a process. */
import { isAbsolute } from "node:path";
import { compileCheck } from "../../codec/schema.ts";
import type { TSchema } from "../../codec/typebox.ts";
import { ErrPlugin, messageOf } from "../../core/errors.ts";
import { isObject } from "../../core/json-object.ts";
import { AGENT_KINDS, type PluginSettings } from "../../core/settings.ts";
import { suggest } from "../../core/suggest.ts";
import { defaultOf, fileOfPackage } from "../../host/load-module.ts";
import { readVersion } from "../../host/package.ts";
import {
  type JsonSchema,
  type LoadedPlugin,
  type LoadPlugins,
  PLUGIN_API,
  type Plugin,
} from "../../plugin.ts";

type Fits = (one: Record<string, unknown>) => boolean;
const isCall = (one: unknown): boolean => typeof one === "function";
const hasCall = (one: unknown, name: string): boolean => isObject(one) && isCall(one[name]);
/** What each part of a plugin holds, by name. */
const PARTS: Readonly<Record<string, readonly [what: string, fits: Fits]>> = {
  kinds: ["an object with make()", (one) => hasCall(one, "make")],
  gates: ["a function", isCall],
  verbs: [
    "an object with a summary, and a command of defineCommand",
    ({ summary, command }) => typeof summary === "string" && hasCall(command, "run"),
  ],
};
const OTHER_MEMBERS = ["name", "version", "api", "settings"];
const NAME = /^[a-z][a-z0-9-]{0,31}$/;
const MEND = "mend the plugin, or remove it from plugins in config.yaml";

export const loadPlugins: LoadPlugins = async ({ plugins, agents }, stateDir) => {
  const loaded: LoadedPlugin[] = [];
  for (const one of plugins) loaded.push(await loadOne(one, stateDir));
  checkNames(loaded);
  for (const { name, kind, settings = {} } of agents) {
    if (AGENT_KINDS.some((one) => one === kind)) continue;
    const brought = loaded.flatMap(({ plugin }) => Object.entries(plugin.kinds ?? {}));
    const [, found] = brought.find(([own]) => own === kind) ?? [];
    if (found === undefined) {
      const known = [...AGENT_KINDS, ...brought.map(([own]) => own)];
      const near = suggest(kind, known);
      throw fault(
        `agents: ${name} is of kind ${kind}, which is not built in, and no plugin brings it`,
        near === undefined ? `known are: ${known.join(", ")}` : `did you mean "${near}"?`,
      );
    }
    const wrong = explainBad(found.settings, settings);
    if (wrong !== undefined)
      throw fault(`agents: settings of ${name}, of kind ${kind}: ${wrong}`, SAID);
  }
  return loaded;
};

/** The default exports by file, so that a plugin in TypeScript is one module for all its agents, too. */
const files = new Map<string, Promise<unknown>>();

const SAID = "correct them in config.yaml, as the plugin's documents say";

function fault(message: string, hint: string, path?: string): ErrPlugin {
  return new ErrPlugin(message, { phase: "plugins", hint, ...(path && { path }) });
}

async function loadOne(
  { path, settings = {} }: PluginSettings,
  stateDir: string,
): Promise<LoadedPlugin> {
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
  const wrong = explainBadPlugin(plugin);
  if (wrong !== undefined) throw fault(...wrong, path);
  const { settings: schema, name } = plugin as Plugin;
  const bad = explainBad(schema, settings);
  if (bad !== undefined) throw fault(`settings of the plugin ${name}: ${bad}`, SAID, path);
  return { plugin: plugin as Plugin, settings };
}

/** @returns what is wrong, and what to do */
function explainBadPlugin(plugin: unknown): [what: string, todo: string] | undefined {
  if (!isObject(plugin)) return ["its default export is not a plugin", MEND];
  const { name, api } = plugin;
  if (typeof name !== "string" || !NAME.test(name)) return ["the plugin has no name", MEND];
  if (api !== PLUGIN_API)
    return [
      `the plugin ${name} is for api ${String(api)} of plugins, and mailchute ${readVersion()} has api ${PLUGIN_API}`,
      `install a version of the plugin for api ${PLUGIN_API}, or another version of mailchute`,
    ];
  const known = [...OTHER_MEMBERS, ...Object.keys(PARTS)];
  for (const [part, ones] of Object.entries(plugin)) {
    if (ones === undefined || OTHER_MEMBERS.includes(part)) continue;
    const [what, fits] = PARTS[part] ?? [];
    if (what === undefined)
      return [`the plugin ${name} has ${part}: known are ${known.join(", ")}`, MEND];
    const bad = Object.entries(isObject(ones) ? ones : { [part]: undefined }).find(
      ([own, one]) =>
        !NAME.test(own) || one === null || one === undefined || fits?.(one as never) !== true,
    );
    if (bad !== undefined)
      return [
        `the plugin ${name}: ${part}: ${bad[0]} must have a name in small letters, and be ${what}`,
        MEND,
      ];
  }
  return undefined;
}

/** Two plugins with one name, or with one name for what they bring, would hide each other. */
function checkNames(loaded: readonly LoadedPlugin[]): void {
  const owners = new Map<string, string>(AGENT_KINDS.map((kind) => [`kinds ${kind}`, "mailchute"]));
  for (const { plugin } of loaded)
    for (const key of [
      `plugin ${plugin.name}`,
      ...["kinds", "verbs"].flatMap((part) =>
        Object.keys(plugin[part as "kinds"] ?? {}).map((own) => `${part} ${own}`),
      ),
    ]) {
      const owner = owners.get(key);
      if (owner !== undefined)
        throw fault(`two bring ${key}: ${owner} and the plugin ${plugin.name}`, MEND);
      owners.set(key, plugin.name);
    }
}

/** Why a value does not fit a schema; undefined when it fits, or there is none. */
function explainBad(schema: JsonSchema | undefined, value: unknown): string | undefined {
  return schema && compileCheck(withKinds(schema) as TSchema)(value)?.message;
}

const KIND = Symbol.for("TypeBox.Kind");

/** A plain JSON Schema as the library of schemas reads it: it looks for the kind of each, and not for its type. */
function withKinds(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withKinds);
  if (!isObject(schema) || KIND in schema) return schema;
  const { enum: values, type, ...rest } = schema;
  if (Array.isArray(values))
    return withKinds({ ...rest, anyOf: values.map((one) => ({ const: one })) });
  const word = "const" in schema ? "literal" : "anyOf" in schema ? "union" : type;
  const kind = typeof word === "string" ? word.replace(/^./, (c) => c.toUpperCase()) : "Any";
  const inner = Object.entries(schema).map(([key, one]) => [
    key,
    key === "properties" && isObject(one)
      ? Object.fromEntries(Object.entries(one).map(([name, of]) => [name, withKinds(of)]))
      : ["items", "anyOf", "additionalProperties"].includes(key)
        ? withKinds(one)
        : one,
  ]);
  return { ...Object.fromEntries(inner), [KIND]: kind };
}
