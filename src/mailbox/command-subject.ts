/**
 * The subject of a command: which very task a name in it meant, noted before the effect, so that carrying the command out
 * again after a crash means the same task, and not another one that bears the name by then.
 */
import { join } from "node:path";
import { systemCode } from "../core/errors.ts";
import type { ProcessingName } from "../core/names.ts";
import { createAnew, unlinkIfThere } from "./steps.ts";
import type { Trays } from "./trays.ts";

const BYTES_MAX = 4096;
const NOTE = /^(.+@[a-z0-9]+)\.subject$/;

function notePath(control: Trays, command: ProcessingName): string {
  return join(control.tmp, `${command.id}@${command.submission}.subject`);
}

/** What the names in `processing/` of the command begin with that this note belongs to; undefined when it is no note. */
export function commandOfNote(file: string): string | undefined {
  const head = NOTE.exec(file)?.[1];
  return head === undefined ? undefined : `${head}.`;
}

/** The noted subject; undefined when there is none, or half a one: then nothing was done yet. @throws a system error */
export function readSubject(control: Trays, command: ProcessingName): string | undefined {
  try {
    const { bytes } = control.storage.read(notePath(control, command), BYTES_MAX);
    const text = bytes?.toString("utf8") ?? "";
    return text.endsWith("\n") ? text.slice(0, -1) : undefined;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Notes it, as durably as the mailbox is. Only then may the effect begin. @throws a system error */
export async function noteSubject(
  control: Trays,
  command: ProcessingName,
  subject: string,
): Promise<void> {
  const path = notePath(control, command);
  // What stands there is half a note of a supervisor that died over it.
  createAnew(control, path, Buffer.from(`${subject}\n`, "utf8"));
  if (control.durability !== "power") return;
  await control.storage.syncFiles([path]);
  // With its claim: as a command of the inbox it would be another one, of which nothing is noted.
  await control.storage.syncDirs([control.tmp, control.processing]);
}

/** The command is acknowledged: it is not asked for again. What a crash leaves is swept by age. */
export function forgetSubject(control: Trays, command: ProcessingName): void {
  unlinkIfThere(control, notePath(control, command));
}
