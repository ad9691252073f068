/** `answer`: gives a node that waits for a person its answer, and opens it again. */

import { defineCommand } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../../cli/shell/options.ts";
import { ErrInvalidTransition, ErrTaskNotFound } from "../../../core/errors.ts";
import { systemClock } from "../../../host/system-clock.ts";
import { KvStore } from "../../../kv/store.ts";
import { safe } from "../../../text/render.ts";
import { answer, questionOf } from "../answers.ts";
import { findNode } from "../read/document.ts";
import { editPlan, refusal } from "./read-plan.ts";

export const command = defineCommand({
  usage: "ID TEXT",
  args: { min: 2, max: Number.POSITIVE_INFINITY },
  details: [
    "The node's next run finds question and answer in its packet. Exit code 3: there is no such node, 4: it has asked no question.",
  ],
  examples: ["answer paint blue", 'answer deploy "not before Monday"'],
  options: {},
  async run(ctx) {
    const tree = existingTree(ctx);
    const { settings } = await openSettings(ctx);
    const [id = "", ...words] = ctx.positionals;
    const text = words.join(" ");
    const kv = new KvStore(tree.kv, systemClock, settings.durability);
    let asked = { id, question: "" };
    let isKept = false;
    await editPlan(ctx, async (doc) => {
      const node = findNode(doc, id);
      if (node === undefined)
        throw new ErrTaskNotFound(`no node ${JSON.stringify(id)} in the roadmap`, {
          id,
          path: tree.roadmap,
          hint: "see `mailchute roadmap show`",
        });
      if (node.status !== "needs_human")
        throw new ErrInvalidTransition(`${id} is ${node.status}, and waits for no answer`, { id });
      const [problem] = doc.problems;
      if (problem !== undefined) throw refusal(tree, doc, problem);
      // The answer first: an open node without it would only ask again.
      if (!isKept) await answer(kv, node.id, text, "cli");
      asked = { id: node.id, question: questionOf(kv, node.id)?.question ?? "" };
      isKept = true;
      return [{ kind: "status", id: node.id, status: "open" }];
    });
    kv.close();
    if (ctx.json) ctx.out.json({ ...asked, answer: text });
    else ctx.out.line(`${safe(id)} is open again`);
    return EXIT.ok;
  },
});
