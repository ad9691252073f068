/**
 * What the next run of a task is told about the end of its last one: how its check failed, and the answer of a person if it waited for
 * one. The file `sessions/<id>@<submission>.check.txt` begins with the id of the question.
 */
import { tryReadText } from "../host/regular-file.ts";
import { QuestionStore } from "../questions/question-store.ts";
import type { Assignment } from "./agent.ts";

/** The beginning of the file; "" without a question. */
export function headOfQuestion(id: string | undefined): string {
  return id === undefined ? "" : `Question: ${id}\n\n`;
}

/** The question that the last run has left. */
export function questionOf(lastCheck: string | undefined): string | undefined {
  return lastCheck === undefined ? undefined : readHead(tryReadText(lastCheck) ?? "").id;
}

function readHead(text: string): { id: string | undefined; rest: string } {
  const [head = "", id] = /^Question: (\S+)\n\n/.exec(text) ?? [];
  return { id, rest: text.slice(head.length) };
}

/** A section for a packet; "" when there is nothing to tell. */
export function lastCheckText({
  lastCheck,
  stateDir,
}: Pick<Assignment, "lastCheck" | "stateDir">): string {
  const text = lastCheck === undefined ? "" : (tryReadText(lastCheck) ?? "");
  const { id, rest: check } = readHead(text);
  return [
    check === ""
      ? ""
      : `## The last check\n\nThe work of the last run was checked, and the check failed. Mend that:\n\n${check}`,
    id === undefined ? "" : answerText(id, stateDir),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function answerText(id: string, stateDir: string): string {
  const answered = new QuestionStore(stateDir).answered(id);
  if (answered !== undefined)
    return `## An answer\n\nA person was asked:\n\n${[answered.question, answered.context].join("\n\n").trim()}\n\nThe answer:\n\n${answered.answer}\n`;
  return id.startsWith("base.")
    ? "## The base\n\nThe check was red in the same way where your work began. There it is green now, and your branch has what mended it: see `git log`. See that the check is green with your work, too.\n"
    : "";
}
