/** The wire format of one API, as the server needs it: it reads requests and writes answers. */
import type { Step, Usage, Windows } from "./script.ts";

/** A request that was read. `side` marks a request outside the conversation, which uses up no step of the script. */
export interface Asked {
  kind: "turn" | "side" | "compaction" | "count";
  model: string;
  isStream: boolean;
  /** The texts of the user, the oldest first. They hold the markers. */
  texts: readonly string[];
  /** Every message as one line, the oldest first. */
  lines: readonly string[];
  /** Names of the tools that the program offers. */
  tools: readonly string[];
}

/** One event of a stream. If it has a `type`, that is its name, too. */
export type StreamEvent = Record<string, unknown>;

export interface Refusal {
  status: number;
  headers: Record<string, string>;
  body: unknown;
}

export interface Format {
  name: "messages" | "responses" | "chat" | "gemini";
  read(path: string, body: Record<string, unknown>): Asked;
  /** The whole stream of an answer. */
  events(step: Step, asked: Asked): StreamEvent[];
  /** What ends a stream, after its events. */
  lastLine?: string;
  /** The same as one JSON body. */
  plain(step: Step, asked: Asked): unknown;
  refusal(step: Step, nowMs: number): Refusal;
  /** An error in the stream of an answer that has begun. */
  errorEvent(refusal: Refusal): StreamEvent;
  windowHeaders(windows: Windows, isRefused: boolean): Record<string, string>;
}

const USAGE: Required<Usage> = {
  input: 1000,
  cachedInput: 0,
  cacheWrite: 0,
  output: 30,
  reasoning: 0,
};

export const usageOf = (step: Step): Required<Usage> => ({ ...USAGE, ...step.usage });

/** The text of a step; "ok" when the step does nothing at all. */
export function textOf(step: Step): string | undefined {
  const isSilent = step.run !== undefined || step.tool !== undefined;
  return step.say ?? (isSilent ? undefined : "ok");
}

/** The shells of programs by the name of the tool, and how each wants its command. */
const SHELLS: Readonly<Record<string, (command: string) => object>> = {
  bash: (command) => ({ command, description: "A step of the script" }),
  run_shell_command: (command) => ({ command, description: "A step of the script" }),
  run_commands: (command) => ({ commands: [command] }),
};

/** The calls of tools in an answer, the one of the program's own shell first. */
export function callsOf(
  { run, runWith, tool, input = {} }: Step,
  tools: readonly string[],
): { name: string; input: unknown }[] {
  const name = tools.find((one) => one.toLowerCase() in SHELLS) ?? "Bash";
  const inputOf = SHELLS[name.toLowerCase()] ?? SHELLS["bash"]!;
  return [
    ...(run === undefined ? [] : [{ name, input: { ...inputOf(run), ...runWith } }]),
    ...(tool === undefined ? [] : [{ name: tool, input }]),
  ];
}

/** A text in two pieces, so that a cut can fall between them. */
export function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((piece) => piece !== "");
}

let made = 0;

/** An id that is unique in this process. */
export function newId(prefix: string): string {
  made++;
  return `${prefix}${Date.now().toString(36)}${made.toString(36).padStart(4, "0")}`;
}
