/**
 * Tickets of `submitOnce`, in `.once/`. A ticket is the file of a task that may still be linked into the inbox. The gate closes it
 * before the task is accepted or run, so that no process can link it again.
 */
import { systemCode } from "../../core/errors.ts";
import { unlinkIfThere } from "./steps.ts";
import { pathIn, type Trays } from "./trays.ts";

export interface Ticket {
  id: string;
  token: string;
}

const NAME = /^([^~]+)~([a-z0-9]+)\.json$/;

export function onceDir({ dir }: Pick<Trays, "dir">): string {
  return pathIn(dir, ".once");
}

export function ticketPath(trays: Trays, { id, token }: Ticket): string {
  return pathIn(onceDir(trays), `${id}~${token}.json`);
}

/** The note that the task of this id was submitted. It holds the token of the ticket that counts. */
export function notePath(trays: Trays, id: string): string {
  return pathIn(onceDir(trays), `${id}.note`);
}

/** The id of a note; undefined for another name. */
export function parseNote(file: string): string | undefined {
  return /^([^~]+)\.note$/.exec(file)?.[1];
}

export function listTickets(trays: Trays): Ticket[] {
  let files: string[] = [];
  try {
    files = trays.storage.list(onceDir(trays));
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
  }
  return files.flatMap((file) => {
    const [, id, token] = NAME.exec(file) ?? [];
    return id === undefined || token === undefined ? [] : [{ id, token }];
  });
}

/**
 * The gate: removes the tickets that are another name of this file. Call it only for a file with more than one name.
 * @returns whether there was one
 */
export function closeTickets(trays: Trays, id: string, ino: number): boolean {
  const open = listTickets(trays)
    .filter((ticket) => ticket.id === id)
    .map((ticket) => ticketPath(trays, ticket))
    .filter((path) => trays.storage.look(path)?.ino === ino);
  if (open.length === 0) return false;
  // Until the other name is durable, the ticket may be the only name that survives a power cut.
  if (trays.durability === "power")
    for (const dir of [trays.inbox, trays.processing]) trays.storage.syncDirNow(dir);
  for (const path of open) unlinkIfThere(trays, path);
  return true;
}
