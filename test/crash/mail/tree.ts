/**
 * A state tree in which a supervisor has all to do that it ever does for mail: bring a message to an agent that is not at work (ann), note
 * that one was read (bob), note that a wake-up has failed (cid), and tell how a task has ended. And what must be true of it.
 */
import fs from "node:fs";
import { join } from "node:path";
import { TaskMessages } from "../../../src/agents/stream/task-messages.ts";
import { encodeRecord } from "../../../src/codec/records.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { readOffer } from "../../../src/parts/mail/delivery/offers.ts";
import { runNotes } from "../../../src/parts/mail/exits/run-notes.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";

export interface MailTree {
  state: string;
  folder: MailFolder;
}

export function openMailTree(state: string): MailTree {
  return { state, folder: new MailFolder({ dataDir: state, isDurable: false }, OUTSIDE) };
}

/** With mail for bob and cid. */
export function newMailTree(state: string): MailTree {
  fs.mkdirSync(state, { mode: 0o700 });
  openTrays(stateTree(state).mailbox, { durability: "process" });
  for (const name of ["bob", "cid"]) post(state, name);
  return openMailTree(state);
}

/** Mail for this agent, from a person. */
export function post(state: string, name: string, mark = ""): void {
  const draft = { scope: OUTSIDE, from: "human", via: "cli", to: [name], text: "look" } as const;
  send({ dataDir: state, isDurable: false }, { id: `m-${name}${mark}`, ...draft }, Date.now());
}

/** What runs and people do between the first supervisor, which has woken bob and cid, and the next one. */
export function goOn({ state, folder }: MailTree): void {
  const { mailbox } = stateTree(state);
  const taskOf = (name: string): string => readOffer(folder, name)?.task ?? "";
  const take = (id: string): void => fs.rmSync(join(mailbox, "inbox", `${id}.json`));
  // Bob is in the middle of his run, and his model has read it.
  fs.renameSync(
    join(mailbox, "inbox", `${taskOf("bob")}.json`),
    join(mailbox, "processing", `${taskOf("bob")}@s.1~w-o.json`),
  );
  new TaskMessages(state, taskOf("bob"), false).noteRead(1, "runs/x");
  // The run of cid broke. It is not noted: its exit is none of this tree's business.
  take(taskOf("cid"));
  runNotes(state).replace("work", { v: 1, task: "work", agent: "ann", run: "s.1" });
  const record = { task_id: "work", status: "completed", verdict: "pass", lease: "s.1.o" };
  const bytes = encodeRecord({ ...record, verdict_reason: "", output: "done" } as never, undefined);
  fs.writeFileSync(join(mailbox, "outbox", "work_result.json"), bytes);
  post(state, "ann");
}

/** What is wrong at any moment. */
export function faultsNow({ state, folder }: MailTree): string[] {
  const faults: string[] = [];
  for (const name of ["ann", "cid"])
    if (readCursor(folder, name).upto > 0) faults.push(`the mail of ${name} counts as read`);
  for (const name of ["ann", "bob", "cid"])
    if (readCursor(folder, name).n > 1) faults.push(`${name} has a second record`);
  const exits = exitsIn(folder);
  if (exits > 1) faults.push(`the exit was told ${exits} times`);
  if (exits === 0 && !fs.existsSync(join(state, "exits", "work.json")))
    faults.push("the exit was not told, and there is no note of it");
  return faults;
}

/** The wake-ups that wait. */
export function wakesIn({ state }: MailTree): string[] {
  return fs.readdirSync(join(stateTree(state).mailbox, "inbox"));
}

/** What is wrong when the next supervisor has looked, to which a second message for ann has come. */
export function faultsOfEnd(tree: MailTree): string[] {
  const { state, folder } = tree;
  const faults = faultsNow(tree);
  const expectAll = (what: string, is: unknown, wanted: unknown): void => {
    const [found, right] = [JSON.stringify(is), JSON.stringify(wanted)];
    if (found !== right) faults.push(`${what}: ${found}, and not ${right}`);
  };
  const cursorOf = (name: string): number[] => {
    const { n, upto, fails } = readCursor(folder, name);
    return [n, upto, fails];
  };
  expectAll("ann [n, upto, fails]", cursorOf("ann"), [0, 0, 0]);
  expectAll("bob [n, upto, fails]", cursorOf("bob"), [1, 1, 0]);
  expectAll("cid [n, upto, fails]", cursorOf("cid"), [1, 0, 1]);
  for (const name of ["bob", "cid"])
    expectAll(`offer for ${name}`, readOffer(folder, name), undefined);
  const { task = "", text = "" } = readOffer(folder, "ann") ?? {};
  expectAll("the wake-up of ann is for her first record", task.endsWith(".1.0"), true);
  expectAll("wake-ups", wakesIn(tree), [`${task}.json`]);
  const said = new TaskMessages(state, task, false).unread().map((one) => one.text);
  expectAll("said to ann", said, [text]);
  if (!text.includes("(m-ann)")) faults.push("the message of ann is not in her offer");
  expectAll("exits", exitsIn(folder), 1);
  expectAll("note of the exit", fs.existsSync(join(state, "exits", "work.json")), false);
  return faults;
}

function exitsIn(folder: MailFolder): number {
  return [...new MessageReader(folder).next()].filter(({ id }) => id.startsWith("exit-work@"))
    .length;
}
