/**
 * A program that cannot ask ends its turn with a question in prose. If its run has changed nothing, and no check is green, a person gets
 * the question, and the next run gets the answer in the same session.
 */
import { type Assignment, workDirOf } from "../agents/agent.ts";
import { questionOf } from "../agents/last-check-text.ts";
import { derivedId } from "../core/derived-id.ts";
import type { Completed, Deferred } from "../core/outcome.ts";
import { holdOf } from "../questions/question-file.ts";
import { QuestionStore } from "../questions/question-store.ts";
import type { AttemptTools } from "./runner.ts";

/** How much of the question, and of what was said before it, a person gets (characters). */
const QUESTION_CHARS_MAX = 500;
const CONTEXT_CHARS_MAX = 8 * 1024;
/** How many questions of one task are looked for. */
const QUESTIONS_MAX = 1000;
/** Work that cannot wait at a gate looks again after this time (ms). */
const AGAIN_MS = 60_000;
/** A question mark, perhaps in quotes, brackets or marks of Markdown. */
const ENDS_IN_QUESTION = /[?？؟]["'”’»)\]*_`]*$/u;

/** Made before a run, to prove after it that it has changed nothing. */
export class ProseQuestion {
  private constructor(
    private readonly tools: AttemptTools,
    private readonly assignment: Assignment,
    private readonly before: string,
  ) {}

  /** For a coding agent. @returns undefined where nothing can be proved: there is no repository */
  static async before(
    tools: AttemptTools,
    assignment: Assignment,
  ): Promise<ProseQuestion | undefined> {
    const stamp = await stampOf(tools, assignment);
    return stamp === undefined ? undefined : new ProseQuestion(tools, assignment, stamp);
  }

  /** @returns the outcome when its run has asked; undefined when the checks decide */
  async after({ output }: Completed): Promise<Deferred | undefined> {
    const text = typeof output === "string" ? output.trim() : "";
    if (!ENDS_IN_QUESTION.test(text)) return undefined;
    const now = await stampOf(this.tools, this.assignment);
    return now === this.before ? this.ask(text) : undefined;
  }

  private ask(text: string): Deferred {
    const { stateDir, task } = this.assignment;
    const questions = new QuestionStore(stateDir);
    const ids = Array.from({ length: QUESTIONS_MAX }, (_, n) =>
      derivedId(task.id, `.asks.${n + 1}`),
    );
    const id = ids.find((one) => questions.answered(one) === undefined) ?? ids.at(-1) ?? "";
    const question = (text.split("\n").at(-1) ?? "").replace(/\s+/g, " ").trim();
    const open = questions.find(id);
    // It was left by an earlier task of this id.
    if (open !== undefined && open.question !== question.slice(-QUESTION_CHARS_MAX))
      questions.close(id);
    questions.ask({
      id,
      question: question.slice(-QUESTION_CHARS_MAX),
      context: text === question ? "" : text.slice(-CONTEXT_CHARS_MAX),
      who: task.id,
      agents: [],
      expects: "text",
      asked_at_ms: Date.now(),
      ends_at_ms: null,
    });
    return waiting(id, question);
  }
}

/** @returns the outcome of a task whose question has no answer yet, so that no run begins */
export function stillAsks({ lastCheck, stateDir }: Assignment): Deferred | undefined {
  const id = questionOf(lastCheck);
  // A base has more than one way to be mended.
  if (id === undefined || id.startsWith("base.")) return undefined;
  const open = new QuestionStore(stateDir).find(id);
  return open === undefined ? undefined : waiting(id, open.question);
}

function waiting(id: string, question: string): Deferred {
  const message = `it asks: ${question} Answer with: mailchute answer ${id} TEXT`;
  return { kind: "deferred", message, delayMs: AGAIN_MS, hold: holdOf(id), question: id };
}

async function stampOf(tools: AttemptTools, assignment: Assignment): Promise<string | undefined> {
  const { loadWorkspaces: load } = tools;
  if (load === undefined) return undefined;
  return (await load(tools)).stampOf(workDirOf(assignment));
}
