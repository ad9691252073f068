/** Gives a node that waits for a person its answer, and opens it again. */
import type { AnswerSource } from "../../../cli/shell/answer-source.ts";
import { existingTree, openSettings } from "../../../cli/shell/options.ts";
import { ErrInvalidTransition, ErrTaskNotFound } from "../../../core/errors.ts";
import { systemClock } from "../../../host/system-clock.ts";
import { KvStore } from "../../../kv/store.ts";
import { safe } from "../../../text/render.ts";
import { answer, questionOf } from "../answers.ts";
import { findNode } from "../read/document.ts";
import { editPlan, refusal } from "./read-plan.ts";

export const planAnswers: AnswerSource = async (ctx, id, text) => {
  const tree = existingTree(ctx);
  const { settings } = await openSettings(ctx);
  const kv = new KvStore(tree.kv, systemClock, settings.durability);
  let nodeId = id;
  let question = "";
  let isKept = false;
  await editPlan(ctx, async (doc) => {
    const node = findNode(doc, id);
    if (node === undefined)
      throw new ErrTaskNotFound(`no question and no node ${JSON.stringify(id)}`, {
        id,
        path: tree.roadmap,
        hint: "see `mailchute status` and `mailchute roadmap show`",
      });
    if (node.status !== "needs_human")
      throw new ErrInvalidTransition(`${id} is ${node.status}, and waits for no answer`, { id });
    const [problem] = doc.problems;
    if (problem !== undefined) throw refusal(tree, doc, problem);
    // The answer is stored first: an open node without it would only ask again.
    if (!isKept) await answer(kv, node.id, text, "cli");
    nodeId = node.id;
    question = questionOf(kv, node.id)?.question ?? "";
    isKept = true;
    return [{ kind: "status", id: node.id, status: "open" }];
  });
  kv.close();
  return { id: nodeId, question, said: `${safe(nodeId)} is open again` };
};
