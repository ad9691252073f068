/**
 * Turns the lines of `claude -p --output-format stream-json` into facts. Tried with version 2.1.330; lines of older versions say
 * less. It remembers between lines whether a turn is open, and which messages of ours the program has read.
 */
import type { Fact, ReadLine } from "../../agents/stream/facts.ts";
import { readSessionId } from "../../agents/stream/read-values.ts";
import { parseObject } from "../../core/json-object.ts";
import { askedIn, isOfSubagent, saidBy, toolResults } from "./content.ts";
import { faultOfResult } from "./fault.ts";
import { type Json, numberAt, objectAt, objectsAt, textAt, textsAt } from "./fields.ts";
import { quotaOf } from "./quota.ts";
import { OpenTurn, usageOf } from "./usage.ts";

export function newClaudeReader(): ReadLine {
  const reader = new ClaudeReader();
  return (line) => reader.read(line);
}

/** Lines whose facts other lines report, too. */
const SILENT: ReadonlySet<string> = new Set([
  "control_response",
  "stream_event",
  "system/permission_denied",
  "system/task_notification",
  "system/task_started",
  "system/task_updated",
  "tool_progress",
]);

const MESSAGE_STATES: ReadonlyMap<string, "queued" | "read" | "done" | "cancelled"> = new Map([
  ["queued", "queued"],
  ["started", "read"],
  ["completed", "done"],
  ["cancelled", "cancelled"],
  ["discarded", "cancelled"],
  ["refused", "cancelled"],
]);

class ClaudeReader {
  private isTurnOpen = false;
  private readonly openTurnUsage = new OpenTurn();
  /** The name of the error in the last message of this turn. */
  private error: string | undefined;
  /** Our messages that were read, or were dropped as repeats. Their echo may come late and means nothing then. */
  private readonly known = new Set<string>();
  /** Messages whose echo has come. */
  private readonly echoed = new Set<string>();
  /** Our messages that were read and have no result yet. */
  private readonly open = new Set<string>();
  /** The ids of the results so far. */
  private readonly results = new Set<string>();

  read(line: string): Fact[] {
    const json = parseObject(line);
    if (json === undefined) return line.trim() === "" ? [] : [{ fact: "unknown", type: "" }];
    const type = textAt(json, "type") ?? "";
    return this.factsOf(type, json) ?? this.unknown(type, json);
  }

  private factsOf(type: string, json: Json): Fact[] | undefined {
    switch (type) {
      case "system":
        return this.system(json);
      case "assistant":
        return this.assistant(json);
      case "user":
        return json["isReplay"] === true ? this.echo(json) : toolResults(json);
      case "command_lifecycle":
        return this.lifecycle(json);
      case "rate_limit_event":
        return quotaOf(objectAt(json, "rate_limit_info") ?? {});
      case "result":
        return this.result(json);
      default:
        return undefined;
    }
  }

  private unknown(type: string, json: Json): Fact[] {
    const subtype = textAt(json, "subtype");
    const name = subtype === undefined ? type : `${type}/${subtype}`;
    return SILENT.has(name) || SILENT.has(type) ? [] : [{ fact: "unknown", type: name }];
  }

  private system(json: Json): Fact[] | undefined {
    switch (textAt(json, "subtype")) {
      case "init":
        return [...session(json), ...this.openTurn()];
      case "background_tasks_changed":
        return [{ fact: "background", ids: backgroundIds(json) }];
      case "status":
        return textAt(json, "status") === "compacting" ? [{ fact: "compacting" }] : [];
      case "compact_boundary":
        return [{ fact: "compacted" }];
      case "api_retry":
        return [
          {
            fact: "api_retry",
            status: numberAt(json, "error_status") ?? null,
            delayMs: numberAt(json, "retry_delay_ms") ?? null,
            text: textAt(json, "error") ?? "",
          },
        ];
      default:
        return undefined;
    }
  }

  private assistant(json: Json): Fact[] {
    const used = this.openTurnUsage.add(objectAt(json, "message") ?? {});
    // A subagent may work on after the turn that started it.
    if (isOfSubagent(json)) return [...used, ...saidBy(json)];
    this.error = textAt(json, "error");
    return [...this.openTurn(), ...used, ...saidBy(json)];
  }

  private openTurn(): Fact[] {
    if (this.isTurnOpen) return [];
    this.isTurnOpen = true;
    return [{ fact: "turn_started" }];
  }

  /** The state of one of our messages. A repeat that the program drops becomes "completed" without a start. */
  private lifecycle(json: Json): Fact[] | undefined {
    const uuid = textAt(json, "command_uuid");
    const state = MESSAGE_STATES.get(textAt(json, "state") ?? "");
    if (uuid === undefined || state === undefined) return undefined;
    if (state === "read") {
      // Its echo has reported this already.
      if (this.open.has(uuid)) return [];
      this.known.add(uuid);
      this.open.add(uuid);
    }
    return [{ fact: "message", uuid, state }];
  }

  /**
   * The echo of a message. Older versions report nothing else. With newer versions it may come before the start, after the end, and
   * also for a dropped repeat.
   */
  private echo(json: Json): Fact[] {
    const uuid = textAt(json, "uuid");
    if (uuid === undefined || isLocalOutput(json)) return [];
    const asked: Fact[] = this.echoed.has(uuid)
      ? []
      : [{ fact: "asked", uuid, text: askedIn(json) }];
    this.echoed.add(uuid);
    if (this.known.has(uuid)) return asked;
    this.known.add(uuid);
    if (!this.isTurnOpen) return [...asked, { fact: "message", uuid, state: "queued" }];
    this.open.add(uuid);
    return [...asked, { fact: "message", uuid, state: "read" }];
  }

  private result(json: Json): Fact[] {
    const uuid = textAt(json, "uuid");
    // A result whose line comes twice must be counted once.
    if (uuid !== undefined && this.results.has(uuid)) return [];
    if (uuid !== undefined) this.results.add(uuid);
    const fault = faultOfResult(json, this.error);
    const answers = this.answersOf(json);
    for (const uuid of answers ?? []) this.open.delete(uuid);
    this.isTurnOpen = false;
    this.openTurnUsage.end();
    this.error = undefined;
    const text = fault === undefined ? saidIn(json) : whyOf(json);
    const denied = objectsAt(json, "permission_denials").map(
      (one) => textAt(one, "tool_name") ?? "a tool",
    );
    // The costs come first, so they are known when the turn has ended.
    return [...usageOf(json), { fact: "turn_ended", end: { fault, text, answers, denied } }];
  }

  private answersOf(json: Json): readonly string[] | undefined {
    const told = textsAt(json, "user_message_uuids");
    if (told !== undefined) return told;
    // The program began this turn by itself, about a background task that has ended.
    if (textAt(objectAt(json, "origin") ?? {}, "kind") === "task-notification") return [];
    return this.open.size > 0 ? [...this.open] : undefined;
  }
}

function saidIn(result: Json): string {
  return textAt(result, "result") ?? textsAt(result, "errors")?.join("\n") ?? "";
}

/** Why a turn ended badly. */
function whyOf(result: Json): string {
  const said = saidIn(result);
  if (typeof result["is_error"] !== "boolean")
    return `its result does not say whether it is an error: ${said}`;
  return said || textAt(result, "subtype") || "it does not say why";
}

function session(json: Json): Fact[] {
  const id = readSessionId(json["session_id"]);
  if (id === undefined) return [];
  const version = textAt(json, "claude_code_version");
  const model = textAt(json, "model");
  return [
    {
      fact: "session",
      id,
      ...(version === undefined ? {} : { version }),
      ...(model === undefined ? {} : { model }),
    },
  ];
}

/** What a command like /compact prints is echoed as if it were a message. */
function isLocalOutput(json: Json): boolean {
  const content = textAt(objectAt(json, "message") ?? {}, "content") ?? "";
  return content.startsWith("<local-command-");
}

function backgroundIds(json: Json): string[] {
  return objectsAt(json, "tasks").flatMap((task) => textAt(task, "task_id") ?? []);
}
