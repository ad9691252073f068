/** A scope of 100,000 messages: what a command or a supervisor reads of it is bounded. */
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createAgent } from "../../../src/parts/mail/agents/agents.ts";
import { PendingMail } from "../../../src/parts/mail/delivery/pending-mail.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { type Draft, send } from "../../../src/parts/mail/send/send.ts";
import { moveCursor } from "../../../src/parts/mail/store/cursors.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { SEGMENT_BYTES } from "../../../src/parts/mail/store/segments.ts";
import { indexFull } from "../../../src/parts/mail/store/write-indexes.ts";
import { endOfFile, tempDir } from "../../support/temp-dir.ts";
import { fillScope } from "./many-messages.ts";

const COUNT = 100_000;
const NAMES = ["ann", "bob", "cid", "dora", "eve", "fritz", "gina", "hugo", "ivo", "june"];
const MIB = 1024 * 1024;

const onEnd = endOfFile();
let state: string;
let folder: MailFolder;
let bytesInAll = 0;
/** The number of the last message: lines that seal a file have numbers, too. */
let last = 0;

beforeAll(async () => {
  state = join(tempDir(onEnd), "state");
  fs.mkdirSync(join(state, "mailbox", "inbox"), { recursive: true, mode: 0o700 });
  fs.writeFileSync(join(state, "config.yaml"), "durability: process\ndata: .\n");
  folder = new MailFolder({ dataDir: state, isDurable: false }, OUTSIDE);
  for (const name of NAMES) await createAgent(folder, { name, type: "claude" }, 0);
  const human = { to: ["unknown:main:human"] };
  fillScope(folder, COUNT, NAMES, (n) => (n % 1000 === 0 ? human : {}));
  await indexFull(folder);
  last = MessageReader.atEnd(folder).last;
  for (const name of NAMES) moveCursor(folder, name, last - 50, { by: "ack", atMs: 0 });
  for (const name of fs.readdirSync(folder.dir).filter((one) => one.endsWith(".jsonl")))
    bytesInAll += fs.statSync(folder.path(name)).size;
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** How many bytes of files are read meanwhile. */
function bytesReadBy(work: () => void): number {
  const { readSync } = fs;
  let bytes = 0;
  vi.spyOn(fs, "readSync").mockImplementation(((...args: Parameters<typeof readSync>) => {
    const got = readSync(...args);
    bytes += got;
    return got;
  }) as typeof readSync);
  work();
  vi.restoreAllMocks();
  return bytes;
}

const post = (more: Partial<Draft> = {}) => {
  const draft = { scope: OUTSIDE, from: "ann", via: "run", to: ["bob"], text: "hello" } as const;
  return send({ dataDir: state, isDurable: false }, { ...draft, ...more }, Date.now());
};

it("lies in many segments", () => {
  expect(bytesInAll).toBeGreaterThan(30 * MIB);
  expect(bytesInAll / SEGMENT_BYTES).toBeGreaterThan(7);
});

describe("of its bytes are read", () => {
  it("a few kilobytes to send a message", () => {
    expect(bytesReadBy(() => post())).toBeLessThan(64 * 1024);
  });

  it("the last segment and the ids of the others to send one with an id, and such an id counts once", () => {
    const bytes = bytesReadBy(() => post({ id: "exit-1" }));
    expect(bytes).toBeLessThan(SEGMENT_BYTES + bytesInAll / 15);
    expect(post({ id: "exit-1" }).isNew).toBe(false);
    const old = { id: "m-7", from: "bob", to: ["hugo"], text: "another text" };
    expect(() => post(old)).toThrow("there is another message");
  });

  it("those from the cursor's segment on for the unread mail of an agent", () => {
    let count = 0;
    const bytes = bytesReadBy(() => {
      count = unreadOf(folder, "cid").messages.length;
    });
    expect(count).toBe(5);
    expect(bytes).toBeLessThan(SEGMENT_BYTES + MIB);
  });

  it("those of the newest segments for the last messages, also of one agent", () => {
    for (const name of [undefined, "unknown:main:eve"]) {
      let ids: string[] = [];
      const bytes = bytesReadBy(() => {
        const isWanted = ({ to }: { to: string[] }): boolean =>
          name === undefined || to.includes(name);
        const filter = name === undefined ? undefined : { any: [JSON.stringify(name)] };
        ids = new MessageReader(folder).lastOf(20, isWanted, filter).map(({ id }) => id);
      });
      expect(ids).toHaveLength(20);
      if (name !== undefined) expect(ids.at(-1)).toBe("m-99994");
      expect(bytes).toBeLessThan(2 * SEGMENT_BYTES);
    }
  });

  it("the last segment to begin a supervisor's look at them", async () => {
    let bytes = 0;
    const { readSync } = fs;
    vi.spyOn(fs, "readSync").mockImplementation(((...args: Parameters<typeof readSync>) => {
      const got = readSync(...args);
      bytes += got;
      return got;
    }) as typeof readSync);
    moveCursor(folder, "human", last - 50, { by: "ack", atMs: 0 });
    await new PendingMail(folder).look(["ann"], 0);
    expect(bytes).toBeLessThan(4 * SEGMENT_BYTES);
  });
});

it("a message of a person is decoded, and no other one, to find what a person has not read", () => {
  const parse = vi.spyOn(JSON, "parse");
  expect(unreadOf(folder, "human").messages.length).toBeLessThanOrEqual(100);
  expect(parse.mock.calls.length).toBeLessThan(200);
});

it("a supervisor that begins with mail of all agents lets others work in between, and keeps 200 messages of each", async () => {
  const dir = tempDir();
  const whole = new MailFolder({ dataDir: dir, isDurable: false }, OUTSIDE);
  fillScope(whole, 20_000, NAMES);
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  turn();
  const pending = new PendingMail(whole);
  await pending.look(NAMES, 0);
  isOver = true;
  expect(turns).toBeGreaterThan(5);
  for (const name of NAMES) {
    const waiting = await pending.of(name, 0, 0);
    expect(waiting).toMatchObject({ isCut: true });
    expect(waiting?.messages).toHaveLength(200);
  }
});
