/**
 * The subject of a command: the task that a name in the command meant. It is written down before the command takes effect. If the
 * command is carried out again after a crash, it affects the same task and not a new one with the same name.
 */
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import type { ProcessingName } from "../../core/names.ts";
import { createAnew, unlinkIfThere } from "../files/steps.ts";
import type { Trays } from "../files/trays.ts";

const BYTES_MAX = 4096;
const NOTE = /^(.+@[a-z0-9]+)\.subject$/;

function notePath(control: Trays, command: ProcessingName): string {
  return join(control.tmp, `${command.id}@${command.submission}.subject`);
}

/** The prefix of this command's names in `processing/`; undefined when the file is no note. */
export function commandOfNote(file: string): string | undefined {
  const head = NOTE.exec(file)?.[1];
  return head === undefined ? undefined : `${head}.`;
}

/** The noted subject; undefined when there is none or it is incomplete: then the command has had no effect yet. @throws a system error */
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

/** Writes the subject, as durably as the mailbox allows. Only then may the command take effect. @throws a system error */
export async function noteSubject(
  control: Trays,
  command: ProcessingName,
  subject: string,
): Promise<void> {
  const path = notePath(control, command);
  // An existing file is an incomplete note of a supervisor that died while it wrote.
  createAnew(control, path, Buffer.from(`${subject}\n`, "utf8"));
  if (control.durability !== "power") return;
  await control.storage.syncFiles([path]);
  // The claim must be durable too: back in the inbox, the file would count as a new command without a note.
  await control.storage.syncDirs([control.tmp, control.processing]);
}

/** Removes the note, because the command is acknowledged. A note that a crash leaves is later removed by age. */
export function forgetSubject(control: Trays, command: ProcessingName): void {
  unlinkIfThere(control, notePath(control, command));
}
