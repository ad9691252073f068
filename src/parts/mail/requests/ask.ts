/** Asks a person by a file of `questions/open/`, or an agent by a message. A repetition with the same id changes nothing. */
import { ErrInvalidMessage } from "../../../core/errors.ts";
import { QuestionStore } from "../../../questions/question-store.ts";
import { formatAddress, HUMAN, parseAddress, type Scope } from "../scope/scope.ts";
import { type Draft, type Sent, send } from "../send/send.ts";
import { MailFolder, type MailStore } from "../store/mail-folder.ts";
import { askedIn } from "./asked.ts";

/** An agent may have at most this many open questions, so that one that asks without end does not fill the page of questions. */
const OPEN_MAX = 20;

export interface AskPlace {
  stateDir: string;
  store: MailStore;
}

/** The first line of the draft's text is the question. The rest explains it. */
export type QuestionDraft = Draft & { id: string };

/**
 * @param draft a draft without a recipient asks a person
 * @throws ErrInvalidMessage, ErrMailboxDir, a system error
 */
export function ask({ stateDir, store }: AskPlace, draft: QuestionDraft, wallMs: number): Sent {
  const to = draft.to.length === 0 ? [HUMAN] : draft.to;
  const isForPerson = to.some((name) => isHuman(name, draft.scope));
  const question: Draft = { ...draft, to, type: "question", requiresHuman: isForPerson };
  if (!isForPerson) return send(store, question, wallMs);
  // For an agent the message would be plain mail, and no question that it can answer.
  if (to.length > 1)
    throw new ErrInvalidMessage("a question to a person goes to no agent, too", {
      id: draft.id,
      phase: "ask",
      hint: "ask twice",
    });
  const { from, id, scope, text } = draft;
  const asked = askedIn(stateDir);
  const others = asked.readAll().filter(([, one]) => one.agent === from && one.id !== id);
  if (others.length >= OPEN_MAX)
    throw new ErrInvalidMessage(`${OPEN_MAX} questions of ${from} wait for an answer`, {
      id,
      phase: "ask",
      hint: "wait for the answers, or go on without them",
    });
  const sent = send(store, question, wallMs);
  const [first = "", ...more] = text.trim().split("\n");
  new QuestionStore(stateDir).ask({
    id,
    question: first,
    context: more.join("\n").trim(),
    who: formatAddress({ ...scope, name: from }),
    agents: [],
    expects: "text",
    asked_at_ms: wallMs,
    ends_at_ms: null,
  });
  // Noted after the question is open: a noted question that is not open counts as taken back.
  const { reference } = new MailFolder(store, scope);
  if (from !== HUMAN) asked.replace(id, { v: 1, id, ...reference, agent: from, question: first });
  return sent;
}

function isHuman(name: string, scope: Scope): boolean {
  return parseAddress(name.replace(/^@/, ""), scope)?.name === HUMAN;
}
