/** `config.yaml`, the environment and flags in, one complete `Settings` out, with the source of each value. Writes nothing. */
import fs from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
} from "yaml";
import { ErrInvalidConfig, messageOf, systemCode } from "../core/errors.ts";
import { BATCH_CONCURRENCY_MAX, MAX_ATTEMPTS_MAX, WORKERS_MAX } from "../core/limits.ts";
import { PHASES } from "../core/phases.ts";
import {
  DEFAULT_SETTINGS,
  explainBadSettings,
  type SettingSource,
  type Settings,
} from "../core/settings.ts";
import { suggest } from "../core/suggest.ts";
import { visible } from "../core/visible.ts";
import { ENV_PREFIX, mailboxDirFrom } from "./environment.ts";
import { shorten } from "./schema.ts";
import { type TSchema, Type, Value } from "./typebox.ts";
import { findRepeatedKeys } from "./yaml-keys.ts";

/** A timer of Node cannot wait longer than this (ms). */
const TIMER_MS_MAX = 2_147_483_647;
const CONFIG_BYTES_MAX = 1024 * 1024;
const ALIASES_MAX = 100;
const DEPTH_MAX = 8;

const Ms = (minimum: number, description: string) =>
  Type.Integer({ minimum, maximum: TIMER_MS_MAX, description });
const Days = (description: string) => Type.Number({ minimum: 0, maximum: 36_500, description });
/** What becomes an argument, a path or the name of a variable. */
const Text = Type.String({ minLength: 1, pattern: "^[^\\u0000]*$" });
const Strict = { additionalProperties: false } as const;

const AgentSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 128 }),
    kind: Type.Union([
      Type.Literal("exec"),
      Type.Literal("module"),
      Type.Literal("codex"),
      Type.Literal("claude"),
    ]),
    program: Type.Optional(Text),
    args: Type.Optional(Type.Array(Type.String({ pattern: "^[^\\u0000]*$" }))),
    module: Type.Optional(Text),
    types: Type.Optional(Type.Array(Text)),
    capabilities: Type.Optional(Type.Array(Text)),
    default: Type.Optional(Type.Boolean()),
    timeout_ms: Type.Optional(Ms(1, "longest run of this agent's tasks")),
    phases: Type.Optional(
      Type.Array(Type.Union(PHASES.map((phase) => Type.Literal(phase))), {
        minItems: 1,
        uniqueItems: true,
        description:
          "phases of its work on nodes of the plan, in order; default: by the node's type",
      }),
    ),
    result: Type.Optional(
      Type.Union([Type.Literal("required"), Type.Literal("optional")], {
        description:
          "whether a program's run of a node must end with a <result>; default: required",
      }),
    ),
  },
  Strict,
);

/** The JSON Schema of `config.yaml`. */
export const ConfigSchema = Type.Object(
  {
    workers: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: WORKERS_MAX,
        description: "slots over all worker processes",
      }),
    ),
    processes: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 64, description: "worker processes" }),
    ),
    durability: Type.Optional(
      Type.Union([Type.Literal("power"), Type.Literal("process")], {
        description: "what acknowledged work survives: a power cut, or the death of any process",
      }),
    ),
    retention: Type.Optional(
      Type.Object(
        {
          outbox_days: Type.Optional(Days("results are kept this long")),
          failed_days: Type.Optional(Days("failed tasks are kept this long")),
        },
        Strict,
      ),
    ),
    retry: Type.Optional(
      Type.Object(
        {
          max_attempts: Type.Optional(
            Type.Integer({ minimum: 1, maximum: MAX_ATTEMPTS_MAX, description: "N means N runs" }),
          ),
          backoff_ms: Type.Optional(Ms(0, "wait before the second run; doubles each time")),
          backoff_max_ms: Type.Optional(Ms(0, "longest wait between two runs")),
        },
        Strict,
      ),
    ),
    lease_ttl_ms: Type.Optional(Ms(100, "how long a silent lease is respected")),
    heartbeat_ms: Type.Optional(Ms(10, "how often a worker renews its lease")),
    settle_ms: Type.Optional(
      Ms(0, "a file that does not parse is refused after it was quiet for this long"),
    ),
    grace_ms: Type.Optional(Ms(0, "from SIGTERM to SIGKILL")),
    timeout_ms: Type.Optional(Ms(0, "longest run of a task that sets none; 0 = no limit")),
    sweep_ms: Type.Optional(Ms(10, "longest wait between two looks at everything")),
    output_bytes_max: Type.Optional(
      Type.Integer({
        minimum: 1024,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "a program that writes more is stopped",
      }),
    ),
    batch_bytes_max: Type.Optional(
      Type.Integer({
        minimum: 1024,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "a larger batch is refused",
      }),
    ),
    batch_concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: BATCH_CONCURRENCY_MAX,
        description: "lines of a batch that run at once, when functions run them",
      }),
    ),
    env_allow: Type.Optional(
      Type.Array(Text, {
        description: "variables that programs get beside PATH, HOME and the like",
      }),
    ),
    roots: Type.Optional(
      Type.Array(Text, { description: "directories under which cwd and worktree must lie" }),
    ),
    uids: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0 }), { description: "owners whose files are accepted" }),
    ),
    mailbox_enabled: Type.Optional(
      Type.Boolean({ description: "false: the task mailbox is left alone" }),
    ),
    agents: Type.Optional(Type.Array(AgentSchema)),
  },
  { $id: "config", title: "mailchute config.yaml", ...Strict },
);

export interface LoadedSettings {
  settings: Settings;
  /** By dotted path of each leaf: "retry.max_attempts". Lists are one leaf. */
  sources: Record<string, SettingSource>;
  /** Where the environment puts the task mailbox; absolute. */
  mailboxDir: string | undefined;
  /** The config.yaml that was read; undefined when there is none. */
  file: string | undefined;
}

export interface LoadOptions {
  stateDir: string;
  env: NodeJS.ProcessEnv;
  /** Values given on the command line, by dotted path; undefined = not given. */
  flags?: Readonly<Record<string, unknown>>;
}

/**
 * Precedence: flags, environment, config.yaml, built-in.
 * @throws ErrInvalidConfig with the file and line:column, or the variable, or the flag
 */
export function loadSettings({ stateDir, env, flags = {} }: LoadOptions): LoadedSettings {
  const path = join(resolve(stateDir), "config.yaml");
  const settings = structuredClone(DEFAULT_SETTINGS) as unknown as Tree;
  const sources: Record<string, SettingSource> = {};
  for (const leaf of leavesOf(ConfigSchema, [])) sources[leaf.path.join(".")] = "built-in";

  const text = readConfig(path);
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
      const fault = faultOf(leaf.schema, scalar);
      if (fault !== undefined) {
        throw new ErrInvalidConfig(`${name}: ${fault}`, {
          phase: "environment",
          hint: `unset ${name} or set it to a value that fits`,
        });
      }
      setAt(settings, leaf.path, scalar);
      sources[dotted] = "environment";
      break;
    }
    const flag = flags[dotted];
    if (flag === undefined) continue;
    const fault = faultOf(leaf.schema, flag);
    if (fault !== undefined)
      throw new ErrInvalidConfig(`the flag for ${dotted}: ${fault}`, { phase: "flags" });
    setAt(settings, leaf.path, flag);
    sources[dotted] = "flag";
  }

  const whole = settings as unknown as Settings;
  const fault = explainBadSettings(whole);
  if (fault !== undefined) {
    throw new ErrInvalidConfig(fault, {
      ...(text === undefined ? {} : { path }),
      phase: "settings",
      hint: "`mailchute config` shows each value with its source once they agree",
    });
  }
  // The mailbox's place is not a setting of config.yaml: outside programs must find it without reading YAML.
  return {
    settings: whole,
    sources,
    mailboxDir: mailboxDirFrom(env),
    file: text === undefined ? undefined : path,
  };
}

/** The variables of a leaf, the strongest first. */
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
    child["type"] === "object"
      ? leavesOf(child, [...path, key])
      : [{ path: [...path, key], schema: child }],
  );
}

function propertiesOf(schema: TSchema): Record<string, TSchema> {
  return (schema["properties"] ?? {}) as Record<string, TSchema>;
}

function setAt(tree: Tree, path: readonly string[], value: unknown): void {
  let at = tree;
  for (const key of path.slice(0, -1)) {
    at[key] ??= {};
    at = at[key] as Tree;
  }
  at[path[path.length - 1] ?? ""] = value;
}

function faultOf(schema: TSchema, value: unknown): string | undefined {
  if (Value.Check(schema, value)) return undefined;
  const first = Value.Errors(schema, value).First();
  const choices = choicesOf(schema);
  const found = `found ${shorten(value)}`;
  if (choices !== undefined) return `expected ${choices.join(" or ")}, ${found}`;
  return `${(first?.message ?? "does not fit").replace(/^./, (c) => c.toLowerCase())}, ${found}`;
}

function firstLine(text: string): string {
  return text.split("\n")[0] ?? "";
}

function choicesOf(schema: TSchema): string[] | undefined {
  const anyOf = schema["anyOf"] as { const?: unknown }[] | undefined;
  return anyOf?.every((one) => typeof one.const === "string") === true
    ? anyOf.map((one) => String(one.const))
    : undefined;
}

/** A variable's text as the value its leaf wants; undefined for lists, which the environment cannot hold. */
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
      return undefined;
    default:
      return trimmed;
  }
}

function readConfig(path: string): string | undefined {
  try {
    // Not blocking: a pipe would keep us waiting for ever.
    const fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    try {
      const stats = fs.fstatSync(fd);
      if (!stats.isFile())
        throw new ErrInvalidConfig("cannot read config.yaml: it is no regular file", {
          path,
          phase: "read",
        });
      if (stats.size > CONFIG_BYTES_MAX) {
        throw new ErrInvalidConfig(
          `config.yaml has ${stats.size} bytes, more than the limit of ${CONFIG_BYTES_MAX}`,
          { path, phase: "read" },
        );
      }
      return new TextDecoder("utf-8", { fatal: true }).decode(fs.readFileSync(fd));
    } finally {
      fs.closeSync(fd);
    }
  } catch (error) {
    if (error instanceof ErrInvalidConfig) throw error;
    if (systemCode(error) === "ENOENT") return undefined;
    throw new ErrInvalidConfig(`cannot read config.yaml: ${messageOf(error)}`, {
      path,
      phase: "read",
      cause: error,
      hint: "check that it is a readable UTF-8 file",
    });
  }
}

/** The leaves that a text sets. @throws ErrInvalidConfig */
function decodeConfig(text: string, path: string): { path: string[]; value: unknown }[] {
  const lines = new LineCounter();
  const doc = parseDocument(text, {
    lineCounter: lines,
    // Looked for below: the library compares each key with each.
    uniqueKeys: false,
    strict: true,
    prettyErrors: false,
    logLevel: "error",
  });
  const reader = new ConfigReader(doc, path, lines);
  const broken = doc.errors[0] ?? doc.warnings[0];
  if (broken !== undefined)
    reader.fail(
      broken.pos[0],
      broken.message.replace(/\.$/, ""),
      "mend the YAML; nothing of it was used",
    );
  for (const at of findRepeatedKeys(doc.contents))
    reader.fail(at, "map keys must be unique", "mend the YAML; nothing of it was used");
  try {
    // Written out as well: what holds itself has no end.
    JSON.stringify(doc.toJS({ maxAliasCount: ALIASES_MAX }));
  } catch (error) {
    reader.fail(0, firstLine(messageOf(error)), "write values out instead of using aliases");
  }
  reader.object(doc.contents, ConfigSchema, []);
  return reader.leaves;
}

/** Walks the YAML along the schema, so that each fault has its line and column. */
class ConfigReader {
  readonly leaves: { path: string[]; value: unknown }[] = [];
  private readonly doc: Document.Parsed;
  private readonly path: string;
  private readonly lines: LineCounter;

  constructor(doc: Document.Parsed, path: string, lines: LineCounter) {
    this.doc = doc;
    this.path = path;
    this.lines = lines;
  }

  fail(offset: number, message: string, hint: string): never {
    const { line, col } = this.lines.linePos(offset);
    throw new ErrInvalidConfig(`line ${line}, column ${col}: ${visible(message)}`, {
      path: `${this.path}:${line}:${col}`,
      phase: "config.yaml",
      offset,
      hint,
    });
  }

  object(raw: unknown, schema: TSchema, path: string[]): void {
    const node = this.follow(raw);
    if (node === undefined || (isScalar(node) && node.value === null)) return;
    const at = node.range?.[0] ?? 0;
    const here = path.length === 0 ? "the file" : path.join(".");
    if (!isMap(node))
      this.fail(at, `${here} must hold settings by name`, "write `name: value` lines");
    if (path.length > DEPTH_MAX)
      this.fail(at, "nested too deep", "write values out instead of using aliases");
    for (const pair of node.items) {
      const keyNode = isNode(pair.key) ? pair.key : undefined;
      const key = isScalar(keyNode) ? String(keyNode.value) : "";
      const child = this.known(key, keyNode?.range?.[0] ?? at, schema, path);
      const childPath = [...path, key];
      if (child["type"] === "object") this.object(pair.value, child, childPath);
      else this.leaf(pair.value, child, childPath);
    }
  }

  private known(key: string, at: number, schema: TSchema, path: readonly string[]): TSchema {
    const properties = propertiesOf(schema);
    const child = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (child !== undefined) return child;
    const near = suggest(key, Object.keys(properties));
    const all = Object.keys(properties).join(", ");
    const where = path.length === 0 ? "" : ` in ${path.join(".")}`;
    return this.fail(
      at,
      `unknown setting ${shorten(key)}${where}`,
      near === undefined ? `known are: ${all}` : `did you mean "${near}"?`,
    );
  }

  private leaf(raw: unknown, schema: TSchema, path: string[]): void {
    const node = this.follow(raw);
    // `workers:` with nothing after it is not set; as in a file whose values are commented out.
    if (node === undefined || (isScalar(node) && node.value === null)) return;
    const items = schema["items"] as TSchema | undefined;
    if (items !== undefined && isSeq(node)) {
      for (const [index, item] of node.items.entries())
        this.item(item, items, [...path, String(index)]);
    } else {
      this.check(node, schema, path);
    }
    this.leaves.push({
      path,
      value: this.resolved(node.toJS(this.doc, { maxAliasCount: ALIASES_MAX }), path),
    });
  }

  private item(raw: unknown, schema: TSchema, path: string[]): void {
    const node = this.follow(raw);
    if (node === undefined) return;
    if (isMap(node) && schema["type"] === "object") {
      for (const pair of node.items) {
        const keyNode = isNode(pair.key) ? pair.key : undefined;
        const key = isScalar(keyNode) ? String(keyNode.value) : "";
        const child = this.known(key, keyNode?.range?.[0] ?? 0, schema, path);
        const value = this.follow(pair.value);
        if (value !== undefined) this.check(value, child, [...path, key]);
      }
    }
    this.check(node, schema, path);
  }

  private check(node: Node, schema: TSchema, path: readonly string[]): void {
    const fault = faultOf(schema, node.toJS(this.doc, { maxAliasCount: ALIASES_MAX }));
    if (fault !== undefined)
      this.fail(
        node.range?.[0] ?? 0,
        `${path.join(".")}: ${fault}`,
        "see `mailchute schema config`",
      );
  }

  private follow(raw: unknown): Node | undefined {
    if (!isNode(raw)) return undefined;
    return isAlias(raw) ? raw.resolve(this.doc) : raw;
  }

  /** Paths in the file are relative to the file. */
  private resolved(value: unknown, path: readonly string[]): unknown {
    const dir = dirname(this.path);
    const absolute = (text: string): string => (isAbsolute(text) ? text : resolve(dir, text));
    if (path[0] === "roots") return (value as string[]).map(absolute);
    if (path[0] !== "agents") return value;
    return (value as { module?: string }[]).map((agent) =>
      agent.module === undefined ? agent : { ...agent, module: absolute(agent.module) },
    );
  }
}
