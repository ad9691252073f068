/** What cannot be read now, such as without a free descriptor or without rights, does not count as missing. */

import fs from "node:fs";
import { afterEach, expect, it, vi } from "vitest";
import { DAY_MS } from "../../../src/core/retention.ts";
import { changeAgent, createAgent, readAgent } from "../../../src/parts/mail/agents/agents.ts";
import { WokenAgents } from "../../../src/parts/mail/agents/woken-agents.ts";
import { readOffer } from "../../../src/parts/mail/delivery/offers.ts";
import { PendingMail } from "../../../src/parts/mail/delivery/pending-mail.ts";
import { mail } from "../../../src/parts/mail/part.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { removeOld } from "../../../src/parts/mail/send/remove-old.ts";
import { type Draft, send } from "../../../src/parts/mail/send/send.ts";
import { moveCursor, readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { makeNext, SEGMENT_BYTES } from "../../../src/parts/mail/store/segments.ts";
import { noteWake, readWakes } from "../../../src/parts/mail/store/wake-log.ts";
import type { Part } from "../../../src/supervisor/environment/part.ts";
import type { Tick } from "../../../src/supervisor/environment/service.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { openPostOffice } from "./post-office.ts";

const NOW = 1_795_500_000_000;

afterEach(() => {
  vi.restoreAllMocks();
});

/** What has this end of its path can neither be listed nor opened. Rights would not do: root may read all. */
function block(end: string): void {
  const { openSync, readdirSync } = fs;
  const check = (path: unknown): void => {
    if (!String(path).endsWith(end)) return;
    throw Object.assign(new Error(`EMFILE: '${String(path)}'`), { code: "EMFILE" });
  };
  vi.spyOn(fs, "readdirSync").mockImplementation(((...args: Parameters<typeof readdirSync>) => {
    check(args[0]);
    return readdirSync(...args);
  }) as typeof readdirSync);
  vi.spyOn(fs, "openSync").mockImplementation(((...args: Parameters<typeof openSync>) => {
    check(args[0]);
    return openSync(...args);
  }) as typeof openSync);
}

const storeIn = (dataDir: string) => ({ dataDir, isDurable: false, keepMs: DAY_MS });

function sendIn(dataDir: string, to: string, more: Partial<Draft> = {}) {
  const draft = { scope: OUTSIDE, from: "human", via: "cli", to: [to], text: "look" } as const;
  return send(storeIn(dataDir), { ...draft, ...more }, Date.now());
}

/** A full and old segment with a message for june, which she has not read. */
async function withOldMail(): Promise<{ dir: string; folder: MailFolder; first: string }> {
  const dir = tempDir();
  const folder = new MailFolder(storeIn(dir), OUTSIDE);
  await createAgent(folder, { name: "june", type: "claude" }, NOW);
  sendIn(dir, "human");
  sendIn(dir, "june");
  // Else only the cursor of june keeps it.
  moveCursor(folder, "human", 3, { by: "ack", atMs: NOW });
  const first = folder.path("messages.1.jsonl");
  fs.appendFileSync(first, `${"x".repeat(SEGMENT_BYTES)}\n`);
  const old = (Date.now() - 2 * DAY_MS) / 1000;
  fs.utimesSync(first, old, old);
  return { dir, folder, first };
}

it.each(["/agents", "/agents/june.json", "/cursors/june", "/messages.1.jsonl"])(
  "retention removes nothing while %s cannot be read, and the message is sent all the same",
  async (part) => {
    const { dir, folder, first } = await withOldMail();
    makeNext(folder, { k: 1, path: first, isIndexed: false });
    block(part);
    expect(() => removeOld(folder, Date.now())).toThrow("EMFILE");
    vi.restoreAllMocks();
    expect(unreadOf(folder, "june").messages).toHaveLength(1);
    // As a process that fills a segment does.
    fs.appendFileSync(folder.path("messages.2.jsonl"), `${"x".repeat(SEGMENT_BYTES)}\n`);
    block(part);
    expect(sendIn(dir, "human").isNew).toBe(true);
    vi.restoreAllMocks();
    expect(unreadOf(folder, "june").messages).toHaveLength(1);
    expect(unreadOf(folder, "human").messages).toHaveLength(1);
  },
);

it("a cursor is not guessed, so no mail is said twice or marked by mistake", () => {
  const dir = tempDir();
  const folder = new MailFolder(storeIn(dir), OUTSIDE);
  moveCursor(folder, "june", 2, { by: "ack", atMs: NOW });
  for (const part of ["/cursors/june", "/cursors/june/1.json"]) {
    block(part);
    expect(() => readCursor(folder, "june")).toThrow("EMFILE");
    expect(() => moveCursor(folder, "june", 1, { by: "ack", atMs: NOW })).toThrow("EMFILE");
    vi.restoreAllMocks();
  }
  expect(readCursor(folder, "june")).toMatchObject({ n: 1, upto: 2 });
});

it("an archived agent is not made anew as the first of its name, which would get the old mail", async () => {
  const folder = new MailFolder(storeIn(tempDir()), OUTSIDE);
  await createAgent(folder, { name: "june", type: "claude" }, NOW);
  await changeAgent(folder, "june", { archived_at: 1 }, NOW);
  block("/agents/june.json");
  await expect(createAgent(folder, { name: "june", type: "codex" }, NOW)).rejects.toThrow("EMFILE");
  vi.restoreAllMocks();
  expect(readAgent(folder, "june")).toMatchObject({ type: "claude", archived_at: 1 });
});

it("an offer is not forgotten, and the other agents get their mail", async () => {
  const dir = tempDir();
  let nowMs = 0;
  const clock = { wallMs: Date.now, monotonicMs: () => (nowMs += 60_000), random: Math.random };
  sendIn(dir, "ann");
  const { look } = await openPostOffice(dir, ["ann", "bob"], { clock });
  await look();
  const next = await openPostOffice(dir, ["ann", "bob"], { clock });
  const offer = readOffer(next.folder, "ann") ?? expect.fail("no offer");
  // Its wake-up ends without a proof.
  const wakes = (): string[] => fs.readdirSync(next.env.trays.inbox);
  fs.rmSync(`${next.env.trays.inbox}/${wakes()[0]}`);
  sendIn(dir, "bob");
  block("/offers/ann.json");
  await next.look();
  vi.restoreAllMocks();
  expect(wakes()).toHaveLength(1);
  expect(readOffer(next.folder, "ann")).toEqual(offer);
  await next.look();
  expect(readCursor(next.folder, "ann")).toMatchObject({ n: 1, fails: 1 });
});

it("the list of an agent's wake-ups is not guessed: how often it woke itself is limited by it", () => {
  const folder = new MailFolder(storeIn(tempDir()), OUTSIDE);
  expect(readWakes(folder, "june")).toEqual([]);
  const wake = { task: "w", is_wake: true, hops: 0, is_self: true, ids: [], from: [] };
  folder.make();
  noteWake(folder, "june", { v: 1, at: 1, ...wake });
  block("/wakes/june.jsonl");
  expect(() => readWakes(folder, "june")).toThrow("EMFILE");
});

it.each(["/exits", "/exits/work.json"])(
  "a supervisor that cannot read %s does not begin without it: the exits in it would not be told",
  async (part) => {
    const dir = tempDir();
    fs.mkdirSync(`${dir}/exits`);
    const note = { v: 1, task: "work", agent: "ann", run: null };
    fs.writeFileSync(`${dir}/exits/work.json`, JSON.stringify(note));
    block(part);
    await expect(openPostOffice(dir, ["ann"])).rejects.toThrow("EMFILE");
  },
);

it("a first look that fails is the first one again: who was busy before the start is so no more", async () => {
  const dir = tempDir();
  const office = await openPostOffice(dir, ["ann"]);
  const { folder } = office;
  await changeAgent(folder, "ann", { status: "busy", pid: 1 }, NOW);
  const settings = { ...office.env.settings, mail_enabled: true, data: "." };
  const part = mail({ env: { ...office.env, settings } } as never) as Required<Part>;
  let nowMs = 0;
  const look = async (): Promise<void> => {
    nowMs += 1000;
    part.work({ nowMs } as Tick);
    await waitFor(() => part.ports.work?.isBusy() === false, { what: "the look" });
  };
  block("/agents");
  await look();
  expect(office.alerts).toHaveLength(1);
  vi.restoreAllMocks();
  await look();
  expect(readAgent(folder, "ann")).toMatchObject({ status: "idle", pid: null });
});

it("the agents that a supervisor wakes stay when their list cannot be read, and it is read again", async () => {
  const dir = tempDir();
  const folder = new MailFolder(storeIn(dir), OUTSIDE);
  const agents = [{ name: "ann", kind: "claude" }] as never;
  const woken = new WokenAgents(folder, dir, agents);
  await woken.open(NOW);
  // Long before the look, so that an unchanged list is not read again.
  const old = Date.now() / 1000 - 60;
  fs.utimesSync(folder.path("agents"), old, old);
  woken.look();
  fs.utimesSync(folder.path("agents"), old + 1, old + 1);
  block("/agents");
  expect(() => woken.look()).toThrow("EMFILE");
  vi.restoreAllMocks();
  expect([...woken.names.keys()]).toEqual(["ann"]);
  await changeAgent(folder, "ann", { archived_at: 1 }, NOW);
  fs.utimesSync(folder.path("agents"), old + 1, old + 1);
  woken.look();
  expect([...woken.names.keys()]).toEqual([]);
});

it("mail that cannot be read to its end is not passed over by what comes later", async () => {
  const dir = tempDir();
  const folder = new MailFolder(storeIn(dir), OUTSIDE);
  const text = "x".repeat(2500);
  for (let n = 1; n <= 300; n++) sendIn(dir, "june", { text });
  const pending = new PendingMail(folder);
  await pending.look(["june"], 0);
  expect((await pending.of("june", 0, 0))?.messages).toHaveLength(200);
  moveCursor(folder, "june", 200, { by: "run", atMs: NOW });
  const { readSync } = fs;
  let left = 2;
  vi.spyOn(fs, "readSync").mockImplementation(((...args: Parameters<typeof readSync>) => {
    if (left-- === 0) throw Object.assign(new Error("EIO"), { code: "EIO" });
    return readSync(...args);
  }) as typeof readSync);
  await expect(pending.of("june", 200, 1)).rejects.toThrow("EIO");
  vi.restoreAllMocks();
  sendIn(dir, "june");
  await pending.look(["june"], 2);
  const all = (await pending.of("june", 200, 3))?.messages.map(({ n }) => n);
  expect(all).toEqual(Array.from({ length: 101 }, (_, n) => 201 + n));
});
