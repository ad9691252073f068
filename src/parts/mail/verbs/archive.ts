/** `archive`: takes agents off the list. Their messages and logs stay; their names are free. */
import { defineCommand } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { ErrInvalidTransition, ErrTaskNotFound } from "../../../core/errors.ts";
import { stateTree } from "../../../core/state-tree.ts";
import { findTask } from "../../../view/find-task.ts";
import { type AgentRecord, changeAgent, readAgent } from "../agents/agents.ts";
import { nameIn, openMail, SCOPE_OPTION } from "./open-mail.ts";

export const command = defineCommand({
  usage: "NAME…",
  args: { min: 1, max: Number.POSITIVE_INFINITY },
  details: [
    "An archived agent is not woken, and its mail stays where it is. An agent that takes its name later does not get that mail. Exit code 3: the scope has no such agent, 4: it is archived, or works.",
  ],
  options: SCOPE_OPTION,
  async run(ctx) {
    const { folder } = await openMail(ctx, ctx.options.scope);
    const names = ctx.positionals.map((text) => nameIn(folder.scope, text));
    for (const name of names) {
      const agent = readAgent(folder, name);
      if (agent === undefined)
        throw new ErrTaskNotFound(`there is no agent ${JSON.stringify(name)} in this scope`, {
          id: name,
          phase: "archive",
          hint: "`mailchute agents --archived` lists them",
        });
      const state = agent.archived_at === null ? agent.status : "archived";
      if (state === "archived" || state === "busy")
        throw new ErrInvalidTransition(`the agent ${JSON.stringify(name)} is ${state}`, {
          id: name,
          phase: "archive",
        });
      await checkFirstTask(agent);
    }
    const nowMs = Date.now();
    for (const name of names) {
      await changeAgent(folder, name, { archived_at: Math.floor(nowMs / 1000) }, nowMs);
      if (!ctx.json) ctx.out.line(`archived ${name}`);
    }
    if (ctx.json) ctx.out.json({ scope: folder.scope, archived: names });
    return EXIT.ok;
  },
});

/** An agent whose first task is still to come is not archived: that task would run under a name that is free. @throws ErrInvalidTransition */
async function checkFirstTask({ home, name, spawned }: AgentRecord): Promise<void> {
  if (home === null || spawned === null) return;
  const place = await findTask(stateTree(home), spawned.task_id);
  if (place === undefined || place.state === "done" || place.state === "failed") return;
  throw new ErrInvalidTransition(
    `the agent ${JSON.stringify(name)} has work: its task ${spawned.task_id} is ${place.state}`,
    {
      id: name,
      phase: "archive",
      hint: `wait for its end, or end it: mailchute cancel ${spawned.task_id}`,
    },
  );
}
