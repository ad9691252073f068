/**
 * Our side of the protocol of `codex app-server`: requests as lines, and the meaning of its lines. JSON-RPC without its version
 * member, one object per line. Pure. The program documents it: `codex app-server generate-json-schema`.
 */
import type { Fact, ReadLine } from "../../agents/stream/facts.ts";
import {
  asText,
  isObject,
  type JsonMembers,
  listOf,
  membersAt,
  readObjectLine,
  textOf,
} from "../../agents/stream/json-values.ts";
import { readSessionId } from "../../agents/stream/read-values.ts";
import {
  endTurn,
  faultOfMessage,
  faultOfTurnError,
  messageOfError,
  statusOfErrorInfo,
} from "./fault.ts";
import { ItemReader } from "./item-facts.ts";
import { readRateLimits, readUsage } from "./usage.ts";

export interface AppServerLine {
  facts: Fact[];
  /** The answer to a request of ours. `error`: why it was refused. */
  reply?: { id: number; result: JsonMembers; error: string | undefined };
  /** A request of the program, which waits for `answerLine`. */
  ask?: { id: number | string; method: string };
  /** The open turn. `turn/steer` and `turn/interrupt` must name it. */
  turnId?: string;
}

/** Reads the lines of one app-server that works on one thread of ours. */
export class AppServerReader {
  private readonly items = new ItemReader();
  /** Our thread. The program may start more threads for its own agents; their turns do not count. */
  private threadId = "";
  /** The turn that was begun last. */
  private turnId = "";
  /** Messages that the turn has read. */
  private read: string[] = [];

  take(line: string): AppServerLine {
    const message = readObjectLine(line);
    if (message === undefined) return { facts: [{ fact: "unknown", type: "no JSON" }] };
    const { id } = message;
    const method = textOf(message["method"]);
    if (method === "") return this.takeReply(message);
    if (typeof id === "number" || typeof id === "string")
      return { facts: [{ fact: "notice", text: `it asks: ${method}` }], ask: { id, method } };
    return this.takeNotification(method, membersAt(message, "params"));
  }

  private takeReply(message: JsonMembers): AppServerLine {
    const { id } = message;
    if (typeof id !== "number") return { facts: [{ fact: "unknown", type: "no method" }] };
    const result = membersAt(message, "result");
    if (isObject(message["error"])) {
      const error = messageOfError(message["error"]);
      // Only a thread that is being resumed can be lost. Later, such an answer is about something else.
      const isLost = this.threadId === "" && faultOfMessage(error) === "lost_session";
      return {
        facts: isLost ? [endTurn("lost_session", error)] : [],
        reply: { id, result, error },
      };
    }
    const reply = { id, result, error: undefined };
    const turnId = textOf(membersAt(result, "turn")["id"]);
    if (turnId !== "") return { facts: [], reply, turnId };
    // Only an answer to thread/start and thread/resume names the model beside the thread. There is one such answer.
    if (!isObject(result["thread"]) || typeof result["model"] !== "string" || this.threadId !== "")
      return { facts: [], reply };
    this.threadId = textOf(result["thread"]["id"]);
    return { facts: sessionOf(result["thread"], result["model"]), reply };
  }

  private takeNotification(method: string, params: JsonMembers): AppServerLine {
    const threadId = textOf(params["threadId"] ?? membersAt(params, "thread")["id"]);
    const isForeign = threadId !== "" && this.threadId !== "" && threadId !== this.threadId;
    if (isForeign) return { facts: [] };
    if (method === "turn/started") {
      this.read = [];
      this.turnId = textOf(membersAt(params, "turn")["id"]);
      return { facts: [{ fact: "turn_started" }], turnId: this.turnId };
    }
    return { facts: this.factsOf(method, params) };
  }

  private factsOf(method: string, params: JsonMembers): Fact[] {
    switch (method) {
      case "turn/completed": {
        const turn = membersAt(params, "turn");
        const isEarlier = this.turnId !== "" && ![this.turnId, ""].includes(textOf(turn["id"]));
        return isEarlier
          ? [{ fact: "unknown", type: `${method} of another turn` }]
          : this.readEnd(turn);
      }
      case "item/started":
        return [
          ...this.readReceipt(params),
          ...this.items.read("started", membersAt(params, "item")),
        ];
      case "item/completed":
        return this.items.read("completed", membersAt(params, "item"));
      case "thread/tokenUsage/updated":
        return readUsage(membersAt(params, "tokenUsage", "total"));
      case "account/rateLimits/updated":
        return readRateLimits(membersAt(params, "rateLimits"));
      // This version reports it by an item, older versions also by this line. A second notice does no harm.
      case "thread/compacted":
        return [{ fact: "compacted" }];
      case "error":
        return [readError(membersAt(params, "error"), params["willRetry"] === true)];
      case "warning":
      case "guardianWarning":
      case "configWarning":
      case "deprecationNotice":
        return [{ fact: "notice", text: textOf(params["message"] ?? params["summary"]) }];
      default:
        return isSilent(method) ? [] : [{ fact: "unknown", type: method }];
    }
  }

  private readReceipt(params: JsonMembers): Fact[] {
    const item = membersAt(params, "item");
    const uuid = textOf(item["clientId"]);
    if (item["type"] !== "userMessage" || uuid === "") return [];
    this.read.push(uuid);
    const text = listOf(item["content"]).map((part) => textOf(membersAt(part)["text"]));
    return [
      { fact: "message", uuid, state: "read" },
      { fact: "asked", uuid, text: text.join("\n") },
    ];
  }

  private readEnd(turn: JsonMembers): Fact[] {
    this.items.forget();
    const answers = this.read;
    this.read = [];
    const status = textOf(turn["status"]);
    if (status === "completed") return [endTurn(undefined, "", answers)];
    if (status === "interrupted")
      return [endTurn("interrupted", "its turn was interrupted", answers)];
    const error = membersAt(turn, "error");
    const text = messageOfError(error);
    return [endTurn(faultOfTurnError(text, error["codexErrorInfo"]), text, answers)];
  }
}

/** A reader for callers that want only the facts and send no answers. */
export function newAppServerReader(): ReadLine {
  const reader = new AppServerReader();
  return (line) => reader.take(line).facts;
}

/** True for pieces of a text that a later line has whole, and for changes that other lines report, too. */
function isSilent(method: string): boolean {
  return /(delta|progress|partAdded|terminalInteraction)$/i.test(method) || SILENT.has(method);
}

const SILENT = new Set([
  "thread/started",
  "thread/status/changed",
  "thread/settings/updated",
  "thread/goal/cleared",
  "turn/diff/updated",
  "turn/plan/updated",
  "item/fileChange/patchUpdated",
  "remoteControl/status/changed",
  "mcpServer/startupStatus/updated",
  "serverRequest/resolved",
]);

function sessionOf(thread: JsonMembers, model: string): Fact[] {
  const id = readSessionId(thread["id"]);
  if (id === undefined) return [];
  const version = textOf(thread["cliVersion"]);
  return [{ fact: "session", id, model, ...(version === "" ? {} : { version }) }];
}

function readError(error: JsonMembers, isTriedAgain: boolean): Fact {
  const details = asText(error["additionalDetails"]);
  const text = [messageOfError(error), details].filter((each) => each !== "").join(": ");
  return isTriedAgain
    ? { fact: "api_retry", status: statusOfErrorInfo(error["codexErrorInfo"]), delayMs: null, text }
    : { fact: "notice", text };
}

/**
 * The ids of our messages in an answer to `thread/items/list`: the thread has read them. `nextCursor` is undefined on the last
 * page.
 */
export function messagesIn(result: JsonMembers): { ids: string[]; nextCursor: string | undefined } {
  const ids = listOf(result["data"])
    .map((entry) => textOf(membersAt(entry, "item")["clientId"]))
    .filter((id) => id !== "");
  const cursor = textOf(result["nextCursor"]);
  return { ids, nextCursor: cursor === "" ? undefined : cursor };
}
