/**
 * Submit once: a task gets into the inbox once under its id, however often and by however many processes it is submitted, even
 * after its record was removed. It is for tasks with a cause, such as a time of a schedule; the id is made from that cause.
 *
 *   note     link `<id>.note`          decides; a second one fails
 *   publish  link the ticket to inbox/  only the ticket that the note names
 *   close    unlink the ticket         from here on, no process can publish. Accept does this too: see `closeTickets`
 */
import { systemCode } from "../../core/errors.ts";
import { ONCE_DAYS, TASK_BYTES_MAX } from "../../core/limits.ts";
import { inboxName } from "../../core/names.ts";
import { isExpired } from "../../core/retention.ts";
import { randomToken } from "../files/random.ts";
import { linked, readIfThere, unlinkIfThere } from "../files/steps.ts";
import {
  listTickets,
  notePath,
  onceDir,
  parseNote,
  type Ticket,
  ticketPath,
} from "../files/tickets.ts";
import { makeStateDir, pathIn, type Trays, withTrays } from "../files/trays.ts";
import { liveIds } from "../find/locate.ts";
import { SettledNames } from "../find/settled-names.ts";
import { clash, exists, refuse, type Submission } from "./submit.ts";

const TOKEN_CHARS = 10;

/**
 * @returns "submitted" if this call put it into the inbox; "unchanged" if the id was submitted before, also if its record is gone
 * @throws ErrTaskExists when another task has the id. If that task came after the note, the ticket stays, and is published when
 *   the id is free. ErrInvalidTask, or a system error
 */
export async function submitOnce(
  trays: Trays,
  submission: Submission,
): Promise<"submitted" | "unchanged"> {
  throwRefusal(refuse(submission));
  const { id } = submission;
  let token = readNote(trays, id);
  if (token === undefined) {
    const taken = otherTask(trays, submission);
    // Another process may have submitted this very task while we looked.
    if (taken !== undefined) token = readNote(trays, id);
    if (taken !== undefined && token === undefined) throw taken;
    token ??= await decide(trays, await stage(trays, submission));
  }
  // Even if another process wrote the note: our caller may rely on it.
  await makeDurable(trays, [onceDir(trays)]);
  return publish(trays, { id, token });
}

/** The error when another task has the id; undefined when the id is free, or this same task has it. */
function otherTask(trays: Trays, submission: Submission): Error | undefined {
  const known = clashNow(trays, submission);
  if (known?.outcome === "refused") return known.error;
  const { id, bytes } = submission;
  const waiting = pathIn(trays.inbox, inboxName({ id }));
  const isOther = readIfThere(trays, waiting)?.equals(bytes) === false;
  return isOther ? exists(id, waiting, "waits in the inbox") : undefined;
}

/** Continues the work of processes that died: publishes the tickets that they left. Tries all, then throws the first error. */
export async function finishTickets(trays: Trays): Promise<void> {
  const errors: unknown[] = [];
  for (const ticket of listTickets(trays)) {
    try {
      // A ticket without a note must be submitted, too: its process died, or is about to link the note.
      const token = readNote(trays, ticket.id) ?? (await decide(trays, ticket));
      await makeDurable(trays, [onceDir(trays)]);
      if (token === ticket.token) await publish(trays, ticket);
      else unlinkIfThere(trays, ticketPath(trays, ticket));
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/** Whether this note may be removed: no caller asks for its id any more, and its ticket is closed. */
export function isOldNote(trays: Trays, file: string, ageMs: number): boolean {
  const id = parseNote(file);
  if (id === undefined || !isExpired(ageMs, ONCE_DAYS)) return false;
  const token = readNote(trays, id) ?? "";
  return trays.storage.look(ticketPath(trays, { id, token })) === undefined;
}

/** Makes a ticket. A crash before its rename leaves a staged file, which is swept; after it, `finishTickets` publishes it. */
async function stage(trays: Trays, { id, bytes }: Submission): Promise<Ticket> {
  const { storage } = trays;
  if (storage.look(onceDir(trays)) === undefined) {
    makeStateDir(onceDir(trays), storage, 1);
    await makeDurable(trays, [trays.dir]);
  }
  const ticket = { id, token: randomToken(TOKEN_CHARS) };
  const staged = pathIn(trays.tmp, `${id}-${ticket.token}.json.tmp`);
  withTrays(trays, () => storage.create(staged, bytes));
  if (trays.durability === "power") await storage.syncFiles([staged]);
  // The name is new, so the rename replaces nothing.
  storage.rename(staged, ticketPath(trays, ticket));
  return ticket;
}

/** Links the note, unless there is one. The loser of a race closes its own ticket. @returns the token that counts */
async function decide(trays: Trays, { id, token }: Ticket): Promise<string> {
  const { storage } = trays;
  const staged = pathIn(trays.tmp, `${id}-${token}${randomToken(TOKEN_CHARS)}.note.tmp`);
  withTrays(trays, () => storage.create(staged, Buffer.from(token)));
  if (trays.durability === "power") await storage.syncFiles([staged]);
  const hasWon = linked(trays, staged, notePath(trays, id));
  unlinkIfThere(trays, staged);
  const winner = hasWon ? token : readNote(trays, id);
  if (winner === undefined) throw exists(id, notePath(trays, id), "was submitted just now");
  if (winner !== token) unlinkIfThere(trays, ticketPath(trays, { id, token }));
  return winner;
}

async function publish(trays: Trays, ticket: Ticket): Promise<"submitted" | "unchanged"> {
  const path = ticketPath(trays, ticket);
  const isNew = linkTicket(trays, ticket.id, path);
  if (isNew === undefined) return "unchanged";
  await makeDurable(trays, [trays.inbox, trays.processing]);
  unlinkIfThere(trays, path);
  await makeDurable(trays, [onceDir(trays)]);
  return isNew ? "submitted" : "unchanged";
}

/**
 * Links the ticket into the inbox, unless the task is there.
 * @returns whether it did; undefined when the ticket is closed
 * @throws ErrTaskExists when another task has the id. The ticket stays
 */
function linkTicket(trays: Trays, id: string, path: string): boolean | undefined {
  const facts = trays.storage.look(path);
  if (facts === undefined) return undefined;
  // The ticket was linked before: it has a second name.
  if (facts.nlink > 1) return false;
  const bytes = readIfThere(trays, path);
  if (bytes === undefined) return undefined;
  const known = clashNow(trays, { id, bytes });
  if (known?.outcome === "refused") return orClosed(trays, path, known.error);
  if (known !== undefined) return false;
  const target = pathIn(trays.inbox, inboxName({ id }));
  try {
    if (withTrays(trays, () => linked(trays, path, target))) return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT" && trays.storage.look(path) === undefined) return undefined;
    throw error;
  }
  if (isThere(trays, target, facts.ino, bytes)) return false;
  return orClosed(trays, path, exists(id, target, "waits in the inbox"));
}

/** Throws the refusal, unless the ticket is closed: then the task that we found is this one, which moved on while we looked. */
function orClosed(trays: Trays, path: string, refusal: Error): undefined {
  if (trays.storage.look(path) === undefined) return undefined;
  throw refusal;
}

/** Whether the file at this path is the ticket, or the same task under one name. A file with two names may still be taken back. */
function isThere(trays: Trays, path: string, ino: number, bytes: Buffer): boolean {
  try {
    const found = trays.storage.read(path, TASK_BYTES_MAX);
    if (found.facts.ino === ino) return true;
    return found.facts.nlink === 1 && found.bytes?.equals(bytes) === true;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return false;
    throw error;
  }
}

function clashNow(trays: Trays, submission: Submission): ReturnType<typeof clash> {
  const settled = new SettledNames(trays);
  return clash(trays, submission, liveIds(trays, ["again", "bad"]), settled);
}

function throwRefusal(outcome: ReturnType<typeof clash>): void {
  if (outcome?.outcome === "refused") throw outcome.error;
}

function readNote(trays: Trays, id: string): string | undefined {
  return readIfThere(trays, notePath(trays, id))?.toString("latin1").trim();
}

async function makeDurable(trays: Trays, dirs: readonly string[]): Promise<void> {
  if (trays.durability === "power") await trays.storage.syncDirs(dirs);
}
