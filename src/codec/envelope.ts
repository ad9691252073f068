/**
 * Decodes the JSON of `<result>{…}</result>` into an Envelope or a list of problems. It accepts loose forms (one string for a
 * list, snake_case, null for a missing value), but it is strict about everything that would change the plan.
 */
import { compact } from "../core/compact.ts";
import type { Checkpoint, Envelope, EnvelopeStatus } from "../core/envelope.ts";
import { isObject } from "../core/json-object.ts";
import { explainBadKey, isOutputKey } from "../core/kv.ts";
import { KV_VALUE_BYTES_MAX, OUTPUT_DEPTH_MAX, TIMER_MS_MAX } from "../core/limits.ts";
import { foldId } from "../core/names.ts";
import { isDeeperThan } from "../core/nesting.ts";
import { readNode, readNodeStatus } from "./envelope-node.ts";
import { isNothing, LenientValues, member, shapeFound } from "./lenient-values.ts";
import { shorten } from "./schema.ts";

export type DecodedEnvelope =
  | { envelope: Envelope; problems?: undefined }
  /** Each problem begins with its place: "next.addNodes[0].id: …". */
  | { envelope?: undefined; problems: string[] };

export interface EnvelopeOptions {
  /** The status when the result has none. When left out, a missing status is a problem. */
  missingStatus?: EnvelopeStatus;
}

const STATUSES: readonly EnvelopeStatus[] = ["success", "fail", "checkpoint"];
const ADDED_NODES_MAX = 1000;
/** At most this many problems are reported. More would hide the first ones. */
const PROBLEMS_MAX = 20;

/** The fields of a result, with all accepted spellings. */
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
  if (!isObject(value)) return { problems: ["the result is not a JSON object"] };
  if (isDeeperThan(value, OUTPUT_DEPTH_MAX))
    return { problems: [`the result is nested deeper than ${OUTPUT_DEPTH_MAX} levels`] };
  const values = new LenientValues();
  const field = (name: keyof typeof FIELDS): unknown => member(value, FIELDS[name]);
  const status = readStatus(values, field("status"), options.missingStatus);
  const summary = values.text("summary", field("summary")) ?? "";
  const checkpoint =
    status === "checkpoint" ? readCheckpoint(values, field("checkpoint"), summary) : undefined;
  const confidence = readConfidence(values, field("confidence"));
  const extra = Object.fromEntries(Object.entries(value).filter(([key]) => !KNOWN.has(key)));
  const envelope: Envelope = compact({
    status: status ?? "fail",
    summary,
    filesChanged: values.lines(field("filesChanged"), ["path", "file"]),
    commandsRun: values.lines(field("commandsRun"), ["command", "cmd"]),
    errors: values.lines(field("errors"), ["message", "error"]),
    next: readNext(values, field("next")),
    checkpoint,
    confidence,
    outputs: readOutputs(values, field("outputs")),
    output: field("output"),
    extra: Object.keys(extra).length === 0 ? undefined : extra,
  });
  return values.problems.length === 0
    ? { envelope }
    : { problems: values.problems.slice(0, PROBLEMS_MAX) };
}

function readStatus(
  values: LenientValues,
  value: unknown,
  missing: EnvelopeStatus | undefined,
): EnvelopeStatus | undefined {
  if (isNothing(value) && missing !== undefined) return missing;
  return values.word("status", value, STATUSES);
}

function readConfidence(values: LenientValues, value: unknown): number | undefined {
  if (isNothing(value)) return undefined;
  const number = typeof value === "string" ? Number.parseFloat(value) : value;
  if (typeof number === "number" && number >= 0 && number <= 100)
    return number > 1 ? number / 100 : number;
  values.bad("confidence", `expected a number from 0 to 1, found ${shapeFound(value)}`);
  return undefined;
}

function readCheckpoint(
  values: LenientValues,
  value: unknown,
  summary: string,
): Checkpoint | undefined {
  const at = "checkpoint";
  const object = isObject(value) ? value : isNothing(value) ? {} : { question: value };
  const asked = values.text(`${at}.question`, object["question"]) ?? "";
  const question = asked.trim() === "" ? summary : asked;
  if (question.trim() === "") values.bad(`${at}.question`, "a checkpoint needs a question");
  const choices = values.lines(object["options"], ["label", "title", "value", "id"]);
  const timeoutMs = values.integer(
    `${at}.timeout_ms`,
    member(object, ["timeout_ms", "timeoutMs"]),
    1,
    TIMER_MS_MAX,
  );
  const fallback = values.text(`${at}.default`, object["default"]);
  if (timeoutMs !== undefined && fallback === undefined)
    values.bad(`${at}.default`, "a time limit needs a safe default");
  if (fallback !== undefined && choices.length > 0 && !choices.includes(fallback))
    values.bad(`${at}.default`, `it is none of the options`);
  return compact({
    question,
    context: values.text(`${at}.context`, object["context"]) ?? "",
    options: choices,
    timeout_ms: timeoutMs,
    default: fallback,
  });
}

function readOutputs(values: LenientValues, value: unknown): Record<string, unknown> {
  if (isNothing(value)) return {};
  if (!isObject(value)) {
    values.bad("outputs", `expected values by key, found ${shapeFound(value)}`);
    return {};
  }
  for (const [key, one] of Object.entries(value)) {
    const fault = explainBadKey(key);
    if (fault !== undefined) values.bad("outputs", fault);
    else if (isOutputKey(key)) values.bad(`outputs.${key}`, "is written by mailchute itself");
    else if (Buffer.byteLength(JSON.stringify(one)) > KV_VALUE_BYTES_MAX)
      values.bad(`outputs.${key}`, `is larger than ${KV_VALUE_BYTES_MAX} bytes`);
  }
  return value;
}

function readNext(values: LenientValues, value: unknown): Envelope["next"] {
  if (isNothing(value)) return { addNodes: [], setStatus: [] };
  if (!isObject(value)) {
    values.bad("next", `expected addNodes and setStatus, found ${shapeFound(value)}`);
    return { addNodes: [], setStatus: [] };
  }
  for (const key of Object.keys(value))
    if (!["addNodes", "add_nodes", "setStatus", "set_status"].includes(key))
      values.bad(`next.${shorten(key)}`, "is not known; known are addNodes and setStatus");
  const added = values.objects("next.addNodes", member(value, ["addNodes", "add_nodes"]));
  if (added.length > ADDED_NODES_MAX)
    values.bad("next.addNodes", `more than ${ADDED_NODES_MAX} nodes`);
  const seen = new Set<string>();
  const addNodes = added.slice(0, ADDED_NODES_MAX).map(([place, object]) => {
    const node = readNode(values, place, object);
    if (seen.has(foldId(node.id))) values.bad(`${place}.id`, `${shorten(node.id)} is used twice`);
    seen.add(foldId(node.id));
    return node;
  });
  const setStatus = values
    .objects("next.setStatus", member(value, ["setStatus", "set_status"]))
    .map(([place, object]) => ({
      id: values.id(`${place}.id`, member(object, ["id", "nodeId", "node_id", "node"])),
      status: readNodeStatus(values, `${place}.status`, object["status"]),
    }));
  return { addNodes, setStatus };
}
