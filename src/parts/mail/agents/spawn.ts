/**
 * Spawns an agent. It has the settings of another agent and a name of its own, and it begins with a task. One request makes one agent,
 * even after a crash: the record of the agent is written first, under a lock, and names the request and the task. The task is submitted
 * once, under an id that depends on the record. After a crash between the two steps, the same request or the next supervisor goes on.
 */
import { createHash } from "node:crypto";
import { isAbsolute } from "node:path";
import { compact } from "../../../core/compact.ts";
import { derivedId } from "../../../core/derived-id.ts";
import { ErrInvalidMessage, ErrInvalidTransition } from "../../../core/errors.ts";
import type { AgentSettings, Settings } from "../../../core/settings.ts";
import { tryStatOf } from "../../../host/regular-file.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";
import { refuse } from "../../../mailbox/submit/submit.ts";
import { submitOnce } from "../../../mailbox/submit/submit-once.ts";
import { formatAddress } from "../scope/scope.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import {
  type AgentRecord,
  addAgent,
  changeAgent,
  listAgents,
  readAgent,
  whileLocked,
} from "./agents.ts";
import { explainSpawnLimit, nextDepth } from "./spawn-limits.ts";

export interface SpawnPlace {
  /** The folder of the scope in which the state tree is. */
  folder: MailFolder;
  trays: Trays;
  settings: Pick<Settings, "agents" | "spawn">;
  stateDir: string;
}

export interface SpawnRequest {
  /** Identifies the request. A repetition of the request has the same text. */
  request: string;
  /** Who spawns the agent: an agent of the scope, or `human`. */
  by: string;
  /** The settings for the new agent: those of a coding agent. */
  agent: AgentSettings;
  /** Left out: the name of its settings with a number. */
  name?: string;
  /** What the new agent must do. */
  text: string;
  /** What it should know to do this. */
  context?: string;
  /** Paths that it should look at first. */
  files?: readonly string[];
  /** Where its first task runs. Left out: in the directory that contains the state tree. */
  cwd?: string;
  /** How many wake-ups led to this request since a person last spoke. */
  hops?: number;
  /** The task whose run sends the request. */
  sender?: string;
}

const TITLE_CHARS_MAX = 100;

/**
 * @returns the agent, whose first task is now in the mailbox. `isNew`: this call made the agent
 * @throws ErrInvalidTransition when there are too many agents or one has the name, ErrInvalidMessage for a bad name or `cwd`,
 *   ErrInvalidTask when the task is too long, a system error
 */
export async function spawnAgent(
  place: SpawnPlace,
  request: SpawnRequest,
  wallMs: number,
): Promise<{ agent: AgentRecord; isNew: boolean }> {
  const { folder } = place;
  const made = await whileLocked(folder, async () => {
    const all = listAgents(folder, true);
    const known = all.find(({ spawned }) => spawned?.request === request.request);
    if (known !== undefined) return { agent: known, isNew: false };
    return { agent: add(place, request, all, wallMs), isNew: true };
  });
  await submitFirstTask(place, made.agent, wallMs);
  return made;
}

/** Submits the first task of an agent if a process died before it did so. @throws ErrTaskExists, ErrInvalidTask, a system error */
export async function submitFirstTask(
  { folder, trays }: Pick<SpawnPlace, "folder" | "trays">,
  { name, archived_at: archivedAt, spawned }: AgentRecord,
  wallMs: number,
): Promise<void> {
  if (spawned === null || spawned.task === null || archivedAt !== null) return;
  await submitOnce(trays, { id: spawned.task_id, bytes: Buffer.from(`${spawned.task}\n`) });
  const noted = { spawned: { ...spawned, task: null } };
  const isSame = (one: AgentRecord): boolean => one.spawned?.request === spawned.request;
  await changeAgent(folder, name, (one) => (isSame(one) ? noted : undefined), wallMs);
}

/** @param all agents of the scope */
function add(
  { folder, settings, stateDir }: SpawnPlace,
  request: SpawnRequest,
  all: readonly AgentRecord[],
  wallMs: number,
): AgentRecord {
  const { agent, by, name = freeName(folder, settings.agents, agent.name), text } = request;
  const depth = nextDepth(readAgent(folder, by));
  const limit = explainSpawnLimit(all, depth, settings.spawn, Math.floor(wallMs / 1000));
  const details = { id: name, phase: "spawn" };
  if (limit !== undefined)
    throw new ErrInvalidTransition(limit.fault, { ...details, hint: limit.hint });
  if (isConfigured(settings.agents, name))
    throw new ErrInvalidTransition(`${JSON.stringify(name)} is an agent of config.yaml`, {
      ...details,
      hint: "choose another name, or leave it out",
    });
  const { kind, mode, model, permissions } = agent;
  checkDirectory(name, request.cwd);
  const draft = { name, type: kind, task: firstLine(text), home: stateDir };
  return addAgent(
    folder,
    {
      ...draft,
      from: agent.name.toLowerCase(),
      spawn: (inc) => {
        const own = { name: name.toLowerCase(), inc, createdAt: Math.floor(wallMs / 1000) };
        const task = firstTask(folder, request, own);
        const json = JSON.stringify(task);
        // Checked before the record is written: a record with a refused task would wait for it for ever.
        const refusal = refuse({ id: task.id, bytes: Buffer.from(`${json}\n`) });
        if (refusal?.outcome === "refused") throw refusal.error;
        return {
          by,
          depth,
          request: request.request,
          task_id: task.id,
          task: json,
          config: { kind, ...compact({ mode, model, permissions }) },
        };
      },
    },
    wallMs,
  );
}

/** @throws ErrInvalidMessage */
function checkDirectory(name: string, cwd: string | undefined): void {
  if (cwd === undefined || (isAbsolute(cwd) && isDirectory(cwd))) return;
  throw new ErrInvalidMessage(`its task cannot run in ${JSON.stringify(cwd.slice(0, 200))}`, {
    id: name,
    phase: "spawn",
    hint: "name a directory that is there, by its full path",
  });
}

function isDirectory(path: string): boolean {
  return tryStatOf(path)?.isDirectory() === true;
}

function firstTask(
  { reference, scope }: MailFolder,
  { agent, context, cwd, files = [], hops = 0, sender, text }: SpawnRequest,
  { createdAt, inc, name }: { name: string; inc: number; createdAt: number },
) {
  const { project, branch } = reference;
  const hash = createHash("sha256")
    .update(formatAddress({ ...scope, name }))
    .digest("hex");
  const prompt = [
    text,
    ...(context === undefined ? [] : [`What you should know:\n${context}`]),
    ...(files.length === 0 ? [] : [`Look at first:\n${files.map((one) => `- ${one}`).join("\n")}`]),
  ].join("\n\n");
  return {
    // A person's task could have the agent's name as its id, but not this one.
    id: derivedId(`spawn.${hash.slice(0, 16)}`, `.${inc}`),
    created_at: createdAt,
    ...compact({ sender }),
    agent: agent.name,
    title: `${name}: ${firstLine(text)}`,
    prompt,
    ...compact({ cwd }),
    env: {
      MAILCHUTE_SCOPE: `${project}:${branch}`,
      MAILCHUTE_AGENT: name,
      ...(hops > 0 ? { MAILCHUTE_HOPS: String(hops) } : {}),
    },
  };
}

/** `coder-2`, or the same name with the next number that no agent has or had. */
function freeName(folder: MailFolder, agents: readonly AgentSettings[], base: string): string {
  for (let n = 2; ; n++) {
    const name = `${base.toLowerCase()}-${n}`;
    if (readAgent(folder, name) === undefined && !isConfigured(agents, name)) return name;
  }
}

function isConfigured(agents: readonly AgentSettings[], name: string): boolean {
  return agents.some((one) => one.name.toLowerCase() === name.toLowerCase());
}

function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0]?.slice(0, TITLE_CHARS_MAX) ?? "";
}
