/** Records as an earlier version left them: roots of one name in one folder. */
import fs from "node:fs";
import { join } from "node:path";
import { createAgent, listAgents } from "../../../src/parts/mail/agents/agents.ts";
import { openAt } from "../../../src/parts/mail/roots/open-own.ts";
import type { Scope } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MailFolder, type MailStore } from "../../../src/parts/mail/store/mail-folder.ts";
import { tempDir } from "../../support/temp-dir.ts";

export const NOW = 1_795_500_000_000;
export const OUTSIDE = { project: "unknown", branch: "main" };

interface Old {
  dir: string;
  store: MailStore;
  /** The folder in which an earlier version kept the records of all. */
  folder: MailFolder;
  /** Makes a tree with an agent, as an earlier version did. @returns the tree */
  add: (name: string, agent: string, atMs?: number) => Promise<string>;
  say: (to: string, text: string) => void;
}

export function newOld(scope: Scope = OUTSIDE): Old {
  const dir = tempDir();
  const store: MailStore = { dataDir: join(dir, "data"), isDurable: false };
  const folder = new MailFolder(store, scope);
  const isInside = scope.project !== OUTSIDE.project;
  return {
    dir,
    store,
    folder,
    async add(name, agent, atMs = NOW) {
      const around = isInside ? join(dir, name, scope.project) : join(dir, name);
      const home = join(around, "state");
      fs.mkdirSync(join(home, "mailbox", "inbox"), { recursive: true });
      if (isInside) {
        fs.mkdirSync(join(around, ".git"));
        fs.writeFileSync(join(around, ".git", "HEAD"), `ref: refs/heads/${scope.branch}\n`);
      }
      await createAgent(folder, { name: agent, type: "claude", home, task: name }, atMs);
      return home;
    },
    say(to, text) {
      send(
        store,
        { scope, from: "human", via: "cli", to: [to], text, id: `m-${text.replaceAll(" ", ".")}` },
        NOW,
      );
    },
  };
}

export const openTree = async (store: MailStore, state: string): Promise<MailFolder> =>
  (await openAt(store, join(state, ".."), state)).folder;
export const namesIn = (folder: MailFolder): string[] =>
  listAgents(folder, true).map(({ name }) => name);
export const textsFor = (folder: MailFolder, name: string): string[] =>
  unreadOf(folder, name).messages.map(({ content }) => content);
