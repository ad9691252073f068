/** Reads the settings from the text of `config.yaml`. Each error names a line and column. */
import { dirname, isAbsolute, resolve } from "node:path";
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type YAMLMap,
} from "yaml";
import { shorten } from "../codec/schema.ts";
import type { TSchema } from "../codec/typebox.ts";
import { parseYaml } from "../codec/yaml.ts";
import { findRepeatedKeys } from "../codec/yaml-keys.ts";
import { explainBadAgent } from "../core/bad-settings.ts";
import { ErrInvalidConfig, messageOf } from "../core/errors.ts";
import type { AgentSettings, PluginSettings } from "../core/settings.ts";
import { suggest } from "../core/suggest.ts";
import { visibleMessage } from "../core/visible.ts";
import { ConfigSchema } from "./config-schema.ts";
import { explainBadSetting, isGroup, propertiesOf } from "./explain-setting.ts";

const ALIASES_MAX = 100;
const DEPTH_MAX = 8;
const MEND_IT = "mend the YAML; no setting of the file was used";
const WRITE_IT_OUT = "write values out instead of using aliases";

/** The settings in a text, in the order of the text. A list counts as one setting. @throws ErrInvalidConfig */
export function decodeConfig(text: string, path: string): { path: string[]; value: unknown }[] {
  const lines = new LineCounter();
  const doc = parseYaml(text, { lineCounter: lines });
  const reader = new ConfigReader(doc, path, lines);
  const broken = doc.errors[0] ?? doc.warnings[0];
  if (broken !== undefined) reader.fail(broken.pos[0], broken.message.replace(/\.$/, ""), MEND_IT);
  for (const at of findRepeatedKeys(doc.contents))
    reader.fail(at, "map keys must be unique", MEND_IT);
  try {
    // JSON.stringify fails for a value that contains itself.
    JSON.stringify(doc.toJS({ maxAliasCount: ALIASES_MAX }));
  } catch (error) {
    reader.fail(0, messageOf(error).split("\n")[0] ?? "", WRITE_IT_OUT);
  }
  reader.object(doc.contents, ConfigSchema, []);
  return reader.leaves;
}

/** Compares the YAML with the schema node by node, so that each error can name its line and column. */
class ConfigReader {
  readonly leaves: { path: string[]; value: unknown }[] = [];

  constructor(
    private readonly doc: Document.Parsed,
    private readonly path: string,
    private readonly lines: LineCounter,
  ) {}

  fail(offset: number, message: string, hint: string, found?: unknown): never {
    const { line, col } = this.lines.linePos(offset);
    throw new ErrInvalidConfig(`line ${line}, column ${col}: ${visibleMessage(message)}`, {
      path: `${this.path}:${line}:${col}`,
      phase: "config.yaml",
      offset,
      hint,
      found,
    });
  }

  object(raw: unknown, schema: TSchema, path: string[]): void {
    const node = this.follow(raw);
    if (node === undefined || (isScalar(node) && node.value === null)) return;
    const here = path.length === 0 ? "the file" : path.join(".");
    if (!isMap(node))
      this.fail(startOf(node), `${here} must hold settings by name`, "write `name: value` lines");
    if (path.length > DEPTH_MAX) this.fail(startOf(node), "nested too deep", WRITE_IT_OUT);
    for (const [value, child, childPath] of this.members(node, schema, path)) {
      if (isGroup(child)) this.object(value, child, childPath);
      else this.leaf(value, child, childPath);
    }
  }

  /** The value, schema and path of each member of a map. */
  private *members(
    map: YAMLMap,
    schema: TSchema,
    path: readonly string[],
  ): Generator<[unknown, TSchema, string[]]> {
    for (const pair of map.items) {
      const keyNode = isNode(pair.key) ? pair.key : map;
      const key = isScalar(keyNode) ? String(keyNode.value) : "";
      // Only editors use this key.
      if (path.length === 0 && key === "$schema") continue;
      yield [pair.value, this.known(key, startOf(keyNode), schema, path), [...path, key]];
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
    // `workers:` without a value changes no setting, because its value may be commented out.
    if (node === undefined || (isScalar(node) && node.value === null)) return;
    const items = schema["items"] as TSchema | undefined;
    if (items !== undefined && isSeq(node)) {
      for (const [index, item] of node.items.entries())
        this.item(item, items, [...path, String(index)]);
    } else if (schema["patternProperties"] !== undefined && isMap(node)) {
      this.record(node, schema, path);
    } else {
      this.check(node, schema, path);
    }
    this.leaves.push({ path, value: this.resolved(this.valueOf(node), path) });
  }

  /** A map in which the user chooses the names. */
  private record(map: YAMLMap, schema: TSchema, path: string[]): void {
    const [[pattern, child] = ["", {} as TSchema]] = Object.entries(
      schema["patternProperties"] as Record<string, TSchema>,
    );
    for (const pair of map.items) {
      const key = isScalar(pair.key) ? String(pair.key.value) : "";
      if (!new RegExp(pattern).test(key))
        this.failAt(
          isNode(pair.key) ? pair.key : map,
          path,
          `${shorten(key)} is not a name that fits ${pattern}`,
        );
      this.item(pair.value, child, [...path, key]);
    }
  }

  private item(from: unknown, schema: TSchema, path: string[]): void {
    const node = this.follow(from);
    if (node === undefined) return;
    // A limit is a number or an object: the fault in an object is that of its member.
    const choices = (schema["anyOf"] ?? [schema]) as TSchema[];
    const ofObject = choices.find((one) => one["type"] === "object");
    if (isMap(node) && ofObject !== undefined)
      for (const [raw, child, childPath] of this.members(node, ofObject, path)) {
        const value = this.follow(raw);
        if (value !== undefined) this.check(value, child, childPath);
      }
    this.check(node, schema, path);
    if (path[0] === "agents") this.checkAgent(node, path);
  }

  private checkAgent(node: Node, path: readonly string[]): void {
    const { contents } = this.doc;
    const hasPlugins = isMap(contents) && contents.has("plugins");
    const fault = explainBadAgent(this.valueOf(node) as AgentSettings, hasPlugins);
    const kind = isMap(node) ? this.follow(node.get("kind", true)) : undefined;
    if (fault !== undefined) this.failAt(kind ?? node, path, fault);
  }

  private check(node: Node, schema: TSchema, path: readonly string[]): void {
    const value = this.valueOf(node);
    const fault = explainBadSetting(schema, value);
    if (fault !== undefined) this.failAt(node, path, fault, value);
  }

  private failAt(node: Node, path: readonly string[], fault: string, found?: unknown): never {
    const message = `${path.join(".")}: ${fault}`;
    this.fail(startOf(node), message, "see `mailchute schema config`", found);
  }

  private valueOf(node: Node): unknown {
    return node.toJS(this.doc, { maxAliasCount: ALIASES_MAX });
  }

  private follow(raw: unknown): Node | undefined {
    if (!isNode(raw)) return undefined;
    return isAlias(raw) ? raw.resolve(this.doc) : raw;
  }

  /** Makes paths absolute. In config.yaml they are relative to its folder. */
  private resolved(value: unknown, path: readonly string[]): unknown {
    const dir = dirname(this.path);
    const absolute = (text: string): string => (isAbsolute(text) ? text : resolve(dir, text));
    if (path[0] === "roots") return (value as string[]).map(absolute);
    if (path[0] === "plugins")
      return (value as (string | PluginSettings)[]).map((one) => {
        const plugin = typeof one === "string" ? { path: one } : one;
        const isPackage = !/^[./]|\.[cm]?[jt]s$/.test(plugin.path);
        return isPackage ? plugin : { ...plugin, path: absolute(plugin.path) };
      });
    if (path[0] !== "agents") return value;
    return (value as Pick<AgentSettings, "module" | "meter">[]).map((agent) => {
      const { meter, module } = agent;
      if (module !== undefined) return { ...agent, module: absolute(module) };
      if (typeof meter !== "object" || meter.replay === undefined) return agent;
      return { ...agent, meter: { ...meter, replay: absolute(meter.replay) } };
    });
  }
}

/** Where a node begins in the text. */
function startOf(node: Node): number {
  return node.range?.[0] ?? 0;
}
