/** Gathers what has happened since the last message to a target, and composes the next message. Pure. */
import type { NotifyTopic } from "../../core/notify-settings.ts";
import type { News } from "./topics.ts";

/** A message has at most this many lines of each topic. Further ones are only counted. */
const LINES_MAX = 8;

export interface Gathered {
  /** When the first event was seen (epoch ms). */
  since_ms: number;
  topics: Partial<Record<NotifyTopic, { count: number; lines: string[] }>>;
  /** The tasks that have failed, as many as the message names. Missing in documents of earlier versions. */
  failed?: string[];
}

/** A message does not change when it is sent again. A receiver recognizes a repeated message by its id. */
export interface Message {
  id: string;
  /** Epoch ms. */
  made_at_ms: number;
  title: string;
  text: string;
  counts: Partial<Record<NotifyTopic, number>>;
  /** Where a person may answer, retry or pause. */
  link?: string;
}

/** Topics that need a person most come first. */
const WORDS: Readonly<Record<NotifyTopic, (count: number) => string>> = {
  question: (count) => `${count} ${count === 1 ? "question" : "questions"}`,
  budget: (count) => `${count} ${count === 1 ? "budget" : "budgets"}`,
  failed: (count) => `${count} failed`,
  stuck: (count) => `${count} ${count === 1 ? "problem" : "problems"}`,
  quota: () => "quota",
  drained: () => "all work is done",
  morning: () => "report",
};
const ORDER = Object.keys(WORDS) as NotifyTopic[];

/** The command that helps with a topic. */
const NEXT: Partial<Record<NotifyTopic, string>> = {
  question: "mailchute status",
  failed: "mailchute ls --state-is failed",
};

export function gather(
  before: Gathered | undefined,
  { topic, text, failed: id }: News,
  nowMs: number,
): Gathered {
  const all = before ?? { since_ms: nowMs, topics: {} };
  const { count, lines } = all.topics[topic] ?? { count: 0, lines: [] };
  const isShown = lines.length < LINES_MAX && !lines.includes(text);
  const after = { count: count + 1, lines: isShown ? [...lines, text] : lines };
  const { failed = [] } = all;
  const isNamed = id !== undefined && isShown && !failed.includes(id);
  const topics = { ...all.topics, [topic]: after };
  return { ...all, topics, ...(isNamed && { failed: [...failed, id] }) };
}

/** Whether a person can do something about it from a phone. */
export function needsPerson({ topics }: Gathered): boolean {
  return (["question", "budget", "failed", "stuck"] as const).some((one) => one in topics);
}

/** @param where a name of the state tree for people @param link to a page with what a person may do */
export function composeMessage(
  id: string,
  { topics }: Gathered,
  where: string,
  nowMs: number,
  link?: string,
): Message {
  const present = ORDER.flatMap((topic) => {
    const found = topics[topic];
    return found === undefined ? [] : [{ topic, ...found }];
  });
  const heads = present.map(({ topic, count }) => WORDS[topic](count));
  const body = present.flatMap(({ topic, count, lines }) => {
    const isLong = topic === "morning" || topic === "drained";
    const rest = count - lines.length;
    const more = NEXT[topic] === undefined ? "" : `: ${NEXT[topic]}`;
    return [
      ...lines.map((line) => (isLong ? line : `${topic}: ${line}`)),
      ...(rest > 0 && !isLong ? [`${topic}: and ${rest} more${more}`] : []),
    ];
  });
  return {
    id,
    made_at_ms: nowMs,
    title: `mailchute ${where}: ${heads.join(", ")}`,
    text: [...body, ...(link === undefined ? [] : [`within an hour: ${link}`])].join("\n"),
    counts: Object.fromEntries(present.map(({ topic, count }) => [topic, count])),
    ...(link === undefined ? {} : { link }),
  };
}
