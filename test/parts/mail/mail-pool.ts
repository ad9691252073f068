/** A pool whose agents get mail, with stand-ins for their programs. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { basename, join } from "node:path";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { type Draft, send } from "../../../src/parts/mail/send/send.ts";
import { readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { newTalkPool } from "../../agents/talk/talk-pool.ts";
import type { Pool } from "../../support/pool.ts";

export interface MailPool {
  pool: Pool;
  folder: MailFolder;
  /** Records a message, as `say` and programs do. */
  post: (more?: Partial<Draft>) => string;
  cursorOf: (name: string) => number;
}

/**
 * A pool whose mail is in its tree, in the scope unknown:main.
 * @param more settings of all agents
 * @param isInRepository its directory is a repository, so that several trees share its scope
 */
export function newMailPool(
  tasks: Record<string, object[][]> = {},
  turns?: object[][],
  more?: object,
  isInRepository = false,
): MailPool {
  const pool = newTalkPool(tasks, turns, more);
  if (isInRepository) execFileSync("git", ["init", "-q", "-b", "main", pool.dir]);
  const scope = isInRepository ? { project: basename(pool.dir), branch: "main" } : OUTSIDE;
  fs.appendFileSync(join(pool.state, "config.yaml"), "mail_enabled: true\ndata: .\n");
  const store = { dataDir: pool.state, isDurable: false };
  const folder = new MailFolder(store, scope);
  const post = (more: Partial<Draft> = {}): string => {
    const draft = { scope, from: "ann", via: "cli", to: ["claude"], text: "look at X" };
    return send(store, { ...(draft as Draft), ...more }, Date.now()).id;
  };
  return { pool, folder, post, cursorOf: (name) => readCursor(folder, name).upto };
}

/** All that the programs have printed and were told, run after run. */
export function streamsOf(pool: Pool): string[] {
  return pool
    .runs()
    .sort()
    .map((run) => join(pool.state, "runs", run, "events.jsonl"))
    .map((path) => (fs.existsSync(path) ? fs.readFileSync(path, "utf8") : ""));
}

/** The ids of the wake-ups that have begun. */
export const wakesOf = (pool: Pool): string[] => [
  ...new Set(
    pool
      .runs()
      .map((run) => /wake\.[^@]+/.exec(run)?.[0] ?? "")
      .filter((id) => id !== ""),
  ),
];
