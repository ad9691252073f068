/**
 * The facts that the stream of a coding agent reports, in one form for all kinds. Each kind has an adapter that turns
 * lines of its program into facts. `run-state.ts` decides what follows from them, for all kinds alike.
 */

/** Tokens and money of one session, or of a part of it. */
export interface Usage {
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  /** Millionths of a US dollar; null when the program gives no price. */
  costUsdMicro: number | null;
}

/** Why a turn ended badly. */
export type TurnFault =
  /** The service refuses the account (401, 403). */
  | "auth"
  /** The account has used up its quota (429, a usage limit). */
  | "limit"
  /** The service is overloaded or cannot be reached (529, 5xx, no connection). */
  | "overload"
  /** No other run can help: billing, an unknown model, a wrong flag. */
  | "config"
  /** The service refuses what this run has sent (400), such as a prompt that is too long or a broken image. */
  | "request"
  /** The conversation is too long for the model. */
  | "context"
  /** The session to resume does not exist. */
  | "lost_session"
  /** The program was asked to stop. */
  | "interrupted"
  /** The turn is said to have ended well, and has no text, no tool call and no tokens. */
  | "empty"
  | "other";

/** The end of one turn. A turn is one answer of the model with its tool calls; a run may have several. */
export interface TurnEnd {
  /** Undefined: it ended well. */
  fault: TurnFault | undefined;
  /** Its last text, or why it ended badly. */
  text: string;
  /** The uuids of the messages that it answers; undefined when the program does not report them. */
  answers: readonly string[] | undefined;
  /** Names of tools that it was not allowed to use. */
  denied: readonly string[];
}

export type Fact =
  | { fact: "session"; id: string; version?: string; model?: string }
  | { fact: "turn_started" }
  | { fact: "turn_ended"; end: TurnEnd }
  /** The state of one of our messages. `read`: the model has read it. */
  | { fact: "message"; uuid: string; state: "queued" | "read" | "done" | "cancelled" }
  /** The text of a message to the program, as the program repeats it. */
  | { fact: "asked"; uuid: string; text: string }
  /** It works on a text or a tool call. What comes of it follows in another fact. */
  | { fact: "writing" }
  | { fact: "said"; text: string }
  | { fact: "thought"; text: string }
  | { fact: "tool_started"; id: string; name: string; input: string }
  | { fact: "tool_ended"; id: string; output: string; exitCode: number | null; isError: boolean }
  /** A tool that it was not allowed to use, for programs that report this before the turn ends. */
  | { fact: "tool_denied"; name: string }
  | { fact: "file_changed"; path: string; change: string }
  /** All background tasks that run now. */
  | { fact: "background"; ids: readonly string[] }
  | { fact: "compacting" }
  | { fact: "compacted" }
  /** A window of the account's quota. `resetsAtMs`: epoch ms, only where the program gives a number. */
  | {
      fact: "quota";
      isRejected: boolean;
      resetsAtMs: number | null;
      window: string | null;
      usedPct: number | null;
    }
  /** The program tries a request again by itself. */
  | { fact: "api_retry"; status: number | null; delayMs: number | null; text: string }
  | { fact: "notice"; text: string }
  /**
   * `session`: the sum over the session so far, including earlier runs. `kept`: the same sum from a file of the program, which also counts
   * turns in which the program was killed. `part`: costs to add to the sum. `turn`: the costs of the open turn so far; the end of the turn
   * reports them again.
   */
  | { fact: "usage"; usage: Usage; of: "session" | "kept" | "part" | "turn" }
  /** A line that the adapter does not know. The log keeps it. */
  | { fact: "unknown"; type: string };

/** Turns one line of a stream into facts. It never throws: a line that is not JSON is an unknown fact. */
export type ReadLine = (line: string) => Fact[];

/** True when the model has answered, with a text or a tool call. What the program says by itself is no answer. */
export function isAnswer(fact: Fact): boolean {
  if (fact.fact === "turn_ended") return fact.end.fault === undefined;
  return fact.fact === "tool_started" || fact.fact === "thought";
}
