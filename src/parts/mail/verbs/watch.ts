/** `watch`: follows a scope. Prints messages, ends of runs, wake-ups with their reason, and changes of the agents. */
import { type Context, defineCommand } from "../../../cli/shell/command-spec.ts";
import { visibleJson } from "../../../core/visible.ts";
import { ChangeSignal } from "../../../host/change-signal.ts";
import { clockTime } from "../../../text/local-time.ts";
import { cut, safe } from "../../../text/render.ts";
import type { AgentRecord } from "../agents/agents.ts";
import { type Scope, sameScope } from "../scope/scope.ts";
import { textOf } from "../store/blobs.ts";
import { isHeld } from "../store/inbox.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import type { Numbered } from "../store/read-messages.ts";
import { documentOf, openMail, SCOPE_OPTION } from "./open-mail.ts";
import { type News, ScopeNews } from "./scope-news.ts";

export const command = defineCommand({
  usage: "[--scope PROJECT:BRANCH]",
  endsWithReader: true,
  details: [
    "Prints a line for each message, exit and wake-up of the scope, for mail that was read, and for each change of an agent, from now on until Ctrl-C. It only looks: to wake agents is the work of `run`. What was before: `messages`, `agents why NAME`.",
    "With --json each is a line of JSON with `t`, `event` (message, exit, woken, told, read, new, status, archived), `agent`, and what belongs to it.",
  ],
  examples: ["watch", "watch --scope app:main --json"],
  options: SCOPE_OPTION,
  async run(ctx) {
    const { folder } = await openMail(ctx, ctx.options.scope);
    const news = new ScopeNews(folder);
    const { project, branch } = folder.scope;
    ctx.out.note(`following ${safe(`${project}:${branch}`)}; Ctrl-C ends this`);
    for (;;) {
      // Watching begins before the read, so no change is missed.
      const change = new ChangeSignal([
        folder.dir,
        folder.path("agents"),
        folder.path("wakes"),
        folder.path("cursors"),
      ]);
      for (const one of news.next()) await print(ctx, folder, one);
      await change.next();
      change.close();
    }
  },
});

async function print(ctx: Context, folder: MailFolder, one: News): Promise<void> {
  const line = ctx.json ? visibleJson(jsonOf(folder, one)) : lineOf(ctx, folder, one);
  await ctx.out.raw(`${line}\n`);
}

function jsonOf(folder: MailFolder, one: News): object {
  if (!("message" in one)) return one;
  return { ...one, message: documentOf(folder, one.message) };
}

/** One line, cut to the width of a terminal. */
function lineOf({ isTerminal, columns }: Context, folder: MailFolder, one: News): string {
  const line = `${clockTime(Date.parse(one.t))}  ${safe(textOfNews(folder, one))}`;
  return isTerminal ? cut(line, columns) : line;
}

function textOfNews(folder: MailFolder, one: News): string {
  const { agent } = one;
  switch (one.event) {
    case "message":
      return messageText(folder, one.message);
    case "exit":
      return `${agent} ended: ${firstLine(folder, one.message)}`;
    case "woken":
    case "told": {
      const { from, hops, ids, task } = one.wake;
      const chain = hops === 0 ? "" : `, hop ${hops}`;
      const what = one.event === "woken" ? "woken" : "told at work";
      return `${agent} ${what} by ${from.map((name) => shortName(folder.scope, name)).join(", ")} (${ids.join(", ")}${chain}): task ${task}`;
    }
    case "read":
      return `${agent} has read its mail up to ${one.upto}`;
    case "new":
      return `${agent} is there: ${originOf(one.record)}`;
    case "status":
      return `${agent} ${statusText(one.record)}`;
    case "archived":
      return `${agent} is archived`;
  }
}

function messageText(folder: MailFolder, message: Numbered): string {
  const { scope } = folder;
  const { branch, from_agent: from, project, to, type } = message;
  const sender = sameScope(message, scope) ? from : `${project}:${branch}:${from}`;
  const names = to.map((name) => shortName(scope, name));
  const marks = [
    ...(names.length === 0 ? [] : [`to ${names.join(", ")}`]),
    ...(type === "say" ? [] : [`(${type})`]),
    ...(isHeld(folder, message) ? ["(held)"] : []),
  ];
  return `${[sender, ...marks].join(" ")}: ${firstLine(folder, message)}`;
}

function firstLine(folder: MailFolder, message: Numbered): string {
  const [first = "", ...more] = (textOf(folder, message) ?? "(its text is missing)").split("\n");
  return more.length === 0 ? first : `${first} …`;
}

function shortName({ project, branch }: Scope, address: string): string {
  const own = `${project}:${branch}:`;
  return address.startsWith(own) ? address.slice(own.length) : address;
}

function originOf({ from, spawned, task, type }: AgentRecord): string {
  if (spawned === null || from === null) return type;
  return `${type}, from ${from}, spawned by ${spawned.by}: ${task}`;
}

function statusText({ status, task_id: task }: AgentRecord): string {
  if (status === "busy") return `works on ${task ?? "a task"}`;
  return `is ${status}${task === null ? "" : ` after ${task}`}`;
}
