/** `archive`: removes agents from the list. Their messages and logs stay. Their names become free. */
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
      if (agent.archived_at !== null)
        throw new ErrInvalidTransition(`the agent ${JSON.stringify(name)} is archived`, {
          id: name,
          phase: "archive",
        });
      await checkWork(agent);
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

/** Refuses to archive an agent that has a task: the task would run under a free name. @throws ErrInvalidTransition */
async function checkWork({ home, name, spawned, status, task_id }: AgentRecord): Promise<void> {
  const last = status === "busy" ? task_id : null;
  const who = `the agent ${JSON.stringify(name)}`;
  const details = { id: name, phase: "archive" };
  if (status === "busy" && (home === null || last === null))
    throw new ErrInvalidTransition(`${who} is busy`, { ...details, hint: "wait for its end" });
  for (const id of [spawned?.task_id, last]) {
    if (typeof id !== "string" || home === null) continue;
    // For a moment after the end of the task, the record still says busy.
    const place = await findTask(stateTree(home), id);
    if (place === undefined || place.state === "done" || place.state === "failed") continue;
    throw new ErrInvalidTransition(`${who} has work: its task ${id} is ${place.state}`, {
      ...details,
      hint: `wait for its end, or end it: mailchute cancel ${id}`,
    });
  }
}
