/**
 * Turns the facts of a coding agent's run into entries for people, in the same way for all kinds. Pure. Other files decide how the
 * entries look.
 */
import { parseObject } from "../../core/json-object.ts";
import type { Fact } from "./facts.ts";

export interface Entry {
  kind: EntryKind;
  /** May have several lines. Written by programs: not safe for a terminal. */
  text: string;
}

export type EntryKind =
  | "session"
  /** The text that the agent got. */
  | "asked"
  | "said"
  | "thought"
  | "call"
  | "result"
  | "failure"
  | "change"
  | "notice"
  | "limit"
  | "end"
  /** A line that does not belong to the program's protocol. */
  | "other";

/** How many lines are shown: the last lines of a result, the first lines of a text that is no answer. */
const RESULT_LINES = 3;
const SIDE_LINES = 3;
const ASKED_LINES = 12;
/** A line of a call or a result is cut here (characters). */
const LINE_MAX = 500;
/** A window of the quota is shown when at least this much of it is used (percent). */
const NEARLY_FULL_PCT = 80;

/** Follows one run. Lines must come in their order. */
export class Conversation {
  /** @param resultLines how many of the last lines of a result are shown */
  constructor(private readonly resultLines = RESULT_LINES) {}

  private session = "";
  private lastSaid = "";
  private readonly calls = new Map<string, string>();
  private lastCall = "";
  private background = 0;
  private readonly windows = new Map<string, string>();

  /** @param line the line of the program, shown when it is not of its protocol */
  take(line: string, facts: readonly Fact[]): Entry[] {
    return facts.flatMap((fact) => {
      const entry = this.entryOf(fact, line);
      return entry === undefined || entry.text.trim() === "" ? [] : [entry];
    });
  }

  private entryOf(fact: Fact, line: string): Entry | undefined {
    switch (fact.fact) {
      case "session":
        return this.noteSession(fact);
      case "asked":
        return { kind: "asked", text: firstLines(fact.text, ASKED_LINES) };
      case "said":
        this.lastSaid = fact.text;
        return { kind: "said", text: fact.text.trim() };
      case "thought":
        return { kind: "thought", text: firstLines(fact.text, SIDE_LINES) };
      case "tool_started":
        // The event at the end of the call holds the changes.
        if (fact.name === "file_change") return undefined;
        this.lastCall = fact.id;
        this.calls.set(fact.id, callText(fact.name, fact.input));
        return { kind: "call", text: this.calls.get(fact.id) ?? "" };
      case "tool_ended":
        return this.endCall(fact);
      case "file_changed":
        return { kind: "change", text: `${fact.change} ${fact.path}` };
      case "turn_ended":
        return this.endTurn(fact.end);
      case "quota":
        return this.noteQuota(fact);
      case "background":
        return this.noteBackground(fact.ids.length);
      case "unknown":
        // A reader learns nothing from an object of an unknown type.
        return parseObject(line) === undefined ? { kind: "other", text: oneLine(line) } : undefined;
      default:
        return noticeOf(fact);
    }
  }

  /** Shows a session only when it changes, because programs report it again in each turn. */
  private noteSession(fact: Extract<Fact, { fact: "session" }>): Entry | undefined {
    const text = ["session", fact.id, fact.model ?? ""].join(" ").trim();
    if (text === this.session) return undefined;
    this.session = text;
    return { kind: "session", text };
  }

  private endCall(fact: Extract<Fact, { fact: "tool_ended" }>): Entry | undefined {
    const call = this.calls.get(fact.id);
    this.calls.delete(fact.id);
    if (call === undefined && !fact.isError && fact.output === "") return undefined;
    // Several calls may run at once. Then the entry says which one has ended.
    const which = fact.id === this.lastCall || call === undefined ? "" : `${cutAt(call, 60)}: `;
    const lines = fact.output
      .replace(/^(?:Error: )?Exit code \d+\n/, "")
      .split("\n")
      .filter((one) => one.trim() !== "");
    const status = statusOf(fact.exitCode, fact.isError);
    const more = lines.length - this.resultLines;
    const head = [
      status,
      more > 0 ? `the last ${this.resultLines} of ${lines.length} lines:` : "",
      lines.length === 0 && status === "" ? "no output" : "",
    ].filter((one) => one !== "");
    const first = which + head.join(", ");
    const shown = lines.slice(-this.resultLines).map((one) => cutAt(one.trimEnd(), LINE_MAX));
    const text = [...(first === "" ? [] : [first]), ...shown].join("\n");
    return { kind: fact.isError ? "failure" : "result", text };
  }

  private endTurn(end: Extract<Fact, { fact: "turn_ended" }>["end"]): Entry {
    if (end.fault !== undefined)
      return { kind: "failure", text: `the turn failed (${end.fault}): ${end.text.trim()}` };
    const denied = end.denied.length === 0 ? "" : `; not allowed: ${end.denied.join(", ")}`;
    const isNew = end.text !== "" && end.text.trim() !== this.lastSaid.trim();
    return { kind: "end", text: `end of the turn${denied}${isNew ? `\n${end.text.trim()}` : ""}` };
  }

  /** Shown once for each state of a window, because programs report it with every answer. */
  private noteQuota(fact: Extract<Fact, { fact: "quota" }>): Entry | undefined {
    const window = fact.window ?? "the account";
    const until =
      fact.resetsAtMs === null ? "" : ` until ${new Date(fact.resetsAtMs).toISOString()}`;
    const isNear = (fact.usedPct ?? 0) >= NEARLY_FULL_PCT;
    const state = fact.isRejected ? "refused" : isNear ? "near" : "";
    if ((this.windows.get(window) ?? "") === state) return undefined;
    this.windows.set(window, state);
    if (state === "") return undefined;
    const text = fact.isRejected
      ? `limit: ${window} is used up${until}`
      : `limit: ${window} is used to ${Math.round(fact.usedPct ?? 0)} %`;
    return { kind: "limit", text };
  }

  private noteBackground(count: number): Entry | undefined {
    if (count === this.background) return undefined;
    this.background = count;
    const text = count === 0 ? "no background task runs" : `background tasks that run: ${count}`;
    return { kind: "notice", text };
  }
}

function noticeOf(fact: Fact): Entry | undefined {
  switch (fact.fact) {
    case "notice":
      return { kind: "notice", text: firstLines(fact.text, SIDE_LINES) };
    case "compacting":
      return { kind: "notice", text: "the conversation is made shorter" };
    case "compacted":
      return { kind: "notice", text: "the conversation was made shorter" };
    case "tool_denied":
      return { kind: "failure", text: `not allowed: ${fact.name}` };
    case "api_retry": {
      const delay = fact.delayMs === null ? "" : ` in ${Math.ceil(fact.delayMs / 1000)} s`;
      const why = [fact.status ?? "", fact.text].join(" ").trim();
      return { kind: "notice", text: `it asks again${delay}: ${oneLine(why)}` };
    }
    case "message":
      return fact.state === "cancelled"
        ? { kind: "notice", text: "a message to it was cancelled" }
        : undefined;
    default:
      return undefined;
  }
}

function statusOf(exitCode: number | null, isError: boolean): string {
  if (exitCode !== null) return exitCode === 0 && !isError ? "" : `exit ${exitCode}`;
  return isError ? "failed" : "";
}

/** The members of a tool's input that say most about the call. The first one that exists is shown. */
const TELLING = [
  "file_path",
  "path",
  "pattern",
  "query",
  "url",
  "description",
  "prompt",
  "task_id",
];
/** The shell that a program puts around a command. */
const SHELL = /^(?:\/\S*\/)?(?:ba|z|da)?sh -l?c (['"]?)(.*)\1$/s;

function callText(name: string, input: string): string {
  const fields = parseObject(input);
  const command = fields === undefined ? undefined : fields["command"];
  if (typeof command === "string") return oneLine(`$ ${command}`);
  if (fields === undefined)
    return name === "command_execution"
      ? oneLine(`$ ${SHELL.exec(input)?.[2] ?? input}`)
      : oneLine(`${name} ${input}`);
  const telling = TELLING.map((key) => fields[key]).find((value) => typeof value === "string");
  return oneLine(`${name} ${telling ?? JSON.stringify(fields)}`);
}

function oneLine(text: string): string {
  return cutAt(text.trim().replace(/\s*\n\s*/g, " ⏎ "), LINE_MAX);
}

function cutAt(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}…` : text;
}

function firstLines(text: string, max: number): string {
  const lines = text.trim().split(/\n(?:\s*\n)*/);
  return lines.length > max ? [...lines.slice(0, max), "…"].join("\n") : lines.join("\n");
}
