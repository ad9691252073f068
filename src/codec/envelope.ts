/**
 * The JSON of `<result>{…}</result>` in, an Envelope or readable problems out. Kind about form (one string for a list,
 * snake_case, null for nothing), strict about what would change the plan.
 */
import type { Checkpoint, Envelope, EnvelopeNode, EnvelopeStatus } from "../core/envelope.ts";
import { explainBadKey, explainBadScope, isOutputKey } from "../core/kv.ts";
import {
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
  KV_VALUE_BYTES_MAX,
  MAX_ATTEMPTS_MAX,
  OUTPUT_DEPTH_MAX,
} from "../core/limits.ts";
import { explainBadId, foldId } from "../core/names.ts";
import { isDeeperThan, isWiderThan } from "../core/nesting.ts";
import {
  NODE_PRIORITIES,
  NODE_STATUSES,
  type NodeDependency,
  type NodeInput,
  type NodePriority,
  type NodeStatus,
  type NodeType,
} from "../core/roadmap.ts";
import { suggest } from "../core/suggest.ts";
import { shorten } from "./schema.ts";

export type DecodedEnvelope =
  | { envelope: Envelope; problems?: undefined }
  /** Each names its place: "next.addNodes[0].id: …". */
  | { envelope?: undefined; problems: string[] };

export interface EnvelopeOptions {
  /** What a missing `status` means; left out = a missing status is a problem. */
  missingStatus?: EnvelopeStatus;
}

const STATUSES: readonly EnvelopeStatus[] = ["success", "fail", "checkpoint"];
const TYPES: readonly NodeType[] = [
  "plan",
  "epic",
  "milestone",
  "task",
  "verify",
  "integrate",
  "final_verify",
];
const ADDED_NODES_MAX = 1000;
const TIMER_MS_MAX = 2_147_483_647;
/** More would only bury the first. */
const PROBLEMS_MAX = 20;

/** A name and how else it is written. */
const FIELDS = {
  status: ["status"],
  summary: ["summary"],
  filesChanged: ["filesChanged", "files_changed"],
  commandsRun: ["commandsRun", "commands_run"],
  errors: ["errors", "error"],
  next: ["next"],
  checkpoint: ["checkpoint"],
  confidence: ["confidence"],
  outputs: ["outputs"],
  output: ["output"],
} as const;
const KNOWN: ReadonlySet<string> = new Set(Object.values(FIELDS).flat());

/** @param value the parsed JSON */
export function decodeEnvelope(value: unknown, options: EnvelopeOptions = {}): DecodedEnvelope {
  if (!isObject(value)) return { problems: ["the result is no JSON object"] };
  if (isDeeperThan(value, OUTPUT_DEPTH_MAX))
    return { problems: [`the result is nested deeper than ${OUTPUT_DEPTH_MAX} levels`] };
  const reader = new Reader();
  const field = (name: keyof typeof FIELDS): unknown => member(value, FIELDS[name]);
  const status = reader.status(field("status"), options.missingStatus);
  const summary = reader.text("summary", field("summary")) ?? "";
  const checkpoint =
    status === "checkpoint" ? reader.checkpoint(field("checkpoint"), summary) : undefined;
  const confidence = reader.confidence(field("confidence"));
  const extra = Object.fromEntries(Object.entries(value).filter(([key]) => !KNOWN.has(key)));
  const output = field("output");
  const envelope: Envelope = {
    status: status ?? "fail",
    summary,
    filesChanged: reader.lines(field("filesChanged"), ["path", "file"]),
    commandsRun: reader.lines(field("commandsRun"), ["command", "cmd"]),
    errors: reader.lines(field("errors"), ["message", "error"]),
    next: reader.next(field("next")),
    ...(checkpoint === undefined ? {} : { checkpoint }),
    ...(confidence === undefined ? {} : { confidence }),
    outputs: reader.outputs(field("outputs")),
    ...(output === undefined ? {} : { output }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
  return reader.problems.length === 0
    ? { envelope }
    : { problems: reader.problems.slice(0, PROBLEMS_MAX) };
}

class Reader {
  readonly problems: string[] = [];

  private bad(place: string, message: string): void {
    this.problems.push(`${place}: ${message}`);
  }

  status(value: unknown, missing: EnvelopeStatus | undefined): EnvelopeStatus | undefined {
    if (isNothing(value) && missing !== undefined) return missing;
    return this.word("status", value, STATUSES);
  }

  /** One of a few words; case and surrounding space do not count. */
  private word<W extends string>(
    place: string,
    value: unknown,
    words: readonly W[],
  ): W | undefined {
    const text = typeof value === "string" ? value.trim().toLowerCase() : undefined;
    const found = words.find((one) => one === text);
    if (found !== undefined) return found;
    const near = text === undefined || text === "" ? undefined : suggest(text, words);
    const hint = near === undefined ? "" : `; did you mean "${near}"?`;
    this.bad(
      place,
      `expected ${words.slice(0, -1).join(", ")} or ${words.at(-1)}, found ${shown(value)}${hint}`,
    );
    return undefined;
  }

  text(place: string, value: unknown): string | undefined {
    if (isNothing(value)) return undefined;
    if (typeof value === "string") return value;
    if (typeof value === "number" || typeof value === "boolean") return String(value);
    this.bad(place, `expected a text, found ${shown(value)}`);
    return undefined;
  }

  /** A list of texts; a text alone, and objects that hold one under a usual name, are taken too. */
  lines(value: unknown, names: readonly string[]): string[] {
    if (isNothing(value) || value === "") return [];
    const items: unknown[] = Array.isArray(value) ? value : [value];
    return items.flatMap((item) => {
      if (typeof item === "string") return [item];
      if (Array.isArray(item) && item.every((part) => typeof part === "string"))
        return [item.join(" ")];
      const inside = isObject(item) ? member(item, names) : undefined;
      if (typeof inside === "string") return [inside];
      return isNothing(item) ? [] : [JSON.stringify(item)];
    });
  }

  confidence(value: unknown): number | undefined {
    if (isNothing(value)) return undefined;
    const number = typeof value === "string" ? Number.parseFloat(value) : value;
    if (typeof number === "number" && number >= 0 && number <= 100)
      return number > 1 ? number / 100 : number;
    this.bad("confidence", `expected a number from 0 to 1, found ${shown(value)}`);
    return undefined;
  }

  checkpoint(value: unknown, summary: string): Checkpoint | undefined {
    const at = "checkpoint";
    const object = isObject(value) ? value : isNothing(value) ? {} : { question: value };
    const asked = this.text(`${at}.question`, object["question"]) ?? "";
    const question = asked.trim() === "" ? summary : asked;
    if (question.trim() === "") this.bad(`${at}.question`, "a checkpoint needs a question");
    const choices = this.lines(object["options"], ["label", "title", "value", "id"]);
    const timeoutMs = this.integer(
      `${at}.timeout_ms`,
      member(object, ["timeout_ms", "timeoutMs"]),
      1,
      TIMER_MS_MAX,
    );
    const fallback = this.text(`${at}.default`, object["default"]);
    if (timeoutMs !== undefined && fallback === undefined)
      this.bad(`${at}.default`, "a time limit needs a safe default");
    if (fallback !== undefined && choices.length > 0 && !choices.includes(fallback))
      this.bad(`${at}.default`, `${shown(fallback)} is none of the options`);
    return {
      question,
      context: this.text(`${at}.context`, object["context"]) ?? "",
      options: choices,
      ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
      ...(fallback === undefined ? {} : { default: fallback }),
    };
  }

  outputs(value: unknown): Record<string, unknown> {
    if (isNothing(value)) return {};
    if (!isObject(value)) {
      this.bad("outputs", `expected values by key, found ${shown(value)}`);
      return {};
    }
    for (const [key, one] of Object.entries(value)) {
      const fault = explainBadKey(key);
      if (fault !== undefined) this.bad("outputs", fault);
      else if (isOutputKey(key)) this.bad(`outputs.${key}`, "is written by mailchute itself");
      else if (Buffer.byteLength(JSON.stringify(one)) > KV_VALUE_BYTES_MAX)
        this.bad(`outputs.${key}`, `is larger than ${KV_VALUE_BYTES_MAX} bytes`);
    }
    return value;
  }

  next(value: unknown): Envelope["next"] {
    if (isNothing(value)) return { addNodes: [], setStatus: [] };
    if (!isObject(value)) {
      this.bad("next", `expected addNodes and setStatus, found ${shown(value)}`);
      return { addNodes: [], setStatus: [] };
    }
    for (const key of Object.keys(value))
      if (!["addNodes", "add_nodes", "setStatus", "set_status"].includes(key))
        this.bad(`next.${shorten(key)}`, "is not known; known are addNodes and setStatus");
    const added = this.objects("next.addNodes", member(value, ["addNodes", "add_nodes"]));
    if (added.length > ADDED_NODES_MAX)
      this.bad("next.addNodes", `more than ${ADDED_NODES_MAX} nodes`);
    const seen = new Set<string>();
    const addNodes = added.slice(0, ADDED_NODES_MAX).map(([place, object]) => {
      const node = this.node(place, object);
      if (seen.has(foldId(node.id))) this.bad(`${place}.id`, `${shown(node.id)} is there twice`);
      seen.add(foldId(node.id));
      return node;
    });
    const setStatus = this.objects(
      "next.setStatus",
      member(value, ["setStatus", "set_status"]),
    ).map(([place, object]) => ({
      id: this.id(`${place}.id`, member(object, ["id", "nodeId", "node_id", "node"])),
      status: this.nodeStatus(`${place}.status`, object["status"]),
    }));
    return { addNodes, setStatus };
  }

  private node(place: string, object: Record<string, unknown>): EnvelopeNode {
    const id = this.id(`${place}.id`, object["id"]);
    const type = isNothing(object["type"])
      ? "task"
      : this.word<NodeType>(`${place}.type`, object["type"], TYPES);
    const parent = this.optionalId(
      `${place}.parent`,
      member(object, ["parent", "parent_id", "parentId"]),
    );
    const priority = isNothing(object["priority"])
      ? undefined
      : this.word<NodePriority>(`${place}.priority`, object["priority"], NODE_PRIORITIES);
    const policy = member(object, ["retry_policy", "retryPolicy"]);
    const maxAttempts = this.integer(
      `${place}.max_attempts`,
      member(object, ["max_attempts", "maxAttempts"]) ??
        (isObject(policy) ? member(policy, ["max_attempts", "maxAttempts"]) : undefined),
      1,
      MAX_ATTEMPTS_MAX,
    );
    const timeoutMs = this.integer(
      `${place}.timeout_ms`,
      member(object, ["timeout_ms", "timeoutMs"]),
      1,
      TIMER_MS_MAX,
    );
    const goal = this.text(`${place}.goal`, member(object, ["goal", "description"]));
    const prompt = this.text(`${place}.prompt`, object["prompt"]);
    const agent = this.text(`${place}.agent`, object["agent"]);
    const role = this.text(`${place}.role`, object["role"]);
    const cwd = this.text(`${place}.cwd`, object["cwd"]);
    const exec = isNothing(object["exec"]) ? undefined : this.argv(`${place}.exec`, object["exec"]);
    const env = this.variables(`${place}.env`, object["env"]);
    // It becomes a member of the node's task.
    if (isDeeperThan(object["payload"], JSON_DEPTH_MAX - 1))
      this.bad(`${place}.payload`, `is nested deeper than ${JSON_DEPTH_MAX - 1} levels`);
    else if (isWiderThan(object["payload"], JSON_MEMBERS_MAX))
      this.bad(`${place}.payload`, `holds an object of more than ${JSON_MEMBERS_MAX} members`);
    return {
      id,
      type: type ?? "task",
      title: this.text(`${place}.title`, object["title"]) ?? id,
      ...(parent === undefined ? {} : { parent }),
      ...(priority === undefined ? {} : { priority }),
      dependencies: this.dependencies(
        `${place}.dependencies`,
        member(object, ["dependencies", "depends_on", "dependsOn", "after"]),
        id,
      ),
      ...(maxAttempts === undefined ? {} : { max_attempts: maxAttempts }),
      inputs: this.inputs(`${place}.inputs`, object["inputs"]),
      ...(goal === undefined ? {} : { goal }),
      ...(prompt === undefined ? {} : { prompt }),
      acceptance: this.lines(
        member(object, ["acceptance", "acceptance_criteria", "acceptanceCriteria"]),
        ["text", "title"],
      ),
      verify: this.programs(`${place}.verify`, object["verify"]),
      ...(exec === undefined ? {} : { exec }),
      ...(agent === undefined ? {} : { agent }),
      ...(role === undefined ? {} : { role }),
      capabilities: this.lines(object["capabilities"], ["name"]),
      ...(cwd === undefined ? {} : { cwd }),
      ...(env === undefined ? {} : { env }),
      ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
      ...(object["payload"] === undefined ? {} : { payload: object["payload"] }),
    };
  }

  private id(place: string, value: unknown): string {
    const text = typeof value === "number" ? String(value) : value;
    if (typeof text !== "string") {
      this.bad(place, `expected an id, found ${shown(value)}`);
      return "";
    }
    const fault = explainBadId(text);
    if (fault !== undefined) this.bad(place, `${shown(text)}: ${fault}`);
    return text;
  }

  private optionalId(place: string, value: unknown): string | undefined {
    return isNothing(value) ? undefined : this.id(place, value);
  }

  private nodeStatus(place: string, value: unknown): NodeStatus {
    if (typeof value === "string" && value.trim().toLowerCase() === "pending") return "open";
    return this.word<NodeStatus>(place, value, NODE_STATUSES) ?? "open";
  }

  private dependencies(place: string, value: unknown, own: string): NodeDependency[] {
    return list(value).map((item, i) => {
      const at = `${place}[${i}]`;
      const object: Record<string, unknown> = isObject(item) ? item : { id: item };
      const id = this.id(at, member(object, ["id", "node", "nodeId", "node_id"]));
      if (foldId(id) === foldId(own)) this.bad(at, "a node cannot wait for itself");
      const required = member(object, ["required", "required_status", "requiredStatus"]);
      return {
        id,
        required: isNothing(required)
          ? "done"
          : (this.word<NodeDependency["required"]>(at, required, ["done", "terminal"]) ?? "done"),
      };
    });
  }

  private inputs(place: string, value: unknown): NodeInput[] {
    return list(value).map((item, i) => {
      const at = `${place}[${i}]`;
      const [, textNode, textKey] =
        typeof item === "string" ? (/^([^:]+):(.+)$/s.exec(item) ?? []) : [];
      const object: Record<string, unknown> = isObject(item)
        ? item
        : { nodeId: textNode, key: textKey };
      const nodeId = this.text(at, member(object, ["nodeId", "node_id", "node"])) ?? "";
      const key = this.text(at, object["key"]) ?? "";
      const as = this.text(at, object["as"]);
      const fault = explainBadScope(nodeId) ?? explainBadKey(key);
      if (fault !== undefined) this.bad(at, fault);
      return { nodeId, key, ...(as === undefined ? {} : { as }) };
    });
  }

  private programs(place: string, value: unknown): string[][] {
    if (isNothing(value)) return [];
    if (typeof value === "string") return [["sh", "-c", value]];
    const items = list(value);
    if (items.length > 0 && items.every((item) => typeof item === "string"))
      return [this.argv(place, items)];
    return items.map((item, i) => this.argv(`${place}[${i}]`, item));
  }

  private argv(place: string, value: unknown): string[] {
    const isArgv =
      Array.isArray(value) &&
      value.length > 0 &&
      value[0] !== "" &&
      value.every((part) => typeof part === "string" && !part.includes("\0"));
    if (isArgv) return value as string[];
    this.bad(
      place,
      `expected a program and its arguments as a list of texts, found ${shown(value)}`,
    );
    return [];
  }

  private variables(place: string, value: unknown): Record<string, string> | undefined {
    if (isNothing(value)) return undefined;
    const isFit =
      isObject(value) &&
      Object.entries(value).every(
        ([name, one]) => /^[^=\0]+$/.test(name) && typeof one === "string" && !one.includes("\0"),
      );
    // Their values may be secrets: not shown.
    if (!isFit) this.bad(place, "expected texts by name");
    return isFit ? (value as Record<string, string>) : undefined;
  }

  private integer(place: string, value: unknown, min: number, max: number): number | undefined {
    if (isNothing(value)) return undefined;
    if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max)
      return value as number;
    this.bad(place, `expected a whole number from ${min} to ${max}, found ${shown(value)}`);
    return undefined;
  }

  private objects(place: string, value: unknown): [string, Record<string, unknown>][] {
    return list(value).flatMap((item, i): [string, Record<string, unknown>][] => {
      if (isObject(item)) return [[`${place}[${i}]`, item]];
      this.bad(`${place}[${i}]`, `expected an object, found ${shown(item)}`);
      return [];
    });
  }
}

function member(object: Record<string, unknown>, names: readonly string[]): unknown {
  const name = names.find((one) => Object.hasOwn(object, one));
  return name === undefined ? undefined : object[name];
}

function list(value: unknown): unknown[] {
  if (isNothing(value)) return [];
  return Array.isArray(value) ? value : [value];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null;
}

function shown(value: unknown): string {
  return isNothing(value) ? "nothing" : shorten(value);
}
