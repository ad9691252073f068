/** Shared by the verbs of mail: where mail is kept, in which scope a command works, and who calls it. */
import { dirname } from "node:path";
import { type Context, ErrUsage } from "../../../cli/shell/command-spec.ts";
import { dropOf } from "../../../cli/shell/inside-run.ts";
import { openSettings } from "../../../cli/shell/options.ts";
import { messageOf } from "../../../core/errors.ts";
import { parseObject } from "../../../core/json-object.ts";
import type { Settings } from "../../../core/settings.ts";
import { readRegularText } from "../../../host/regular-file.ts";
import { safe } from "../../../text/render.ts";
import { hasPost } from "../post/has-post.ts";
import { type OwnMail, openAt, openOwn } from "../roots/open-own.ts";
import { readScope } from "../scope/find-scope.ts";
import { explainBadName, HUMAN, parseAddress, type Scope, sameScope } from "../scope/scope.ts";
import { textOf } from "../store/blobs.ts";
import { isHeld } from "../store/inbox.ts";
import { MailFolder, type MailStore, storeOf } from "../store/mail-folder.ts";
import type { Way } from "../store/message.ts";
import type { Numbered } from "../store/read-messages.ts";

/** The variable with the value `mcp` says that the MCP server calls for an agent outside of runs. */
const VIA_VARIABLE = "MAILCHUTE_VIA";

/** The option of all verbs of mail. */
export const SCOPE_OPTION = {
  scope: {
    type: "text",
    value: "PROJECT:BRANCH",
    help: "the scope (default: MAILCHUTE_SCOPE, or the git repository and its branch)",
  },
} as const;

export interface OpenMail {
  store: MailStore;
  folder: MailFolder;
  /** In a run: the folder for requests that the worker outside carries out. */
  drop: string | undefined;
}

type MailContext = Pick<Context, "stateDir" | "env" | "cwd" | "out">;

/**
 * Opens the mail of a scope. Takes the files of `post/inbox` first, so that a command sees all mail.
 * @throws ErrInvalidConfig, ErrInvalidMessage
 */
export async function openMail(ctx: MailContext, scope?: string): Promise<OpenMail> {
  const { settings } = await openSettings(ctx);
  const drop = dropOf(ctx);
  // Inside a run the sandbox may forbid writing; the worker outside takes the files.
  if (drop === undefined && hasPost(ctx.stateDir)) await takePost(ctx, settings);
  // A run may be in a worktree, whose branch is no scope of its own.
  const base = drop === undefined ? ctx.cwd : dirname(ctx.stateDir);
  const said = scope ?? (ctx.env["MAILCHUTE_SCOPE"] || undefined);
  const from = scope === undefined ? "MAILCHUTE_SCOPE" : "--scope";
  const named = said === undefined ? undefined : readScope(said, from);
  const own = await openAt(storeOf(settings, ctx.stateDir, ctx.env), base, ctx.stateDir);
  return { ...(named !== undefined ? inScope(own.store, named) : own), drop };
}

/** The mail of a named scope. Commands there write its project as it does. @throws ErrInvalidMessage for an ambiguous name */
function inScope(store: MailStore, named: Scope): OwnMail {
  const { own, place, scope } = new MailFolder(store, named);
  const there = own ?? { ...place, dir: "" };
  const placed = { ...store, own: there };
  return { store: placed, folder: new MailFolder(placed, scope) };
}

async function takePost(ctx: MailContext, settings: Settings): Promise<void> {
  const { openPost, sweepPost } = await import("../post/open-post.ts");
  const note = (error: unknown): void => ctx.out.note(`post/: ${messageOf(error)}`);
  const own = await openOwn(settings, ctx.stateDir, ctx.env);
  const { box, trays } = openPost(ctx.stateDir, settings, own, note);
  await box.take();
  sweepPost(trays, settings);
}

/** True if a run called the command, and not a person. */
export function isInRun(env: NodeJS.ProcessEnv): boolean {
  return (env["MAILCHUTE_LEASE"] ?? "") !== "";
}

/** How a message of this command came in. Only `cli` counts as a person's word. */
export function wayOf(env: NodeJS.ProcessEnv): Way {
  if (isInRun(env)) return "run";
  return env[VIA_VARIABLE] === "mcp" ? "mcp" : "cli";
}

/**
 * Who calls: a person, or the agent of the calling run.
 * @param named the value of `--from`. A run cannot claim to be a person
 * @throws ErrUsage
 */
export function callerOf(env: NodeJS.ProcessEnv, named?: string): string {
  const name = (named ?? (isInRun(env) ? agentOfRun(env) : HUMAN))?.toLowerCase();
  if (name === undefined)
    throw new ErrUsage(
      "mailchute does not know which agent this run is",
      "name it with --from NAME",
    );
  const fault = explainBadName(name);
  if (fault !== undefined) throw new ErrUsage(`${JSON.stringify(name)}: ${fault}`);
  if (name === HUMAN && wayOf(env) !== "cli")
    throw new ErrUsage(`an agent cannot speak as ${HUMAN}`, "leave out --from, or name the agent");
  return name;
}

function agentOfRun(env: NodeJS.ProcessEnv): string | undefined {
  const told = env["MAILCHUTE_AGENT"] ?? "";
  if (told !== "") return told;
  try {
    const agent = parseObject(readRegularText(env["MAILCHUTE_TASK_FILE"] ?? ""))?.["agent"];
    return typeof agent === "string" ? agent : undefined;
  } catch {
    return undefined;
  }
}

/** The name of an agent of this scope. @throws ErrUsage */
export function nameIn(scope: Scope, text: string): string {
  const address = parseAddress(text.replace(/^@/, ""), scope);
  if (address === undefined) throw new ErrUsage(`${JSON.stringify(text)} is no name of an agent`);
  if (sameScope(address, scope)) return address.name;
  throw new ErrUsage(
    `${JSON.stringify(text)} is in another scope`,
    `name that with --scope ${address.project}:${address.branch}`,
  );
}

/** A message for people: sender and recipients, then the text. */
export function linesOf(folder: MailFolder, message: Numbered, showTime: string): string[] {
  const { n, from_agent: from, to, project, branch, requires_human: isForHuman } = message;
  const scope = folder.scope;
  const sender = sameScope(message, scope) ? from : `${project}:${branch}:${from}`;
  const own = `${scope.project}:${scope.branch}:`;
  const names = to.map((one) => (one.startsWith(own) ? one.slice(own.length) : one));
  const marks = [
    ...(names.length === 0 ? [] : [`to ${names.join(", ")}`]),
    ...(message.type === "say" ? [] : [`(${message.type})`]),
    ...(isForHuman ? ["(needs a person)"] : []),
    ...(isHeld(folder, message) ? ["(held)"] : []),
  ];
  const text = textOf(folder, message) ?? `(its text is missing: blobs/${message.content_ref})`;
  return [
    `${n}  ${showTime}  ${safe([sender, ...marks].join(" "))}  ${safe(message.id)}`,
    ...text.split(/\r?\n/).map((line) => `    ${safe(line)}`),
  ];
}

/** A message for programs, with its whole text. */
export function documentOf(folder: MailFolder, message: Numbered): object {
  const { checked: _checked, ...rest } = message;
  return { ...rest, content: textOf(folder, message) ?? null };
}
