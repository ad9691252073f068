/**
 * Questions of agents that wait for a person: `questions/asked/<id>.json` says which agent gets the answer as a message. The file is
 * removed once the message is recorded. After a crash in between, the same message is sent again, which changes nothing.
 */
import { join } from "node:path";
import type { Apart } from "../../../core/apart.ts";
import { isText, type Of, oneOf, shape } from "../../../core/shape.ts";
import { Documents } from "../../../host/document-store.ts";
import { QuestionStore } from "../../../questions/question-store.ts";
import { HUMAN } from "../scope/scope.ts";
import { send } from "../send/send.ts";
import type { MailStore } from "../store/mail-folder.ts";

/** A question and the agent that asked it. */
const asked = shape({
  v: oneOf(1),
  id: isText,
  agent: isText,
  question: isText,
  project: isText,
  branch: isText,
});
type Asked = Of<typeof asked>;

/** Note a question after it was opened. */
export const askedIn = (stateDir: string): Documents<Asked> =>
  new Documents(stateDir, join("questions", "asked"), asked, { isDurable: true });

/** Sends each answer of a person to the agent that asked. */
export function sendAnswers(
  stateDir: string,
  store: MailStore,
  wallMs: number,
  apart: Apart,
): void {
  const all = askedIn(stateDir);
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
    all.remove(id);
  };
  apart.eachNow(
    all.readAll().map(([, one]) => one),
    ({ id }) => id,
    sendOne,
  );
}
