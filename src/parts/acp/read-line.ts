/**
 * Reads the lines of an agent that speaks the Agent Client Protocol (version 1): JSON-RPC 2.0, one object a line. The ids of our requests
 * tell what an answer belongs to, so that a log can be read without our side of the dialogue. Pure. Rule: agentclientprotocol.com/protocol.
 */
import type { Fact, ReadLine, TurnFault, Usage } from "../../agents/stream/facts.ts";
import {
  asText,
  isObject,
  type JsonMembers,
  listOf,
  membersAt,
  readObjectLine,
  textOf,
} from "../../agents/stream/json-values.ts";
import { readCount, readSessionId, readUsdMicro } from "../../agents/stream/read-values.ts";
import { endTurn, faultOfError, faultOfSaid, messageOfError } from "./fault.ts";

/** The ids of our requests. Prompts count up from `prompt`. */
export const REQUEST = {
  initialize: 1,
  open: 2,
  authenticate: 3,
  model: 4,
  mode: 5,
  prompt: 100,
} as const;
export const ASKS_PERMISSION = "session/request_permission";

/** A request of the agent, which waits for an answer. */
export interface Ask {
  id: number | string;
  method: string;
  params: JsonMembers;
}

export interface AcpLine {
  facts: Fact[];
  /** The answer to a request of ours. */
  reply?: { id: number; result: JsonMembers; error: JsonMembers | undefined };
  ask?: Ask;
  /** The model works on the open prompt. */
  isAtWork?: true;
  /** A call of a tool that has ended well, and for which it did not ask. */
  unasked?: JsonMembers | undefined;
}

/** The pieces of a text, by the name of the update. */
const SAYS = new Map<string, "said" | "thought">([
  ["agent_message_chunk", "said"],
  ["agent_thought_chunk", "thought"],
]);

/** Why a turn ended, beside `end_turn`. An agent may also say `end_turn` at a limit: so only the checks of a task judge its work. */
const STOPS = new Map<string, readonly [fault: TurnFault, text: string]>([
  ["max_tokens", ["other", "its turn ended at the limit of tokens"]],
  ["max_turn_requests", ["other", "its turn ended at the limit of steps"]],
  ["refusal", ["request", "the model refused the task"]],
  ["cancelled", ["interrupted", "its turn was cancelled"]],
]);

export class AcpReader {
  private readonly tools = new ToolReader();
  /** False until the session is open: what comes before is its history. */
  private isOpen = false;
  /** The text that the model writes now. It comes in pieces. */
  private text = "";
  private textIs: "said" | "thought" = "said";
  /** What the session has cost so far (millionths of a dollar); undefined until that is known. */
  private costMicro: number | undefined;

  /** @param isResumed left out: the stream tells, as far as it can */
  constructor(private readonly isResumed?: boolean) {}

  take(line: string): AcpLine {
    const message = readObjectLine(line);
    if (message === undefined) return { facts: [{ fact: "unknown", type: "no JSON" }] };
    const { id } = message;
    const method = textOf(message["method"]);
    const params = membersAt(message, "params");
    if (method === "") return this.takeReply(message);
    if (typeof id === "number" || typeof id === "string")
      return {
        facts: [],
        ask: { id, method, params },
        ...(method === ASKS_PERMISSION ? { isAtWork: true } : {}),
      };
    if (method !== "session/update") return { facts: [{ fact: "unknown", type: method }] };
    return this.isOpen ? this.takeUpdate(membersAt(params, "update")) : { facts: [] };
  }

  /** The call for which it asks begins once that is allowed. Some programs report it in no other way before it is over. */
  begin({ params }: Ask): Fact[] {
    return [...this.flush(), ...this.tools.ask(membersAt(params, "toolCall"))];
  }

  private takeReply(message: JsonMembers): AcpLine {
    const { id } = message;
    if (typeof id !== "number") return { facts: [{ fact: "unknown", type: "no method" }] };
    const error = isObject(message["error"]) ? message["error"] : undefined;
    const result = membersAt(message, "result");
    const reply = { id, result, error };
    if (id === REQUEST.initialize) this.isOpen = false;
    if (id >= REQUEST.prompt) return { facts: this.endPrompt(result, error), reply };
    if (error !== undefined || id !== REQUEST.open) return { facts: [], reply };
    this.isOpen = true;
    const sessionId = readSessionId(result["sessionId"]);
    // A session that begins has cost nothing.
    if (!(this.isResumed ?? sessionId === undefined)) this.costMicro = 0;
    const facts: Fact[] = sessionId === undefined ? [] : [{ fact: "session", id: sessionId }];
    return { facts: [...facts, { fact: "turn_started" }], reply };
  }

  private endPrompt(result: JsonMembers, error: JsonMembers | undefined): Fact[] {
    const last = this.textIs === "said" ? this.text : "";
    const usage = usageOf(result);
    const facts = [...this.flush(), ...usage];
    this.tools.forget();
    if (error !== undefined) return [...facts, endTurn(faultOfError(error), messageOfError(error))];
    const reason = textOf(result["stopReason"]);
    // A turn that took tokens had an answer.
    const told = usage.length > 0 ? undefined : faultOfSaid(last);
    const [fault, text] = STOPS.get(reason) ?? [told, last];
    if (reason === "end_turn" || fault !== undefined) return [...facts, endTurn(fault, text)];
    return [...facts, endTurn("other", `its turn ended with ${reason || "no reason"}`)];
  }

  private takeUpdate(update: JsonMembers): AcpLine {
    const kind = textOf(update["sessionUpdate"]);
    const says = SAYS.get(kind);
    if (says !== undefined) {
      const text = textOf(membersAt(update, "content")["text"]);
      return { facts: this.write(says, text), isAtWork: true };
    }
    if (kind === "tool_call")
      return {
        facts: [...this.flush(), ...this.tools.begin(update)],
        isAtWork: true,
        unasked: this.tools.unasked,
      };
    if (kind === "tool_call_update")
      return {
        facts: [...this.flush(), ...this.tools.update(update)],
        unasked: this.tools.unasked,
      };
    if (kind === "plan") return { facts: [{ fact: "writing" }] };
    if (kind === "usage_update") return { facts: this.readCost(membersAt(update, "cost")) };
    if (
      /^(?:user_message_chunk|available_commands|current_mode|config_option|session_info)/.test(
        kind,
      )
    )
      return { facts: [] };
    return { facts: [{ fact: "unknown", type: kind }] };
  }

  private write(is: "said" | "thought", text: string): Fact[] {
    const before = is === this.textIs ? [] : this.flush();
    this.textIs = is;
    this.text += text;
    return [...before, { fact: "writing" }];
  }

  /** The text that is complete now. */
  private flush(): Fact[] {
    const { text, textIs: fact } = this;
    this.text = "";
    return text.trim() === "" ? [] : [{ fact, text }];
  }

  /** The agent gives the sum of the whole session. What an earlier run has cost was counted by that run. */
  private readCost({ amount, currency }: JsonMembers): Fact[] {
    const sum = currency === "USD" ? readUsdMicro(amount) : null;
    if (sum === null) return [];
    const more = Math.max(0, sum - (this.costMicro ?? sum));
    this.costMicro = sum;
    return more === 0 ? [] : [usageFact({ costUsdMicro: more })];
  }
}

/** Reads a stream without our side of it, for people who look. */
export function newAcpReader(): ReadLine {
  const reader = new AcpReader();
  return (line) => {
    const { facts, ask } = reader.take(line);
    if (ask === undefined) return facts;
    return [{ fact: "notice", text: `it asks: ${ask.method}` }, ...reader.begin(ask)];
  };
}

function usageFact(some: Partial<Usage>): Fact {
  const none = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, costUsdMicro: null };
  return { fact: "usage", of: "part", usage: { ...none, ...some } };
}

/** The tokens of a turn, which only some agents give: in the answer, or beside it. */
function usageOf(result: JsonMembers): Fact[] {
  const found = [membersAt(result, "usage"), membersAt(result, "_meta", "usage")].find(
    (one) => readCount(one["inputTokens"]) !== null,
  );
  if (found === undefined) return [];
  const count = (name: string): number => readCount(found[name]) ?? 0;
  const cachedInputTokens = count("cachedReadTokens");
  return [
    usageFact({
      inputTokens: count("inputTokens") + cachedInputTokens + count("cachedWriteTokens"),
      cachedInputTokens,
      outputTokens: count("outputTokens") + count("thoughtTokens"),
    }),
  ];
}

/** Reads the tool calls of one session; remembers which ones run. */
class ToolReader {
  /** By id. */
  private readonly open = new Map<string, { call: JsonMembers; wasAsked: boolean }>();
  /** The call that has ended well just now, if it did not ask for it. */
  unasked: JsonMembers | undefined;

  begin(call: JsonMembers, wasAsked = false): Fact[] {
    const id = textOf(call["toolCallId"]);
    const kind = textOf(call["kind"]);
    const name = textOf(call["name"]) || kind || "tool";
    const input = asText(call["rawInput"]) || textOf(call["title"]);
    this.open.set(id, { call, wasAsked });
    // Some calls are reported only when they are over.
    return [{ fact: "tool_started", id, name, input }, ...this.update(call)];
  }

  ask(call: JsonMembers): Fact[] {
    const id = textOf(call["toolCallId"]);
    const known = this.open.get(id);
    if (known === undefined) return id === "" ? [] : this.begin(call, true);
    known.wasAsked = true;
    return [];
  }

  /** An update that comes after the end of its turn says nothing new. */
  update(call: JsonMembers): Fact[] {
    const id = textOf(call["toolCallId"]);
    const status = textOf(call["status"]);
    const begun = this.open.get(id);
    this.unasked = undefined;
    if (begun === undefined) return [];
    if (status !== "completed" && status !== "failed") return [{ fact: "writing" }];
    this.open.delete(id);
    const content = listOf(call["content"]).filter(isObject);
    const said = content.map((one) => textOf(membersAt(one, "content")["text"])).join("\n");
    const output = said.trim() === "" ? asText(call["rawOutput"]) : said;
    const isError = status === "failed";
    const ended: Fact = { fact: "tool_ended", id, output, exitCode: null, isError };
    if (isError) return [ended];
    if (!begun.wasAsked) this.unasked = begun.call;
    const isEdit = /^(?:edit|delete|move)$/.test(textOf(begun.call["kind"]));
    const diffs = content.filter(({ type }) => type === "diff");
    const places = isEdit ? listOf(call["locations"]).filter(isObject) : [];
    const changed = diffs.length > 0 ? diffs : places;
    return [
      ended,
      ...changed.map(
        (one): Fact => ({ fact: "file_changed", path: textOf(one["path"]), change: "edit" }),
      ),
    ];
  }

  /** The turn has ended, and all its calls with it. */
  forget(): void {
    this.open.clear();
  }
}
