/** The mail of a reader in a scope: the messages that are addressed to it or mention it. */

import { formatAddress, HUMAN, parseAddress, sameScope } from "../scope/scope.ts";
import { readCursor } from "./cursors.ts";
import { KEYS, type LineFilter } from "./line-filter.ts";
import type { MailFolder } from "./mail-folder.ts";
import { type Message, recipientsOf } from "./message.ts";
import { MessageReader, type Numbered } from "./read-messages.ts";

export interface Unread {
  messages: Numbered[];
  /** Once these messages are read, all mail up to this number is read. */
  upto: number;
}

/** True if the message is mail for this reader. A message that needs a person, or is held, is mail for `human`. */
export function isMailFor(folder: MailFolder, message: Message, reader: string): boolean {
  if (reader === HUMAN && (message.requires_human || isHeld(folder, message))) return true;
  const isTo = recipientsOf(message).includes(formatAddress({ ...folder.scope, name: reader }));
  return isTo && (reader === HUMAN || !isHeld(folder, message));
}

/** True if agents of this scope get it from a project that may not write to them. Mail of a person is never held. */
export function isHeld(folder: MailFolder, message: Message): boolean {
  if (folder.accepted(message.project) || isOfPerson(message)) return false;
  return agentsIn(folder, message).length > 0;
}

/** True if a person wrote it: on the command line, outside of runs, and under no other name. */
export function isOfPerson({ from_agent: from, via }: Message): boolean {
  return via === "cli" && from === HUMAN;
}

/** The recipients of a message that are agents of this scope. */
export function agentsIn({ scope }: MailFolder, message: Message): string[] {
  return recipientsOf(message).filter((one) => {
    const address = parseAddress(one, scope);
    return address !== undefined && address.name !== HUMAN && sameScope(address, scope);
  });
}

/** Finds the lines that may be mail for this reader. */
export function filterFor(folder: MailFolder, reader: string): LineFilter {
  const address = formatAddress({ ...folder.scope, name: reader });
  if (reader !== HUMAN) return linesWith([address]);
  return {
    any: [JSON.stringify(address), `"requires_human":true`],
    unless: foreignLines(folder).unless,
    keys: [address, KEYS.human, KEYS.foreign],
  };
}

/** Finds the lines that contain one of these addresses. */
export function linesWith(addresses: readonly string[]): LineFilter {
  return { any: addresses.map((address) => JSON.stringify(address)), keys: addresses };
}

/** Finds the lines that may be held: those without the name of the own project. */
export function foreignLines({ scope }: MailFolder): LineFilter & { unless: string } {
  const unless = `"project":${JSON.stringify(scope.project)}`;
  return { any: [], unless, keys: [KEYS.foreign] };
}

/** The mail that the reader has not provably read. @param reader a name in lower case */
export function unreadOf(folder: MailFolder, reader: string): Unread {
  const log = new MessageReader(folder, readCursor(folder, reader).upto);
  const messages = [...log.next(filterFor(folder, reader))].filter((message) =>
    isMailFor(folder, message, reader),
  );
  return { messages, upto: log.last };
}

/** The number of the first message that the reader has not provably read; undefined when it has read all. */
export function firstUnreadOf(folder: MailFolder, reader: string): number | undefined {
  const log = new MessageReader(folder, readCursor(folder, reader).upto);
  for (const message of log.next(filterFor(folder, reader)))
    if (isMailFor(folder, message, reader)) return message.n;
  return undefined;
}
