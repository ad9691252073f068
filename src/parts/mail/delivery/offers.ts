/**
 * The mail that was given to a run of an agent and is not provably read yet: `offers/<agent>.json`, at most one offer for each agent. It
 * is written before the offer is made, so after a crash it is known what may have been said to whom.
 */
import fs from "node:fs";
import { loadDocument, replaceDocument } from "../../../host/documents.ts";
import { folderOf } from "../scope/scope.ts";
import type { MailFolder } from "../store/mail-folder.ts";

export interface MailOffer {
  v: 1;
  /** The task whose agent gets it. */
  task: string;
  /** True for a task that only wakes the agent. */
  isWake: boolean;
  /** The number of the cursor's record when it was made. A wake-up that fails counts against that record, once. */
  n: number;
  /** The numbers of the messages in it are above that of the cursor, and at most this. */
  upto: number;
  text: string;
  hops: number;
  /** The turn that runs is ended for it. */
  isUrgent?: boolean;
  /** Numbers under which earlier parts of the mail were said to the task: all have to be read. */
  earlier?: number[];
  /** The number under which it was said to the task; null: that is about to happen. */
  say: number | null;
}

const SENDER = "mail ";

/** Who says it in the messages of the task. The same for an offer that is made again. */
export function senderOfOffer({ upto }: Pick<MailOffer, "upto">): string {
  return `${SENDER}${upto}`;
}

/** Whether this sender is an offer. */
export function isOffer(sender: string): boolean {
  return sender.startsWith(SENDER);
}

/** @throws a system error: whether there is one is then unknown */
export function readOffer(folder: MailFolder, reader: string): MailOffer | undefined {
  const found = loadDocument<MailOffer>(pathOf(folder, reader));
  return typeof found?.task === "string" && typeof found.upto === "number" ? found : undefined;
}

/** @throws a system error: then it must not be made */
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
