/**
 * Questions of agents that wait for a person: `questions/asked/<id>.json` says which agent gets the answer as a message. The file is
 * removed once the message is recorded. After a crash in between, the same message is sent again, which changes nothing.
 */
import fs from "node:fs";
import { join } from "node:path";
import type { Apart } from "../../../core/apart.ts";
import { readDocument, replaceDocument } from "../../../host/documents.ts";
import { listDir } from "../../../host/list-dir.ts";
import { makeDirs } from "../../../host/make-dirs.ts";
import { QuestionStore } from "../../../questions/question-store.ts";
import { HUMAN, type Scope } from "../scope/scope.ts";
import { send } from "../send/send.ts";
import type { MailStore } from "../store/mail-folder.ts";

/** A question and the agent that asked it. */
export interface Asked extends Scope {
  v: 1;
  id: string;
  agent: string;
  question: string;
}

const ENDING = ".json";

/** Must be called after the question was opened. @throws a system error */
export function noteAsked(stateDir: string, asked: Asked): void {
  const dir = dirOf(stateDir);
  makeDirs(dir, 2);
  replaceDocument(join(dir, `${asked.id}${ENDING}`), asked, { isDurable: true });
}

export function listAsked(stateDir: string): Asked[] {
  return listDir(dirOf(stateDir))
    .filter((name) => name.endsWith(ENDING))
    .flatMap((name) => {
      const found = readDocument<Asked>(join(dirOf(stateDir), name));
      return found?.v === 1 && `${found.id}${ENDING}` === name ? [found] : [];
    });
}

/** Sends each answer of a person to the agent that asked. */
export function sendAnswers(
  stateDir: string,
  store: MailStore,
  wallMs: number,
  apart: Apart,
): void {
  const questions = new QuestionStore(stateDir);
  const sendOne = ({ id, agent, question, project, branch }: Asked): void => {
    const answer = questions.answerOf(id);
    // A question that is neither open nor answered was taken back: a person removed its file.
    if (answer === undefined && questions.find(id) !== undefined) return;
    if (answer !== undefined)
      send(
        store,
        {
          id: `answer.${id}`,
          scope: { project, branch },
          from: HUMAN,
          via: "cli",
          type: "answer",
          to: [agent],
          text: `You asked: ${question}\nThe answer: ${answer}`,
          replyTo: id,
          mentions: [],
        },
        wallMs,
      );
    fs.rmSync(join(dirOf(stateDir), `${id}${ENDING}`), { force: true });
  };
  apart.eachNow(listAsked(stateDir), ({ id }) => id, sendOne);
}

function dirOf(stateDir: string): string {
  return join(stateDir, "questions", "asked");
}
