/** `config.yaml` in, the settings that it names out, each fault with its line and column. */
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
} from "yaml";
import { shorten } from "../codec/schema.ts";
import type { TSchema } from "../codec/typebox.ts";
import { parseYaml } from "../codec/yaml.ts";
import { findRepeatedKeys } from "../codec/yaml-keys.ts";
import { ErrInvalidConfig, messageOf } from "../core/errors.ts";
import { type AgentSettings, explainBadAgent } from "../core/settings.ts";
import { suggest } from "../core/suggest.ts";
import { visibleMessage } from "../core/visible.ts";
import { ConfigSchema, explainBadSetting, propertiesOf } from "./config-schema.ts";

const ALIASES_MAX = 100;
const DEPTH_MAX = 8;

/** The leaves that a text sets. @throws ErrInvalidConfig */
export function decodeConfig(text: string, path: string): { path: string[]; value: unknown }[] {
  const lines = new LineCounter();
  const doc = parseYaml(text, { lineCounter: lines });
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
    if (path[0] === "agents") this.checkAgent(node, path);
  }

  private checkAgent(node: Node, path: readonly string[]): void {
    const agent = node.toJS(this.doc, { maxAliasCount: ALIASES_MAX }) as AgentSettings;
    const fault = explainBadAgent(agent);
    const kind = isMap(node) ? this.follow(node.get("kind", true)) : undefined;
    if (fault !== undefined)
      this.fail(
        (kind ?? node).range?.[0] ?? 0,
        `${path.join(".")}: ${fault}`,
        "see `mailchute schema config`",
      );
  }

  private check(node: Node, schema: TSchema, path: readonly string[]): void {
    const value: unknown = node.toJS(this.doc, { maxAliasCount: ALIASES_MAX });
    const fault = explainBadSetting(schema, value);
    if (fault !== undefined)
      this.fail(
        node.range?.[0] ?? 0,
        `${path.join(".")}: ${fault}`,
        "see `mailchute schema config`",
        value,
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

function firstLine(text: string): string {
  return text.split("\n")[0] ?? "";
}
