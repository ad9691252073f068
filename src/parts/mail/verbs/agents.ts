/** `agents`: lists the agents of a scope, the work of each, and the number of its unread messages. */
import { defineCommand, ErrUsage } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { localTime } from "../../../text/local-time.ts";
import { safe, table } from "../../../text/render.ts";
import { listAgents } from "../agents/agents.ts";
import { readCursor } from "../store/cursors.ts";
import { unreadOf } from "../store/inbox.ts";
import { readWakes } from "../store/wake-log.ts";
import { nameIn, openMail, SCOPE_OPTION } from "./open-mail.ts";
import { explainAgent } from "./why.ts";

export const command = defineCommand({
  usage: "[--archived] | why NAME",
  args: { min: 0, max: 2 },
  details: [
    "`agents why NAME` says when and by which messages an agent was woken, what it has not read, and why that waits. Exit code 3: there is no such agent.",
  ],
  examples: ["agents", "agents why ann"],
  options: {
    ...SCOPE_OPTION,
    archived: { type: "flag", help: "with those that were archived" },
  },
  async run(ctx) {
    const { folder } = await openMail(ctx, ctx.options.scope);
    const [verb, name] = ctx.positionals;
    if (verb !== undefined) {
      if (verb !== "why" || name === undefined)
        throw new ErrUsage(
          "expected nothing, or: why NAME",
          "for example `mailchute agents why ann`",
        );
      await explainAgent(ctx, folder, nameIn(folder.scope, name));
      return EXIT.ok;
    }
    const agents = listAgents(folder, ctx.options.archived).map((agent) => ({
      ...agent,
      read_upto: readCursor(folder, agent.name).upto,
      unread: agent.archived_at === null ? unreadOf(folder, agent.name).messages.length : 0,
      last_woken_at: readWakes(folder, agent.name).at(-1)?.at ?? null,
    }));
    if (ctx.json) {
      ctx.out.json({ scope: folder.scope, agents });
      return EXIT.ok;
    }
    const { project, branch } = folder.scope;
    if (agents.length === 0) {
      ctx.out.line(`${safe(`${project}:${branch}`)} has no agents`);
      return EXIT.ok;
    }
    const columns = [
      { title: "NAME", min: 8 },
      { title: "KIND" },
      { title: "STATUS" },
      { title: "UNREAD", align: "right" as const },
      { title: "LAST WOKEN" },
      { title: "TASK", min: 10 },
    ];
    const cells = agents.map((agent) => [
      safe(agent.name),
      safe(agent.type),
      agent.archived_at === null ? safe(agent.status) : "archived",
      String(agent.unread),
      agent.last_woken_at === null ? "-" : localTime(agent.last_woken_at * 1000),
      safe(agent.task === "" && agent.status === "busy" ? (agent.task_id ?? "") : agent.task),
    ]);
    for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
    return EXIT.ok;
  },
});
