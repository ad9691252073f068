/**
 * A question to a person as a Markdown file: what is asked, who waits, and the answer under `## Answer`. Pure. People read and edit
 * these files, so reading takes whatever is there.
 */
import { compact } from "../core/compact.ts";

export interface Question {
  /** A file name without its ending. Questions of nodes, agents and budgets share one space of ids. */
  id: string;
  /** One sentence. */
  question: string;
  /** More about it, in Markdown; "" when there is no more to say. */
  context: string;
  /** A text for people that says who waits for the answer. */
  who: string;
  /** No task of these agents starts before the answer; "*": every coding agent. */
  agents: readonly string[];
  /** `limit`: yes, no or a number. */
  expects: "text" | "limit";
  /** Epoch ms. */
  asked_at_ms: number;
  /** Epoch ms after which no task waits for the answer; null: tasks wait without end. */
  ends_at_ms: number | null;
  /** The task may find the answer by itself: one of those that wait tries again, at the latest after this time (ms). */
  again_ms?: number;
}

/** What a file says. The answer is "" while there is none. */
export interface QuestionText extends Question {
  answer: string;
}

const ANSWER = "## Answer";
const HINTS = {
  text: "Write the answer below this line and save, or use: mailchute answer ID TEXT",
  limit:
    "Write yes, no or a new limit below this line and save, or use: mailchute answer ID yes|no|LIMIT",
} as const;

export function formatQuestion(question: Question): string {
  const { id, who, agents, expects, asked_at_ms: askedAtMs, ends_at_ms: endsAtMs } = question;
  const { again_ms } = question;
  const times = { asked_at_ms: askedAtMs, ends_at_ms: endsAtMs, ...compact({ again_ms }) };
  const head = { id, who, agents, expects, ...times };
  return [
    "---",
    ...Object.entries(head).map(([name, value]) => `${name}: ${JSON.stringify(value)}`),
    "---",
    `# ${question.question.replace(/\s+/g, " ")}`,
    "",
    ...(question.context === "" ? [] : [escaped(question.context.trim()), ""]),
    ANSWER,
    "",
    `<!-- ${HINTS[expects].replace("ID", id)} -->`,
    "",
  ].join("\n");
}

/** The text of an answered file: the question with this answer. @param by who answered */
export function formatAnswer(text: string, answer: string, by: string, atMs: number): string {
  const asked = normal(text);
  const cut = /^## Answer[ \t]*$/m.exec(asked)?.index ?? asked.length;
  const notes = `answered_by: ${JSON.stringify(by)}\nanswered_at_ms: ${atMs}\n`;
  const before = asked.slice(0, cut).trimEnd();
  const noted = before.startsWith("---\n")
    ? `---\n${notes}${before.slice(4)}`
    : `---\n${notes}---\n${before}`;
  return `${noted}\n\n${ANSWER}\n\n${answer.trim()}\n`;
}

/** @param id from the name of the file, whatever the text says */
export function parseQuestion(id: string, text: string): QuestionText {
  const [, head = "", body = text] = /^---\n(.*?)^---[ \t]*\n(.*)$/ms.exec(normal(text)) ?? [];
  const values = headValues(head);
  const cut = /^## Answer[ \t]*$/m.exec(body);
  const asked = cut === null ? body : body.slice(0, cut.index);
  const answer = cut === null ? "" : body.slice(cut.index + cut[0].length);
  const [title = "", ...more] = asked.trim().split("\n");
  const { who, agents, expects, asked_at_ms: askedAtMs, ends_at_ms: endsAtMs, again_ms } = values;
  return {
    id,
    question: title.replace(/^#+\s*/, ""),
    context: more.join("\n").trim(),
    who: typeof who === "string" ? who : "",
    agents: Array.isArray(agents) ? agents.filter((name) => typeof name === "string") : [],
    expects: expects === "limit" ? "limit" : "text",
    asked_at_ms: typeof askedAtMs === "number" ? askedAtMs : 0,
    ends_at_ms: typeof endsAtMs === "number" ? endsAtMs : null,
    ...(typeof again_ms === "number" ? { again_ms } : {}),
    answer: answer.replace(/<!--.*?-->/gs, "").trim(),
  };
}

/** The gate in the names of tasks that wait for the answer: `budget-day-2026-11-24-usd-1`. */
export function holdOf(id: string): string {
  return id.replace(/[^A-Za-z0-9]+/g, "-");
}

/** Why this text is no valid answer; undefined when it is one. */
export function explainBadAnswer(expects: Question["expects"], answer: string): string | undefined {
  if (answer.trim() === "") return "the answer is empty";
  if (answer.includes("\u0000")) return "the answer holds a NUL character";
  if (expects === "limit" && readLimitAnswer(answer) === undefined)
    return `expected yes, no or a number, found ${JSON.stringify(answer.slice(0, 40))}`;
  return undefined;
}

/** Reads an answer to a question about a limit; undefined when the text is none. */
export function readLimitAnswer(answer: string): "yes" | "no" | number | undefined {
  const word = answer.trim().toLowerCase();
  if (word === "yes" || word === "y") return "yes";
  if (word === "no" || word === "n") return "no";
  const [, digits] = /^\$?\s*(\d+(?:\.\d+)?)\s*(?:usd|\$|tokens|turns|minutes)?$/.exec(word) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** Escapes lines of the context that look like the heading of the answer. */
function escaped(text: string): string {
  return text.replace(/^## Answer/gm, "\\## Answer");
}

/** Some editors use other line endings. */
function normal(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

function headValues(head: string): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const line of head.split("\n")) {
    const [, name, value] = /^(\w+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    try {
      values[name] = JSON.parse(value);
    } catch {
      values[name] = value.trim();
    }
  }
  return values;
}
