/** The answers of the mock API as data: lists of steps, one for each request of a conversation. It knows no wire format. */

/** A tool call of the model. A text as `input` makes a call of a free-form tool (codex: `apply_patch`). */
interface ToolCall {
  tool: string;
  input: unknown;
}

/** Tokens of one answer, each counted in one kind: `input` has those that did not come from the cache. */
export interface Usage {
  input?: number;
  cachedInput?: number;
  cacheWrite?: number;
  output?: number;
  reasoning?: number;
}

/** How full a window of the account's quota is: `used` from 0 to 1, `resetsAt` in seconds since 1970. */
interface QuotaWindow {
  used: number;
  resetsAt: number;
}

export interface Windows {
  fiveHour?: QuotaWindow;
  sevenDay?: QuotaWindow;
}

/** One answer. Its parts come in this order: think, say, run, tool. Without any of them it says "ok". */
export interface Step extends Partial<ToolCall> {
  think?: string;
  say?: string;
  /** A shell command, as a call of the tool that the program offers for it. */
  run?: string;
  /** More fields for the input of `run`, such as `{"run_in_background": true}`. */
  runWith?: Record<string, unknown>;
  usage?: Usage;
  /** Sent as the format's own headers. */
  windows?: Windows;
  /** Sent with any answer, even with status 200. */
  headers?: Record<string, string>;
  /** An error status. Without `body`, the answer has the body that the real API sends with this status. */
  status?: number;
  body?: unknown;
  /** Status 429 because the subscription's quota is used up until then, in seconds since 1970. */
  usageLimit?: number;
  /** The error comes in the stream of a 200, after the answer has begun. A request without a stream gets the plain error. */
  inStream?: boolean;
  delayMs?: number;
  /** Sends nothing, and keeps the connection open. */
  hang?: boolean;
  /** Drops the connection in the middle of the answer; with "reset" by a TCP reset. */
  cut?: boolean | "reset";
  /** Ends the answer in good order after its first half. */
  half?: boolean;
  /** The wait before each event of the stream (ms). */
  eventDelayMs?: number;
  /** Sends bytes that are no answer, with status 200. */
  garbage?: boolean;
  /** Answers requests until then, in seconds since 1970. The first request after it gets the next step. */
  until?: number;
  /** Answers this many requests. Default 1. The last step answers all further requests. */
  times?: number;
}

/**
 * A conversation is recognized by a marker in the user's text, by the end of its API key, or by both. The first that fits counts.
 */
export interface Conversation {
  name: string;
  marker?: string;
  key?: string;
  steps: readonly Step[];
}

/** All requests share a list of steps, and use it in the order of their arrival. */
export type Scenario = readonly Step[] | { conversations: readonly Conversation[] };

/** The facts of a request that decide which step answers it. */
interface Asker {
  texts: readonly string[];
  key: string;
}

export interface Picked {
  conversation: string;
  /** Place of the step in its list; -1 for an answer that no step gives. */
  index: number;
  step: Step;
}

const FALLBACK: Step = { say: "ok" };

/** @throws TypeError when a value is not a scenario; its message says where */
export function readScenario(value: unknown): Scenario {
  if (Array.isArray(value)) return readSteps(value, "the script");
  const conversations = (value as { conversations?: unknown } | null)?.conversations;
  if (!Array.isArray(conversations))
    throw new TypeError('a script is a list of steps, or {"conversations": […]}');
  return {
    conversations: conversations.map((entry: Partial<Conversation>, index) => ({
      ...entry,
      name: entry.name ?? entry.marker ?? entry.key ?? `conversation ${index + 1}`,
      steps: readSteps(entry.steps, `conversation ${index + 1}`),
    })),
  };
}

function readSteps(value: unknown, where: string): Step[] {
  if (!Array.isArray(value)) throw new TypeError(`${where}: steps must be a list`);
  for (const [index, step] of value.entries())
    if (typeof step !== "object" || step === null || Array.isArray(step))
      throw new TypeError(`${where}: step ${index + 1} must be an object`);
  return value as Step[];
}

/** Walks through the lists of a scenario: each request gets the next step of its list. */
export class Script {
  private readonly conversations: readonly Conversation[];
  /** By place in the list: which step is next, and how many requests it has answered. */
  private readonly places: { index: number; answered: number }[];

  constructor(scenario: Scenario) {
    this.conversations =
      "conversations" in scenario ? scenario.conversations : [{ name: "shared", steps: scenario }];
    this.places = this.conversations.map(() => ({ index: 0, answered: 0 }));
  }

  take(asker: Asker, nowMs: number): Picked {
    const found = this.conversations.findIndex((conversation) => fits(conversation, asker));
    const conversation = this.conversations[found];
    const place = this.places[found];
    if (!conversation || !place) return { conversation: "none", index: -1, step: FALLBACK };
    const { steps } = conversation;
    while (place.index < steps.length && isOver(steps, place, nowMs)) {
      place.index++;
      place.answered = 0;
    }
    place.answered++;
    const step = steps[place.index];
    if (!step) return { conversation: conversation.name, index: -1, step: FALLBACK };
    return { conversation: conversation.name, index: place.index, step };
  }
}

function fits({ marker, key }: Conversation, asker: Asker): boolean {
  return (
    (marker === undefined || asker.texts.some((text) => text.includes(marker))) &&
    (key === undefined || asker.key.endsWith(key))
  );
}

function isOver(
  steps: readonly Step[],
  { index, answered }: { index: number; answered: number },
  nowMs: number,
): boolean {
  const step = steps[index]!;
  if (step.until !== undefined) return nowMs >= step.until * 1000;
  if (step.times !== undefined) return answered >= step.times;
  return answered > 0 && index < steps.length - 1;
}
