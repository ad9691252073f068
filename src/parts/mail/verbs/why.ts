/** `agents why NAME`: shows when and why an agent was woken, and why its unread mail waits. Reads only. */
import type { Context } from "../../../cli/shell/command-spec.ts";
import { openSettings } from "../../../cli/shell/options.ts";
import { ErrTaskNotFound } from "../../../core/errors.ts";
import type { AgentSettings } from "../../../core/settings.ts";
import { stateTree } from "../../../core/state-tree.ts";
import { localTime } from "../../../text/local-time.ts";
import { safe, wrap } from "../../../text/render.ts";
import { closedGates, isAttended, readSupervisor } from "../../../view/supervisor.ts";
import { type AgentRecord, readAgent } from "../agents/agents.ts";
import { makeBundle } from "../delivery/bundle.ts";
import { type MailOffer, readOffer } from "../delivery/offers.ts";
import { canWakeBy, isOwnMail, judgeWake, selfTimes } from "../delivery/wake-rules.ts";
import { formatAddress, HUMAN } from "../scope/scope.ts";
import { readCursor } from "../store/cursors.ts";
import { isHeld, unreadOf } from "../store/inbox.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { recipientsOf } from "../store/message.ts";
import type { Numbered } from "../store/read-messages.ts";
import { readWakes, type WakeRecord } from "../store/wake-log.ts";

const WAKES_SHOWN = 5;

interface Explained {
  agent: AgentRecord;
  wakes: WakeRecord[];
  offer: MailOffer | undefined;
  unread: Numbered[];
  /** Messages of other projects that a person may pass on. */
  held: Numbered[];
  /** Why the unread mail waits or what stops the agent's tasks, and what to do. */
  reasons: string[];
}

/** @param name in lower case @throws ErrTaskNotFound, ErrInvalidConfig */
export async function explainAgent(
  ctx: Pick<Context, "stateDir" | "env" | "json" | "out" | "isTerminal" | "columns">,
  folder: MailFolder,
  name: string,
): Promise<void> {
  const agent = readAgent(folder, name);
  if (agent === undefined)
    throw new ErrTaskNotFound(`there is no agent ${JSON.stringify(name)} in this scope`, {
      id: name,
      phase: "why",
      hint: "`mailchute agents --archived` lists them",
    });
  const offer = readOffer(folder, name);
  const unread = unreadOf(folder, name).messages;
  const address = formatAddress({ ...folder.scope, name });
  const explained: Explained = {
    agent,
    wakes: readWakes(folder, name).slice(-WAKES_SHOWN),
    offer,
    unread,
    held: unreadOf(folder, HUMAN).messages.filter(
      (one) => isHeld(folder, one) && recipientsOf(one).includes(address),
    ),
    reasons: await whyItWaits(ctx, folder, agent),
  };
  if (ctx.json) ctx.out.json({ scope: folder.scope, ...explained });
  else
    for (const line of linesOf(explained).map(safe))
      for (const part of ctx.isTerminal ? wrap(line, ctx.columns, 2) : [line]) ctx.out.line(part);
}

/** Why the unread mail of an agent waits or what stops its tasks, and what to do. @throws ErrInvalidConfig */
export async function whyItWaits(
  ctx: Pick<Context, "stateDir" | "env">,
  folder: MailFolder,
  agent: AgentRecord,
): Promise<string[]> {
  const { settings } = await openSettings(ctx);
  const { messages: unread } = unreadOf(folder, agent.name);
  const isOwn = agent.home === ctx.stateDir;
  return [
    ...(unread.length > 0 && readOffer(folder, agent.name) === undefined
      ? mailReasons(folder, agent, unread)
      : []),
    ...(isOwn ? settingsReasons(agent, settings.agents) : []),
    ...treeReasons(agent, settings.mail_enabled || !isOwn),
  ];
}

/** How the settings of a spawned agent have changed since it was spawned. */
function settingsReasons(
  { from, spawned }: AgentRecord,
  agents: readonly AgentSettings[],
): string[] {
  if (from === null || spawned === null) return [];
  const now = agents.find(({ name }) => name.toLowerCase() === from);
  if (now === undefined)
    return [`config.yaml has no agent ${from}, whose settings it has, so nothing wakes it`];
  const { config } = spawned;
  const keys = ["kind", "model", "mode", "permissions"] as const;
  const changed = keys.filter((key) => JSON.stringify(now[key]) !== JSON.stringify(config[key]));
  return changed.length === 0
    ? []
    : [`${from} has another ${changed.join(" and ")} in config.yaml than when it was spawned`];
}

function mailReasons(folder: MailFolder, agent: AgentRecord, unread: Numbered[]): string[] {
  if (agent.archived_at !== null) return ["it is archived, and is not woken"];
  const { name, status } = agent;
  const wallMs = Date.now();
  const cursor = readCursor(folder, name);
  const isOrchestrator = formatAddress({ ...folder.scope, name }) === folder.orchestrator;
  const bundle = makeBundle(folder.scope, unread, () => "");
  const sentMs = (message?: Numbered): number => (message?.created_at ?? 0) * 1000;
  const { verdict, why } = judgeWake({
    bundle,
    selfAtMs: isOwnMail(folder.scope, name, bundle) ? selfTimes(readWakes(folder, name)) : [],
    cursor,
    canWake: canWakeBy({ messages: unread, isCut: false }, isOrchestrator),
    sinceMs: sentMs(unread[0]),
    lastMs: sentMs(unread.at(-1)),
    nowMs: wallMs,
    cursorAtMs: cursor.at * 1000,
    sentAtMs: sentMs(unread.at(-1)),
    wallMs,
  });
  if (verdict === "held")
    return [`held: ${why}. mailchute mail ${name} shows it; --ack lets the next mail through`];
  if (status === "busy") return ["it is at work, and gets the mail in this run or after it"];
  return [verdict === "now" ? "it is about to be woken" : `it waits: ${why}`];
}

/** Reasons that come from the agent's state tree and its supervisor. */
function treeReasons({ from, home, name }: AgentRecord, isOn: boolean): string[] {
  if (home === null) return ["no state tree is its home, so nothing wakes it"];
  if (!isOn) return ["mail_enabled is not true in config.yaml, so nothing wakes it"];
  const view = readSupervisor(stateTree(home), Date.now());
  if (!isAttended(view)) return [`no supervisor runs for ${home}: mailchute run --state ${home}`];
  return closedGates(view)
    .filter(({ agents }) => agents.some((one) => one.toLowerCase() === (from ?? name)))
    .map((gate) => `its tasks wait: ${gate.why}: ${gate.do}`);
}

function linesOf({ agent, wakes, offer, unread, held, reasons }: Explained): string[] {
  const { branch, name, project, type } = agent;
  const last = unread.at(-1);
  return [
    `${project}:${branch}:${name} (${type}): ${stateText(agent)}`,
    ...originLines(agent),
    ...wakes.map(lineOfWake),
    ...(wakes.length === 0 ? ["it was never woken"] : []),
    ...(offer === undefined
      ? []
      : [`mail was given to the task ${offer.task}, and is not read yet`]),
    ...(last === undefined
      ? ["it has no unread mail"]
      : [`unread: ${unread.length}, the last from ${last.from_agent} (${last.id})`]),
    ...(held.length === 0
      ? []
      : [`held for you: ${held.length} of other projects; mailchute release ${held[0]?.id}`]),
    ...reasons,
  ];
}

function stateText({
  archived_at: archivedAt,
  status,
  task,
  task_id: taskId,
}: AgentRecord): string {
  if (archivedAt !== null) return "archived";
  const doing = status === "busy" && taskId !== null ? `${status} with ${taskId}` : status;
  return task === "" ? doing : `${doing}, ${task}`;
}

function originLines({ from, spawned }: AgentRecord): string[] {
  if (spawned === null) return [];
  const { by, depth } = spawned;
  return [`it was spawned by ${by} (depth ${depth}), and has the settings of ${from}`];
}

function lineOfWake({ at, from, hops, ids, is_wake: isWake, task }: WakeRecord): string {
  const what = isWake ? "woken" : "told at work";
  const chain = hops === 0 ? "" : `, after ${hops} wake-ups without a person`;
  return `${localTime(at * 1000)}  ${what} by ${from.join(", ")} (${ids.join(", ")}), task ${task}${chain}`;
}
