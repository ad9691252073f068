/** `agents`: lists the agents of a scope, what each works on, and how much unread mail it has. */
import { defineCommand } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { safe, table } from "../../../text/render.ts";
import { listAgents } from "../agents/agents.ts";
import { unreadOf } from "../store/inbox.ts";
import { openMail, SCOPE_OPTION } from "./open-mail.ts";

export const command = defineCommand({
  usage: "[--archived]",
  options: {
    ...SCOPE_OPTION,
    archived: { type: "flag", help: "with those that were archived" },
  },
  async run(ctx) {
    const { folder } = await openMail(ctx, ctx.options.scope);
    const agents = listAgents(folder, ctx.options.archived).map((agent) => ({
      ...agent,
      unread: agent.archived_at === null ? unreadOf(folder, agent.name).messages.length : 0,
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
      { title: "TASK", min: 10 },
    ];
    const cells = agents.map(({ name, type, status, archived_at: archivedAt, unread, task }) => [
      safe(name),
      safe(type),
      archivedAt === null ? safe(status) : "archived",
      String(unread),
      safe(task),
    ]);
    for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
    return EXIT.ok;
  },
});
