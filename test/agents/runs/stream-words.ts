/** Lines of claude and of codex, for streams that a test makes up. */
import type { Kind } from "./bench.ts";

export interface End {
  /** Input tokens of the turn, and its price in dollars. */
  tokens?: unknown;
  usd?: unknown;
  /** Members beside the usual ones, or in their place. */
  more?: object;
}

export interface Words {
  begin: (session?: unknown) => string;
  say: (text: unknown) => string;
  /** The end of a turn, a good one unless `more` says otherwise. */
  end: (end?: End) => string;
  call: (id: unknown) => string;
  called: (id: unknown) => string;
  compact: string;
}

/** Of one turn. */
export const TOKENS = 1000;
export const USD = 0.00345;

export const line = (value: unknown): string => `${JSON.stringify(value)}\n`;

const claude: Words = {
  begin: (session_id = "s-1") => line({ type: "system", subtype: "init", session_id, model: "m" }),
  say: (text) => line({ type: "assistant", message: { content: [{ type: "text", text }] } }),
  end: ({ tokens = TOKENS, usd = USD, more = {} } = {}) => {
    const used = { m: { inputTokens: tokens, outputTokens: 30, costUSD: usd } };
    return line({
      type: "result",
      uuid: "r-1",
      subtype: "success",
      is_error: false,
      terminal_reason: "completed",
      result: "Done.",
      total_cost_usd: usd,
      modelUsage: used,
      model_usage_since_last_result: used,
      ...more,
    });
  },
  call: (id) =>
    line({ type: "assistant", message: { content: [{ type: "tool_use", id, name: "Bash" }] } }),
  called: (id) =>
    line({
      type: "user",
      message: { content: [{ type: "tool_result", tool_use_id: id, content: "x" }] },
    }),
  compact: line({ type: "system", subtype: "compact_boundary" }),
};

const command = (id: unknown, more: object): object => ({
  id,
  type: "command_execution",
  command: "true",
  ...more,
});

const codex: Words = {
  begin: (thread_id = "01a20f9d-0000-7000-8000-000000000001") =>
    line({ type: "thread.started", thread_id }) + line({ type: "turn.started" }),
  say: (text) => line({ type: "item.completed", item: { id: "i", type: "agent_message", text } }),
  end: ({ tokens = TOKENS, more = {} } = {}) =>
    line({
      type: "turn.completed",
      usage: { input_tokens: tokens, cached_input_tokens: 0, output_tokens: 30 },
      ...more,
    }),
  call: (id) => line({ type: "item.started", item: command(id, { status: "in_progress" }) }),
  called: (id) =>
    line({ type: "item.completed", item: command(id, { status: "completed", exit_code: 0 }) }),
  compact: line({ type: "context_compacted" }),
};

/** Programs that print their stream without being asked. */
export type PrintingKind = Exclude<Kind, "acp">;
export const WORDS: Readonly<Record<PrintingKind, Words>> = { claude, codex };
