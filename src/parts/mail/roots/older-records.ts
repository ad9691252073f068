/**
 * Sorts the records of earlier versions, in which roots of one name shared a folder. Each agent goes to the root of its `home`, with the
 * mail that it has not read; the messages stay where they are, because they name no root. The folder goes to the root whose agent was
 * changed last. All steps may be repeated: the claim of the folder, which comes last, ends them.
 */
import fs from "node:fs";
import { join } from "node:path";
import { loadDocument } from "../../../host/documents.ts";
import { listDir } from "../../../host/list-dir.ts";
import { readRegularText } from "../../../host/regular-file.ts";
import { type AgentRecord, listAgents, readAgent, whileLocked } from "../agents/agents.ts";
import { rootDirOf } from "../scope/find-scope.ts";
import { folderOf, OUTSIDE } from "../scope/scope.ts";
import { appendMessage } from "../send/append-message.ts";
import { keepText, textOf } from "../store/blobs.ts";
import { claimsOf } from "../store/claims.ts";
import { moveCursor, readCursor } from "../store/cursors.ts";
import { unreadOf } from "../store/inbox.ts";
import { MailFolder, type MailStore, scopeDocument } from "../store/mail-folder.ts";
import { MessageReader } from "../store/read-messages.ts";
import { claimKey } from "./claim.ts";
import { type Root, rootOfTree } from "./find-root.ts";

interface OldAgent {
  folder: MailFolder;
  agent: AgentRecord;
  /** The directory of its root; undefined when its home has gone. */
  rootDir: string | undefined;
}

/**
 * @param root the root that wants the folder of its name
 * @returns true if the root may claim that folder, as far as it is free
 * @throws ErrMailboxDir, a system error: the next call goes on
 */
export async function sortOlder(store: MailStore, root: Root, wallMs: number): Promise<boolean> {
  const { dataDir } = store;
  const [plain] = claimsOf(dataDir, root.scope.project);
  if (plain === undefined || plain.claim !== undefined) return true;
  const old = oldAgents(store, root.scope.project, plain.key);
  const known = old.filter(({ rootDir }) => rootDir !== undefined);
  const owner = known.reduce<OldAgent | undefined>(laterOf, undefined)?.rootDir;
  // A repository of the same name is perhaps the one that was moved. Outside of repositories all trees have the same name.
  if (owner === undefined) return old.length === 0 || root.scope.project !== OUTSIDE.project;
  for (const one of known) if (one.rootDir !== owner) await moveAgent(store, one, wallMs);
  if (owner === root.dir) return true;
  const home = known.find(({ rootDir }) => rootDir === owner)?.agent.home ?? "";
  claimKey(dataDir, { ...(await rootOfTree(home)), scope: root.scope }, true);
  return false;
}

function oldAgents(store: MailStore, project: string, key: string): OldAgent[] {
  const { own: _own, ...rest } = store;
  const dir = join(store.dataDir, "scopes", key);
  return listDir(dir).flatMap((name) => {
    const scope = loadDocument(join(dir, name, "scope.json"), scopeDocument);
    if (scope?.project !== project) return [];
    const own = { project, key, dir: "" };
    const folder = new MailFolder({ ...rest, own }, scope);
    return listAgents(folder, true)
      .filter(({ home }) => home !== null)
      .map((agent) => ({ folder, agent, rootDir: placeOfHome(agent.home ?? "") }));
  });
}

function placeOfHome(home: string): string | undefined {
  return fs.existsSync(home) ? rootDirOf(home) : undefined;
}

function laterOf(a: OldAgent | undefined, b: OldAgent): OldAgent {
  if (a === undefined) return b;
  const order = b.agent.updated_at - a.agent.updated_at;
  return order > 0 || (order === 0 && String(b.rootDir) < String(a.rootDir)) ? b : a;
}

/** Moves an agent to the folder of its root. The record goes last in both folders, so that a crash leaves it in the old one. */
async function moveAgent(
  store: MailStore,
  { agent, folder }: OldAgent,
  wallMs: number,
): Promise<void> {
  const { home, name } = agent;
  const { scope } = folder;
  const root = { ...(await rootOfTree(home ?? "")), scope };
  const key = claimKey(store.dataDir, root, false);
  const own = { project: scope.project, key, dir: root.dir };
  const to = new MailFolder({ ...store, own }, scope);
  for (const { n: _n, checked: _checked, nonce: _nonce, ...message } of unreadOf(folder, name)
    .messages)
    appendMessage(to, { ...message, ...keepText(to, textOf(folder, message) ?? "") }, false);
  const { n } = readCursor(folder, name);
  // The names of wake-ups have this number, and those of the old folder are used up. The messages have new numbers.
  const cursor = { v: 1, n: n + 1, upto: 0, fails: 0, at: Math.floor(wallMs / 1000), by: "move" };
  if (readCursor(to, name).n === 0)
    to.publish(`${JSON.stringify(cursor)}\n`, "cursors", folderOf(name), `${n + 1}.json`);
  const wakes = tryRead(folder.path("wakes", `${folderOf(name)}.jsonl`));
  if (wakes !== undefined) to.publish(wakes, "wakes", `${folderOf(name)}.jsonl`);
  to.publish(`${JSON.stringify(agent)}\n`, "agents", `${folderOf(name)}.json`);
  await whileLocked(folder, async () => {
    if (readAgent(folder, name)?.home !== home) return;
    // An agent that takes the name here must get none of this mail.
    moveCursor(folder, name, MessageReader.atEnd(folder).last, { by: "archive", atMs: wallMs });
    for (const kept of ["offers", "agents"])
      fs.rmSync(folder.path(kept, `${folderOf(name)}.json`), { force: true });
  });
}

function tryRead(path: string): string | undefined {
  try {
    return readRegularText(path);
  } catch {
    return undefined;
  }
}
