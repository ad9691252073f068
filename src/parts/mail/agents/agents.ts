/** The agents of a scope, each in `agents/<name>.json`. Records of earlier versions may lack fields. */
import fs from "node:fs";
import { ErrInvalidMessage, ErrInvalidTransition } from "../../../core/errors.ts";
import type { AgentSettings } from "../../../core/settings.ts";
import {
  having,
  type Is,
  isFlag,
  isNumber,
  isText,
  type Of,
  oneOf,
  orElse,
  orNull,
  shape,
} from "../../../core/shape.ts";
import type { Documents } from "../../../host/document-store.ts";
import { underLock } from "../../../host/file-lock.ts";
import { rootDirOf } from "../scope/find-scope.ts";
import { explainBadName, folderOf, formatAddress, HUMAN, type Scope } from "../scope/scope.ts";
import { moveCursor } from "../store/cursors.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { MessageReader } from "../store/read-messages.ts";

/** How an agent was spawned. */
export interface Spawned {
  /** The agent that spawned it, or `human`. */
  by: string;
  /** 1: a person or an agent of the settings spawned it. 2: an agent of depth 1 spawned it, and so on. */
  depth: number;
  /** Names the request. A request that is carried out several times makes one agent. */
  request: string;
  /** The id of its first task. */
  task_id: string;
  /** The JSON text of that task; null once it is submitted. */
  task: string | null;
  /** What the settings of `from` said when the agent was spawned: see `agents why`. */
  config: Pick<AgentSettings, "kind" | "model" | "mode" | "permissions">;
}

const isSpawned = having({ request: isText, task_id: isText }) as Is<Spawned>;
const textOrNull = orElse(orNull(isText), null);
const numberOrNull = orElse(orNull(isNumber), null);
/** Times are unix seconds; null: this has not happened. */
const agent = shape({
  v: orElse(oneOf(1), 1),
  name: orElse(isText, ""),
  /** The kind of the agent, such as `claude`. */
  type: orElse(isText, "unknown"),
  /** What it works on. */
  task: orElse(isText, ""),
  status: orElse(isText, "idle"),
  session_id: textOrNull,
  pid: numberOrNull,
  /** The task of the last run of this agent that a supervisor has seen. */
  task_id: textOrNull,
  compacted_at: numberOrNull,
  last_seen_message_id: textOrNull,
  completed_at: numberOrNull,
  archived_at: numberOrNull,
  created_at: orElse(isNumber, 0),
  updated_at: orElse(isNumber, 0),
  /** The incarnation, from 1. An agent that takes the name of an archived one gets the next number. */
  inc: orElse(isNumber, 1),
  /** The state tree whose supervisor wakes it; null: none does. */
  home: textOrNull,
  /** True if its next run must get the standing instructions again. */
  needs_briefing: orElse(isFlag, false),
  /** The agent of the settings whose settings it uses, in lower case. Null: the one of its own name. */
  from: textOrNull,
  /** Null: the agent was not spawned, and has no first task. */
  spawned: orElse(orNull(isSpawned), null),
});
type Kept = Of<typeof agent>;
export type AgentRecord = Kept & Scope;

export type AgentDraft = Pick<AgentRecord, "name" | "type"> &
  Partial<Pick<AgentRecord, "task" | "status" | "home" | "from">> & {
    /** True if the settings name it. Only such an agent may be the orchestrator. */
    isOfSettings?: boolean;
    /** @param inc the incarnation of the new agent */
    spawn?: (inc: number) => Spawned;
  };
/** Fields that may change while the agent exists. */
export type AgentChange = Partial<
  Omit<AgentRecord, "v" | "project" | "branch" | "name" | "inc" | "created_at" | "updated_at">
>;

const agentsIn = (folder: MailFolder): Documents<Kept> => folder.documents(agent, "agents");

/**
 * Makes an agent. If it takes the name of an archived agent, it gets none of that agent's mail.
 * @throws ErrInvalidMessage for a name that no agent can have, ErrInvalidTransition when an agent has it, a system error
 */
export async function createAgent(
  folder: MailFolder,
  draft: AgentDraft,
  wallMs: number,
): Promise<AgentRecord> {
  return await whileLocked(folder, async () => addAgent(folder, draft, wallMs));
}

/** Like `createAgent`, within `whileLocked`. */
export function addAgent(folder: MailFolder, draft: AgentDraft, wallMs: number): AgentRecord {
  const name = draft.name.toLowerCase();
  const { isOfSettings = false, spawn, ...fields } = draft;
  const fault = explainBadName(name) ?? explainTaken(folder, name, isOfSettings);
  if (fault !== undefined)
    throw new ErrInvalidMessage(`${JSON.stringify(draft.name)} is no name of an agent: ${fault}`, {
      phase: "create agent",
      hint: "choose another name",
    });
  const before = readAgent(folder, name);
  if (before !== undefined && before.archived_at === null) throw exists(name);
  const inc = (before?.inc ?? 0) + 1;
  if (inc > 1) {
    const { last } = MessageReader.atEnd(folder);
    moveCursor(folder, name, last, { by: "archive", atMs: wallMs });
  }
  const now = Math.floor(wallMs / 1000);
  const spawned = spawn === undefined ? {} : { spawned: spawn(inc) };
  const given = { ...fields, ...spawned, name, inc, created_at: now, updated_at: now };
  const record = recordOf(agent(given), folder.scope, name) as AgentRecord;
  const all = agentsIn(folder);
  if (before !== undefined) all.replace(folderOf(name), record);
  // By link: if another process took our lock for old, we must not replace the agent that it made.
  else if (!all.create(folderOf(name), record)) throw exists(name);
  return record;
}

function exists(name: string): ErrInvalidTransition {
  return new ErrInvalidTransition(`there is an agent ${JSON.stringify(name)}`, {
    id: name,
    phase: "create agent",
    hint: `choose another name, or archive it: mailchute archive ${name}`,
  });
}

/** Why no agent can ever take this name here; undefined when one can. */
function explainTaken(
  { scope, orchestrator }: MailFolder,
  name: string,
  isOfSettings: boolean,
): string | undefined {
  if (name === HUMAN) return `${HUMAN} is the name of a person`;
  const isOrchestrator = formatAddress({ ...scope, name }) === orchestrator;
  return isOrchestrator && !isOfSettings ? "it is the name of the orchestrator" : undefined;
}

/**
 * @param change a function that returns undefined changes nothing
 * @returns the record after the change; undefined when there is no such agent
 * @throws a system error
 */
export async function changeAgent(
  folder: MailFolder,
  name: string,
  change: AgentChange | ((before: AgentRecord) => AgentChange | undefined),
  wallMs: number,
): Promise<AgentRecord | undefined> {
  return await whileLocked(folder, async () => {
    const before = readAgent(folder, name);
    if (before === undefined) return undefined;
    const fields = typeof change === "function" ? change(before) : change;
    if (fields === undefined) return before;
    const after = { ...before, ...fields, updated_at: Math.floor(wallMs / 1000) };
    agentsIn(folder).replace(folderOf(name), after);
    return after;
  });
}

/** @param name in lower case @throws a system error: then it is unknown whether the agent exists */
export function readAgent(folder: MailFolder, name: string): AgentRecord | undefined {
  return recordOf(agentsIn(folder).load(folderOf(name)), folder.scope, name);
}

/**
 * True if another state tree of the scope's root is its home and still exists. So a tree that was moved keeps its agents, also if a tree
 * of another root is now in its old place.
 */
export function livesElsewhere(
  { own }: Pick<MailFolder, "own">,
  { home }: AgentRecord,
  stateDir: string,
): boolean {
  if (home === null || home === stateDir || !fs.existsSync(home)) return false;
  return own === undefined || rootDirOf(home) === own.dir;
}

/** Sorted by name, without the archived ones by default. @throws a system error: then it is unknown which agents exist */
export function listAgents(folder: MailFolder, isWithArchived = false): AgentRecord[] {
  return agentsIn(folder)
    .loadAll()
    .flatMap(([, one]) => recordOf(one, folder.scope, one.name) ?? [])
    .filter(({ name, archived_at: at }) => name !== "" && (isWithArchived || at === null))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Undefined when there is none. */
function recordOf(found: Kept | undefined, scope: Scope, name: string): AgentRecord | undefined {
  if (found === undefined) return undefined;
  return { ...found, updated_at: found.updated_at || found.created_at, ...scope, name };
}

/** Makes changes of a scope's agents one after the other, so that no change is lost. */
export async function whileLocked<T>(folder: MailFolder, change: () => Promise<T>): Promise<T> {
  folder.make();
  folder.makeDir("agents");
  return underLock(folder.path("agents.lock"), change);
}
