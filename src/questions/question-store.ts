/**
 * The questions of a state tree to a person: `questions/open/<id>.md` while they wait, `questions/answered/<id>.md` with their
 * answers. A question is answered when its file is in `answered/`. If `open/` still has its file, a crash or an editor left that
 * file, and it is removed.
 */
import fs from "node:fs";
import { join } from "node:path";
import { ErrInvalidTransition } from "../core/errors.ts";
import { isId } from "../core/names.ts";
import { createText } from "../host/documents.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { statOf, tryReadText } from "../host/regular-file.ts";
import {
  explainBadAnswer,
  formatAnswer,
  formatQuestion,
  parseQuestion,
  type Question,
  type QuestionText,
} from "./question-file.ts";

const ENDING = ".md";
/** At most so many open questions are read, because a person sees no more at once. */
const OPEN_MAX = 200;

/** What became of an answer in an edited file. */
export type TakenEdit =
  | { is: "taken" }
  /** The text under `## Answer` is no answer. */
  | { is: "refused"; why: string };

export class QuestionStore {
  readonly openDir: string;
  private readonly dir: string;
  private readonly answeredDir: string;

  constructor(stateDir: string) {
    this.dir = join(stateDir, "questions");
    this.openDir = join(this.dir, "open");
    this.answeredDir = join(this.dir, "answered");
  }

  /** Asks, unless the question was asked before. Then its file stays as it is, because a person may be editing it. @throws a system error */
  ask(question: Question): void {
    if (this.answerOf(question.id) !== undefined) return;
    this.publish(this.openDir, question.id, formatQuestion(question));
  }

  /** The names of all files in `open/`, without their ending. */
  openIds(): string[] {
    return idsIn(this.openDir, OPEN_MAX);
  }

  /** An open question; undefined when there is none of this id. */
  find(id: string): QuestionText | undefined {
    const text = this.read(this.openDir, id);
    if (text === undefined || this.answerOf(id) !== undefined) return undefined;
    return parseQuestion(id, text);
  }

  /** The answer to a question; undefined while there is none. */
  answerOf(id: string): string | undefined {
    return this.answered(id)?.answer;
  }

  /** A question with its answer; undefined while it has none. */
  answered(id: string): QuestionText | undefined {
    const text = this.read(this.answeredDir, id);
    return text === undefined ? undefined : parseQuestion(id, text);
  }

  /** Open questions whose time is not over, the oldest first. @param nowMs epoch ms */
  open(nowMs: number): QuestionText[] {
    return this.openIds()
      .flatMap((id) => this.find(id) ?? [])
      .filter(({ ends_at_ms: endsAtMs }) => endsAtMs === null || endsAtMs > nowMs)
      .sort((a, b) => a.asked_at_ms - b.asked_at_ms);
  }

  /**
   * Keeps the answer. The first answer counts.
   * @param by who answers, as a text for people
   * @param answer a text in which `explainBadAnswer` finds no fault
   * @throws ErrInvalidTransition when there is no such open question
   */
  answer(id: string, answer: string, by: string, nowMs: number): void {
    const text = this.read(this.openDir, id);
    if (text === undefined)
      throw new ErrInvalidTransition(`there is no open question ${JSON.stringify(id)}`, { id });
    const isFirst = this.publish(this.answeredDir, id, formatAnswer(text, answer, by, nowMs));
    this.close(id);
    if (!isFirst) throw new ErrInvalidTransition(`${id} was answered before`, { id });
  }

  /**
   * Takes the answer that a person wrote into a file, or removes the file of a question that is not open any more.
   * @param quietMs an answer is taken when its file has not changed for so long
   * @param nowMs epoch ms
   * @throws a system error
   */
  takeEdit(id: string, quietMs: number, nowMs: number): TakenEdit | undefined {
    const question = this.find(id);
    if (question === undefined) {
      if (this.answerOf(id) !== undefined) this.close(id);
      return undefined;
    }
    const { answer, ends_at_ms: endsAtMs, expects } = question;
    if (answer === "") {
      if (endsAtMs !== null && endsAtMs <= nowMs) this.close(id);
      return undefined;
    }
    if (nowMs - this.changedMs(id) < quietMs) return undefined;
    const why = explainBadAnswer(expects, answer);
    if (why !== undefined) return { is: "refused", why };
    this.answer(id, answer, "file", nowMs);
    return { is: "taken" };
  }

  /** Removes answers that were given before this time. @param beforeMs epoch ms @returns how many there were */
  forget(beforeMs: number, isDryRun = false): number {
    let count = 0;
    for (const id of idsIn(this.answeredDir, Number.POSITIVE_INFINITY)) {
      const path = this.pathIn(this.answeredDir, id);
      const stats = statOf(path);
      if (stats?.isFile() !== true || stats.mtimeMs >= beforeMs) continue;
      if (!isDryRun) fs.rmSync(path, { force: true });
      count++;
    }
    return count;
  }

  /** Takes a question back: no task waits for its answer any more. */
  close(id: string): void {
    fs.rmSync(this.pathIn(this.openDir, id), { force: true });
  }

  private changedMs(id: string): number {
    const path = this.pathIn(this.openDir, id);
    return statOf(path)?.mtimeMs ?? 0;
  }

  /** Undefined also when something other than a regular file is there. */
  private read(dir: string, id: string): string | undefined {
    if (!isId(id)) return undefined;
    return tryReadText(this.pathIn(dir, id));
  }

  /** Creates a file with this text, whole or not at all. @returns false when the file exists already. @throws a system error */
  private publish(dir: string, id: string, text: string): boolean {
    makeDirs(dir, 2);
    // An answer is a decision of a person: it survives a power cut.
    const options = { stagingDir: join(this.dir, ".tmp"), isDurable: true };
    return createText(this.pathIn(dir, id), text, options);
  }

  private pathIn(dir: string, id: string): string {
    return join(dir, `${id}${ENDING}`);
  }
}

function idsIn(dir: string, max: number): string[] {
  try {
    return fs
      .readdirSync(dir)
      .filter((name) => name.endsWith(ENDING) && !name.startsWith("."))
      .slice(0, max)
      .map((name) => name.slice(0, -ENDING.length));
  } catch {
    return [];
  }
}
