/** Makes the settings from `config.yaml`, the environment and flags, and notes the source of each value. Pure. */

import { explainBadCallback } from "../codec/task-codec.ts";
import type { TSchema } from "../codec/typebox.ts";
import { explainBadSettings } from "../core/bad-settings.ts";
import { CALLBACK_EVENTS, type CallbackFields } from "../core/callback.ts";
import { ErrInvalidConfig } from "../core/errors.ts";
import {
  type AgentSettings,
  DEFAULT_SETTINGS,
  isCoding,
  type SettingSource,
  type Settings,
} from "../core/settings.ts";
import { decodeConfig } from "./config-file.ts";
import { ConfigSchema } from "./config-schema.ts";
import { ENV_PREFIX, mailboxDirFrom } from "./environment.ts";
import { explainBadSetting, isGroup, propertiesOf } from "./explain-setting.ts";

export interface LoadedSettings {
  settings: Settings;
  /** The source of each setting, by its dotted path: "retry.max_attempts". A list is one setting. */
  sources: Record<string, SettingSource>;
  /** The absolute path of the task mailbox that the environment sets; undefined when it sets none. */
  mailboxDir: string | undefined;
  /** The config.yaml that was read; undefined when there is none. */
  file: string | undefined;
}

export interface SettingsSaid {
  /** Absolute path of config.yaml. */
  path: string;
  /** Its text; undefined when there is no such file. */
  text: string | undefined;
  env: NodeJS.ProcessEnv;
  /** Values given on the command line, by dotted path; undefined = not given. */
  flags: Readonly<Record<string, unknown>>;
}

/**
 * A flag overrides the environment, which overrides config.yaml, which overrides the default value.
 * @throws ErrInvalidConfig with the file and line:column, or the variable, or the flag
 */
export function decodeSettings({ path, text, env, flags }: SettingsSaid): LoadedSettings {
  const settings = structuredClone(DEFAULT_SETTINGS) as unknown as Tree;
  const sources: Record<string, SettingSource> = {};
  for (const leaf of leavesOf(ConfigSchema, [])) sources[leaf.path.join(".")] = "built-in";

  if (text !== undefined) {
    const found = decodeConfig(text, path);
    for (const { path: at, value } of found) {
      setAt(settings, at, value);
      sources[at.join(".")] = "config.yaml";
    }
  }
  for (const leaf of leavesOf(ConfigSchema, [])) {
    const dotted = leaf.path.join(".");
    for (const name of variablesOf(leaf.path)) {
      const value = env[name];
      if (value === undefined || value === "") continue;
      const scalar = fromText(value, leaf.schema);
      if (scalar === undefined) break;
      const fault = explainBadSetting(leaf.schema, scalar);
      if (fault !== undefined) {
        throw new ErrInvalidConfig(`${name}: ${fault}`, {
          phase: "environment",
          hint: `unset ${name} or set it to a value that fits`,
          found: scalar,
        });
      }
      setAt(settings, leaf.path, scalar);
      sources[dotted] = "environment";
      break;
    }
    const flag = flags[dotted];
    if (flag === undefined) continue;
    const fault = explainBadSetting(leaf.schema, flag);
    if (fault !== undefined)
      throw new ErrInvalidConfig(`the flag for ${dotted}: ${fault}`, {
        phase: "flags",
        found: flag,
      });
    setAt(settings, leaf.path, flag);
    sources[dotted] = "flag";
  }

  const whole = settings as unknown as Settings;
  whole.agents = whole.agents.map((agent) => withMeterOfAccount(agent, whole.accounts));
  const fault = explainBadSettings(whole) ?? explainBadCallbacks(whole);
  if (fault !== undefined) {
    throw new ErrInvalidConfig(fault, {
      ...(text === undefined ? {} : { path }),
      phase: "settings",
      hint: "`mailchute config` shows each value with its source once they agree",
    });
  }
  // The path of the mailbox is not a setting of config.yaml, because other programs must find it without reading YAML.
  return {
    settings: whole,
    sources,
    mailboxDir: mailboxDirFrom(env),
    file: text === undefined ? undefined : path,
  };
}

/** An agent that names an account with a meter has one, unless it says otherwise itself. */
function withMeterOfAccount(agent: AgentSettings, all: Settings["accounts"]): AgentSettings {
  const { account = "", accounts = [account], kind, meter } = agent;
  if (meter !== undefined || !(isCoding(agent) || kind === "exec")) return agent;
  const isMetered = accounts.some((name) => Object.hasOwn(all, name) && all[name]?.meter === true);
  return isMetered ? { ...agent, meter: true } : agent;
}

function explainBadCallbacks(settings: Settings): string | undefined {
  const fields: [string, CallbackFields][] = Object.entries(settings.groups).map(
    ([name, group]) => [`groups.${name}.`, group],
  );
  for (const [where, from] of [["", settings] as [string, CallbackFields], ...fields])
    for (const event of CALLBACK_EVENTS) {
      const callback = from[event];
      const fault = callback === undefined ? undefined : explainBadCallback(callback);
      if (fault !== undefined) return `${where}${event}: ${fault}`;
    }
  return undefined;
}

/** The environment variables of a setting. The first that is set is used. */
function variablesOf(path: readonly string[]): string[] {
  const names = [`${ENV_PREFIX}${path.join("_").toUpperCase()}`];
  const alias = MAILBOX_VARIABLES[path.join(".")];
  if (alias !== undefined) names.push(`MAILCHUTE_MAILBOX_${alias}`, `DROVER_MAILBOX_${alias}`);
  return [...new Set(names)];
}

const MAILBOX_VARIABLES: Readonly<Record<string, string>> = {
  mailbox_enabled: "ENABLED",
  "retention.outbox_days": "OUTBOX_RETENTION",
  "retention.failed_days": "FAILED_RETENTION",
};

interface Tree {
  [key: string]: unknown;
}

interface Leaf {
  path: string[];
  schema: TSchema;
}

function leavesOf(schema: TSchema, path: string[]): Leaf[] {
  return Object.entries(propertiesOf(schema)).flatMap(([key, child]) =>
    isGroup(child) ? leavesOf(child, [...path, key]) : [{ path: [...path, key], schema: child }],
  );
}

function setAt(tree: Tree, path: readonly string[], value: unknown): void {
  let at = tree;
  for (const key of path.slice(0, -1)) {
    at[key] ??= {};
    at = at[key] as Tree;
  }
  at[path[path.length - 1] ?? ""] = value;
}

/** Converts a variable's text to the type of the setting. Undefined for lists and records, which no variable can set. */
function fromText(text: string, schema: TSchema): unknown {
  const trimmed = text.trim();
  switch (schema["type"]) {
    case "integer":
    case "number":
      return /^[+-]?\d+(?:\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
    case "boolean":
      if (/^(?:1|true|yes|on)$/i.test(trimmed)) return true;
      if (/^(?:0|false|no|off)$/i.test(trimmed)) return false;
      return trimmed;
    case "array":
    case "object":
      return undefined;
    default:
      return trimmed;
  }
}
