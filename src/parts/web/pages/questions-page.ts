/** The page of questions to a person, from agents, budgets and nodes of the plan. */
import type { RoadmapNode } from "../../../core/roadmap.ts";
import type { QuestionText } from "../../../questions/question-file.ts";
import { answersTo } from "../buttons.ts";
import {
  actsBlock,
  type Block,
  factsOf,
  log,
  type Page,
  pathWith,
  say,
  shown,
  timeOf,
} from "../page.ts";

const CONTEXT_LINES_MAX = 100;
const TEXT_CHARS_MAX = 4000;

/** @param nodes the nodes of the plan that wait for a person. @param asked their questions, by node id */
export function questionsPage(
  questions: readonly QuestionText[],
  nodes: readonly RoadmapNode[],
  asked: ReadonlyMap<string, string>,
): Page {
  const ids = new Set(questions.map(({ id }) => id));
  const blocks = [
    ...questions.flatMap(questionBlocks),
    ...nodes
      .filter(({ id }) => !ids.has(id))
      .flatMap((node) => nodeBlocks(node, asked.get(node.id) ?? "")),
  ];
  return {
    title: "Questions",
    command: "mailchute answer ID TEXT",
    blocks: blocks.length === 0 ? [say("No question waits for an answer.")] : blocks,
  };
}

function questionBlocks(question: QuestionText): Block[] {
  const { id, question: text, context, who, agents, expects, asked_at_ms: askedMs } = question;
  const waiters = agents.includes("*") ? "every coding agent" : shown(agents.join(" "));
  const lines = context.split("\n").slice(0, CONTEXT_LINES_MAX).map(shown);
  return [
    { kind: "heading", text: shown(text) },
    factsOf([
      ["question", shown(id)],
      ["asked by", shown(who)],
      ["asked", timeOf(askedMs || null)],
      ["waits for it", waiters || null],
    ]),
    ...(context === "" ? [] : log("More about it", lines)),
    ...actsBlock(`answer ${shown(id)}`, answersTo(question, expects)),
  ];
}

/** @param question "" when the question is in the text of the node itself */
function nodeBlocks(node: RoadmapNode, question: string): Block[] {
  const { id, title, prompt, goal } = node;
  const text = question === "" ? (prompt ?? goal ?? "") : "";
  return [
    { kind: "heading", text: shown(question === "" ? title : question) },
    factsOf([
      ["node", { text: shown(id), to: pathWith("/plan", { node: id }) }],
      ["title", question !== "" && title !== id ? shown(title) : null],
    ]),
    ...(text === "" ? [] : [say(shown(text.slice(0, TEXT_CHARS_MAX)))]),
    ...actsBlock(`answer ${shown(id)}`, answersTo(node, "text")),
  ];
}
