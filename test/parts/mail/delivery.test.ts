/** What a supervisor does with offers that another one has left: in this process, on real files. */
import fs from "node:fs";
import { expect, it } from "vitest";
import { claimFromInbox, claimReady, putBack } from "../../../src/mailbox/claim/claim.ts";
import { nodeStorage } from "../../../src/mailbox/files/node-storage.ts";
import { readOffer, writeOffer } from "../../../src/parts/mail/delivery/offers.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { moveCursor, readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { openPostOffice, type PostOffice } from "./post-office.ts";

/** Mail for ann, seen by a supervisor that looks long after it came. */
async function withMail(dir = tempDir()): Promise<PostOffice> {
  const store = { dataDir: dir, isDurable: false };
  send(store, { scope: OUTSIDE, from: "bob", via: "cli", to: ["ann"], text: "look" }, Date.now());
  let nowMs = 0;
  const clock = {
    wallMs: () => Date.now(),
    monotonicMs: () => (nowMs += 60_000),
    random: Math.random,
  };
  return await openPostOffice(dir, ["ann"], { clock });
}

const wakesIn = ({ env }: PostOffice): string[] => fs.readdirSync(env.trays.inbox);

it("a failed wake-up counts once, also when the supervisor died before it removed the offer", async () => {
  const office = await withMail();
  const { env, folder, look } = office;
  await look();
  const offer = readOffer(folder, "ann");
  expect(wakesIn(office)).toEqual([`${offer?.task}.json`]);
  // Its task ends without a proof.
  fs.rmSync(`${env.trays.inbox}/${offer?.task}.json`);
  await look();
  expect(readCursor(folder, "ann")).toMatchObject({ n: 1, fails: 1 });
  expect(readOffer(folder, "ann")).toBeUndefined();
  // As the crash leaves it: the record is there, and the offer, too.
  if (offer !== undefined) writeOffer(folder, "ann", offer);
  await (await openPostOffice(env.tree.dir, ["ann"])).look();
  expect(readCursor(folder, "ann")).toMatchObject({ n: 1, fails: 1 });
  expect(readOffer(folder, "ann")).toBeUndefined();
});

it("an offer of an earlier version, which names no record, is made again and then counts", async () => {
  const office = await withMail();
  const { env, folder, look } = office;
  await look();
  const { n: _, ...offer } = readOffer(folder, "ann") ?? expect.fail("no offer");
  fs.rmSync(`${env.trays.inbox}/${offer.task}.json`);
  writeOffer(folder, "ann", offer as never);
  const next = await withMail(env.tree.dir);
  await next.look();
  await next.look();
  await next.look();
  expect(readCursor(folder, "ann")).toMatchObject({ n: 1, fails: 1 });
});

it("a wake-up that is repeated gets the mail that came since, and no second one is made beside it", async () => {
  const office = await withMail();
  const { env, folder, look, store } = office;
  const { trays } = env;
  await look();
  const { task: id } = readOffer(folder, "ann") ?? expect.fail("no offer");
  const claim = claimFromInbox(trays, id, 1, "o") ?? expect.fail("no wake-up");
  // A person reads the mail while the run is on, then the run breaks, and a message comes.
  moveCursor(folder, "ann", 1, { by: "ack", atMs: Date.now() });
  await look();
  expect(readOffer(folder, "ann")).toBeUndefined();
  const ready = putBack(trays, claim, 0, true) ?? expect.fail("not put back");
  send(store, { scope: OUTSIDE, from: "bob", via: "cli", to: ["ann"], text: "and Y" }, Date.now());
  await look();
  await look();
  expect(wakesIn(office)).toEqual([]);
  claimReady(trays, ready, "o");
  await look();
  expect(readOffer(folder, "ann")).toMatchObject({ task: id, isWake: false, upto: 2 });
});

it("a look lists processing/ once, however many agents have mail", async () => {
  const dir = tempDir();
  const names = Array.from({ length: 6 }, (_, n) => `agent${n}`);
  const store = { dataDir: dir, isDurable: false };
  send(store, { scope: OUTSIDE, from: "bob", via: "cli", to: names, text: "look" }, Date.now());
  const listed: string[] = [];
  const list = (path: string): string[] => {
    listed.push(path);
    return nodeStorage.list(path);
  };
  let nowMs = 0;
  const clock = { wallMs: Date.now, monotonicMs: () => nowMs, random: Math.random };
  const storage = { ...nodeStorage, list };
  const { env, look } = await openPostOffice(dir, names, { clock, storage });
  // It sees the mail, then it waits for more.
  await look();
  nowMs += 60_000;
  await look();
  expect(fs.readdirSync(env.trays.inbox)).toHaveLength(6);
  listed.length = 0;
  await look();
  expect(listed).toEqual([env.trays.processing]);
});
