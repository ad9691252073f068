/**
 * The mail that was given to a run of an agent and is not provably read yet: `offers/<agent>.json`, at most one offer for each agent.
 * The file is written before the offer is made. So after a crash it shows which mail a run may have received.
 */
import fs from "node:fs";
import { loadDocument, replaceDocument } from "../../../host/documents.ts";
import { folderOf } from "../scope/scope.ts";
import type { MailFolder } from "../store/mail-folder.ts";

export interface MailOffer {
  v: 1;
  /** The task whose run gets the mail. */
  task: string;
  /** True for a task that only wakes the agent. */
  isWake: boolean;
  /** The number of the cursor's record when the offer was made. A failed wake-up counts against that record once. */
  n: number;
  /** The offer holds messages with numbers above the cursor's, up to this one. */
  upto: number;
  text: string;
  hops: number;
  /** True if the current turn of the run is ended for this mail. */
  isUrgent?: boolean;
  /** Numbers that earlier parts of the mail have among the task's messages. The run must read all of them. */
  earlier?: number[];
  /** The number of the mail among the task's messages; null: it is not posted yet. */
  say: number | null;
}

const SENDER = "mail ";

/** The sender of the mail in the messages of the task. An offer that is made again has the same sender. */
export function senderOfOffer({ upto }: Pick<MailOffer, "upto">): string {
  return `${SENDER}${upto}`;
}

/** True if a message with this sender is an offer. */
export function isOffer(sender: string): boolean {
  return sender.startsWith(SENDER);
}

/** @throws a system error: then it is unknown whether there is an offer */
export function readOffer(folder: MailFolder, reader: string): MailOffer | undefined {
  const found = loadDocument<MailOffer>(pathOf(folder, reader));
  return typeof found?.task === "string" && typeof found.upto === "number" ? found : undefined;
}

/** @throws a system error: then the offer must not be made */
export function writeOffer(folder: MailFolder, reader: string, offer: MailOffer): void {
  folder.makeDir("offers");
  const options = { stagingDir: folder.path(".tmp"), isDurable: folder.isDurable };
  replaceDocument(pathOf(folder, reader), offer, options);
}

export function dropOffer(folder: MailFolder, reader: string): void {
  fs.rmSync(pathOf(folder, reader), { force: true });
}

function pathOf(folder: MailFolder, reader: string): string {
  return folder.path("offers", `${folderOf(reader)}.json`);
}
