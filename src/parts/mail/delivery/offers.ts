/**
 * The mail that was given to a run of an agent and is not provably read yet: `offers/<agent>.json`, at most one offer for each agent.
 * The file is written before the offer is made. So after a crash it shows which mail a run may have received.
 */
import {
  isFlag,
  isNumber,
  isText,
  listOf,
  type Of,
  oneOf,
  optional,
  orNull,
  shape,
} from "../../../core/shape.ts";
import type { Documents } from "../../../host/document-store.ts";
import { folderOf } from "../scope/scope.ts";
import type { MailFolder } from "../store/mail-folder.ts";

const offer = shape({
  v: oneOf(1),
  /** The task whose run gets the mail. */
  task: isText,
  /** True for a task that only wakes the agent. */
  isWake: isFlag,
  /** The number of the cursor's record when the offer was made. A failed wake-up counts against that record once. */
  n: isNumber,
  /** The offer holds messages with numbers above the cursor's, up to this one. */
  upto: isNumber,
  text: isText,
  hops: isNumber,
  /** True if the current turn of the run is ended for this mail. */
  isUrgent: optional(isFlag),
  /** Numbers that earlier parts of the mail have among the task's messages. The run must read all of them. */
  earlier: optional(listOf(isNumber)),
  /** The number of the mail among the task's messages; null: it is not posted yet. */
  say: orNull(isNumber),
});
export type MailOffer = Of<typeof offer>;

const offersIn = (folder: MailFolder): Documents<MailOffer> => folder.documents(offer, "offers");

/** @throws a system error: then it is unknown whether there is an offer */
export const readOffer = (folder: MailFolder, reader: string): MailOffer | undefined =>
  offersIn(folder).load(folderOf(reader));

/** @throws a system error: then the offer must not be made */
export function writeOffer(folder: MailFolder, reader: string, offer: MailOffer): void {
  folder.make();
  offersIn(folder).replace(folderOf(reader), offer);
}

export const dropOffer = (folder: MailFolder, reader: string): void =>
  offersIn(folder).remove(folderOf(reader));

const SENDER = "mail ";

/** The sender of the mail in the messages of the task. An offer that is made again has the same sender. */
export function senderOfOffer({ upto }: Pick<MailOffer, "upto">): string {
  return `${SENDER}${upto}`;
}

/** True if a message with this sender is an offer. */
export function isOffer(sender: string): boolean {
  return sender.startsWith(SENDER);
}
