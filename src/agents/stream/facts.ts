/**
 * What the stream of a coding agent says, in one vocabulary for all kinds. Shapes only. Each kind has an adapter of its own that
 * turns a line of its program into facts; what follows from them is decided in `run-state.ts`, the same for all.
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
  /** The account is not let in (401, 403). */
  | "auth"
  /** The account has used up what it may for now (429, a usage limit). */
  | "limit"
  /** The service is too busy, or cannot be reached (529, 5xx, no connection). */
  | "overload"
  /** No other run can help: billing, an unknown model, a wrong flag. */
  | "config"
  /** The session that was to be resumed is not there. */
  | "lost_session"
  /** The program was asked to stop. */
  | "interrupted"
  | "other";

/** The end of one turn. A turn is one answer of the model with its tool calls; a run may have several. */
export interface TurnEnd {
  /** Undefined: it ended well. */
  fault: TurnFault | undefined;
  /** What it said at its end, or why it ended badly. */
  text: string;
  /** Uuids of the messages that it answers; undefined when the program does not say. */
  answers: readonly string[] | undefined;
  /** Names of tools that it was not allowed to use. */
  denied: readonly string[];
}

export type Fact =
  | { fact: "session"; id: string; version?: string; model?: string }
  | { fact: "turn_started" }
  | { fact: "turn_ended"; end: TurnEnd }
  /** How far a message of ours has come. `read`: the model has it. */
  | { fact: "message"; uuid: string; state: "queued" | "read" | "done" | "cancelled" }
  /** What a message to it said, as the program repeats it. */
  | { fact: "asked"; uuid: string; text: string }
  | { fact: "said"; text: string }
  | { fact: "thought"; text: string }
  | { fact: "tool_started"; id: string; name: string; input: string }
  | { fact: "tool_ended"; id: string; output: string; exitCode: number | null; isError: boolean }
  /** A tool that it was not allowed to use; for programs that tell so before the turn ends. */
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
   * `session`: the sum over the session so far, also over a resume. `part`: what comes on top of what was booked. `turn`: of the turn
   * that is open, so far; the end of the turn says it again.
   */
  | { fact: "usage"; usage: Usage; of: "session" | "part" | "turn" }
  /** A line that the adapter does not know. It is kept in the log. */
  | { fact: "unknown"; type: string };

/** Turns one line of a stream into facts. Throws nothing: a line that is no JSON is an unknown fact. */
export type ReadLine = (line: string) => Fact[];
