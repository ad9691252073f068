/** The mail of a reader in a scope: the messages that are addressed to it or mention it. */

import { formatAddress, HUMAN } from "../scope/scope.ts";
import { readCursor } from "./cursors.ts";
import type { MailFolder } from "./mail-folder.ts";
import { type Message, recipientsOf } from "./message.ts";
import { MessageReader, type Numbered } from "./read-messages.ts";

export interface Unread {
  messages: Numbered[];
  /** Once these are read, everything up to this number is. */
  upto: number;
}

/** Whether the message is mail for this reader. A message that needs a person is mail for `human`. */
export function isMailFor(message: Message, address: string, reader: string): boolean {
  if (reader === HUMAN && message.requires_human) return true;
  return recipientsOf(message).includes(address);
}

/** Texts of which each line of the reader's mail has one. */
export function textsIn(address: string, reader: string): string[] {
  return [JSON.stringify(address), ...(reader === HUMAN ? ['"requires_human":true'] : [])];
}

/** The mail that the reader has not provably read. @param reader a name in lower case */
export function unreadOf(folder: MailFolder, reader: string): Unread {
  const log = new MessageReader(folder, readCursor(folder, reader).upto);
  const address = formatAddress({ ...folder.scope, name: reader });
  const messages = [...log.next(textsIn(address, reader))].filter((message) =>
    isMailFor(message, address, reader),
  );
  return { messages, upto: log.last };
}
