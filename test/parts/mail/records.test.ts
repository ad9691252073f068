/** Messages as lines of a scope, cursors, agents and tasks as files; and what crashes and other processes do to them. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import {
  changeAgent,
  createAgent,
  listAgents,
  readAgent,
} from "../../../src/parts/mail/agents/agents.ts";
import { createTask, listTasks } from "../../../src/parts/mail/agents/tasks.ts";
import { PendingMail } from "../../../src/parts/mail/delivery/pending-mail.ts";
import { appendMessage } from "../../../src/parts/mail/send/append-message.ts";
import { removeOld } from "../../../src/parts/mail/send/remove-old.ts";
import { type Draft, send } from "../../../src/parts/mail/send/send.ts";
import { textOf } from "../../../src/parts/mail/store/blobs.ts";
import { moveCursor, readCursor } from "../../../src/parts/mail/store/cursors.ts";
import { unreadOf } from "../../../src/parts/mail/store/inbox.ts";
import { dataDirOf, MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { decodeMessage, type Message } from "../../../src/parts/mail/store/message.ts";
import { MessageReader, type Numbered } from "../../../src/parts/mail/store/read-messages.ts";
import {
  indexPathOf,
  listSegments,
  makeNext,
  SEAL,
  SEGMENT_BYTES,
} from "../../../src/parts/mail/store/segments.ts";
import { indexFull } from "../../../src/parts/mail/store/write-indexes.ts";
import { tempDir } from "../../support/temp-dir.ts";

const NOW = 1_795_500_000_123;
const SCOPE = { project: "app", branch: "main" };
const newFolder = (scope = SCOPE, dataDir = tempDir()): MailFolder =>
  new MailFolder({ dataDir, isDurable: false }, scope);
const dataOf = (folder: MailFolder): string => folder.path("..", "..", "..");

const draft = (more: Partial<Draft> = {}): Draft => ({
  scope: SCOPE,
  from: "human",
  via: "cli",
  to: ["june"],
  text: "hello",
  ...more,
});
const sendTo = (folder: MailFolder, more: Partial<Draft> = {}) =>
  send({ dataDir: dataOf(folder), isDurable: false }, draft(more), NOW);
const read = (folder: MailFolder, after = 0): Numbered[] => [
  ...new MessageReader(folder, after).next(),
];
const textsOf = (messages: readonly Message[]): string[] => messages.map((one) => one.content);
const segmentOf = (folder: MailFolder, k = 1): string => folder.path(`messages.${k}.jsonl`);

describe("seed task 2: the fields of the records", () => {
  it("has all fields of a message in its line, with a version", () => {
    const folder = newFolder();
    sendTo(folder, {
      id: "m1",
      text: "ask @bob",
      requiresHuman: true,
      replyTo: "m0",
      thread: "m0",
    });
    const [head, line] = fs.readFileSync(segmentOf(folder), "utf8").split("\n");
    expect(JSON.parse(head ?? "")).toEqual({ v: 1, first: 1, ...SCOPE });
    expect(JSON.parse(line ?? "")).toMatchObject({
      v: 1,
      id: "m1",
      ...SCOPE,
      from_agent: "human",
      from_inc: null,
      via: "cli",
      to: ["app:main:june"],
      type: "say",
      content: "ask @bob",
      content_ref: null,
      mentions: ["app:main:bob"],
      thread: "m0",
      reply_to: "m0",
      hops: 0,
      cause: [],
      when: "next",
      requires_human: true,
      created_at: 1_795_500_000,
      t: "2026-11-24T06:00:00.123Z",
    });
    expect(JSON.parse(fs.readFileSync(folder.path("scope.json"), "utf8"))).toEqual({
      v: 1,
      ...SCOPE,
    });
  });

  it("reads a line of an earlier version, in which fields are missing or have other names", () => {
    const old =
      '{"id":"m1","from_agent":"Impl-1","to_agent":"June","content":"@impl-1 status?","mentions":"[\\"app:main:impl-1\\"]","created_at":1700000000}';
    expect(decodeMessage(old, SCOPE)).toMatchObject({
      v: 1,
      ...SCOPE,
      from_agent: "impl-1",
      to: ["app:main:june"],
      mentions: ["app:main:impl-1"],
      type: "say",
      when: "next",
      hops: 0,
      t: "2023-11-14T22:13:20.000Z",
    });
  });

  it.each(["", "{}", "[]", '{"id":""}', '{"id":7}', '{"v":1,"id":"m', '{"v":1,"first":1}'])(
    "takes %j for no message",
    (line) => {
      expect(decodeMessage(line, SCOPE)).toBeUndefined();
    },
  );
});

describe("seed task 3: everything is filtered by scope", () => {
  it("keeps agents of the same name in two scopes apart", async () => {
    const alpha = newFolder({ project: "alpha", branch: "main" });
    const beta = newFolder({ project: "beta", branch: "main" }, dataOf(alpha));
    for (const folder of [alpha, beta])
      await createAgent(folder, { name: "a1", type: "codex", task: "t", status: "busy" }, NOW);
    expect(listAgents(alpha)).toMatchObject([{ project: "alpha", name: "a1" }]);
    sendTo(alpha, { scope: alpha.scope, to: ["a1"], text: "for alpha" });
    sendTo(beta, { scope: beta.scope, to: ["a1"], text: "for beta" });
    expect(textsOf(unreadOf(alpha, "a1").messages)).toEqual(["for alpha"]);
    expect(textsOf(unreadOf(beta, "a1").messages)).toEqual(["for beta"]);
    moveCursor(alpha, "a1", 1, { by: "ack", atMs: NOW });
    expect(unreadOf(beta, "a1").messages).toHaveLength(1);
    expect(fs.readdirSync(`${dataOf(alpha)}/scopes`).sort()).toEqual(["alpha", "beta"]);
  });

  it("records a message to another scope in both", () => {
    const folder = newFolder();
    const sent = sendTo(folder, { text: "see @backend:dev:june", to: [] });
    const other = newFolder({ project: "backend", branch: "dev" }, dataOf(folder));
    expect(sent.to).toEqual(["backend:dev:june"]);
    expect(read(folder)).toMatchObject([{ id: sent.id }]);
    expect(unreadOf(other, "june").messages).toMatchObject([{ id: sent.id, project: "app" }]);
    expect(unreadOf(folder, "june").messages).toEqual([]);
  });
});

describe("the data directory", () => {
  it("is the named one, else that of the XDG rules", () => {
    expect(dataDirOf("../mail", "/a/state", {})).toBe("/a/mail");
    expect(dataDirOf("", "/a", { XDG_DATA_HOME: "/data", HOME: "/h" })).toBe("/data/mailchute");
    expect(dataDirOf("", "/a", { XDG_DATA_HOME: "data", HOME: "/h" })).toBe(
      "/h/.local/share/mailchute",
    );
  });

  it("is refused when every user may write there", () => {
    const dataDir = tempDir();
    fs.chmodSync(dataDir, 0o777);
    expect(() => sendTo(newFolder(SCOPE, dataDir))).toThrow(/writable by every user/);
  });

  it("is refused for a scope whose folder another scope has", () => {
    const folder = newFolder();
    sendTo(folder);
    const scopeFile = folder.path("scope.json");
    fs.writeFileSync(scopeFile, JSON.stringify({ v: 1, project: "App", branch: "main" }));
    expect(() => sendTo(newFolder(SCOPE, dataOf(folder)))).toThrow("the folder of App:main");
  });
});

describe("the lines of a scope", () => {
  it("have numbers that go up, and are read on from any of them", () => {
    const folder = newFolder();
    for (const text of ["a", "b", "c"]) sendTo(folder, { text });
    expect(read(folder).map(({ n, content }) => [n, content])).toEqual([
      [1, "a"],
      [2, "b"],
      [3, "c"],
    ]);
    const reader = new MessageReader(folder, 2);
    expect(textsOf([...reader.next()])).toEqual(["c"]);
    expect([...reader.next()]).toEqual([]);
    sendTo(folder, { text: "d" });
    expect(textsOf([...reader.next()])).toEqual(["d"]);
    expect(reader.last).toBe(4);
  });

  it("after a torn one are whole, and the torn one is counted", () => {
    const folder = newFolder();
    sendTo(folder, { text: "a" });
    fs.appendFileSync(segmentOf(folder), '{"v":1,"id":"torn","pro');
    sendTo(folder, { text: "b" });
    const reader = new MessageReader(folder);
    expect(textsOf([...reader.next()])).toEqual(["a", "b"]);
    expect(reader.badCount).toBe(1);
    // Sent again, it is no repeat.
    expect(sendTo(folder, { id: "torn", text: "c" }).isNew).toBe(true);
    expect(textsOf(read(folder))).toEqual(["a", "b", "c"]);
  });

  it("that are being written are read when they are whole", () => {
    const folder = newFolder();
    sendTo(folder, { text: "a" });
    const line = fs.readFileSync(segmentOf(folder), "utf8").split("\n")[1] ?? "";
    const reader = new MessageReader(folder);
    expect([...reader.next()]).toHaveLength(1);
    fs.appendFileSync(segmentOf(folder), line.slice(0, 20));
    expect([...reader.next()]).toEqual([]);
    fs.appendFileSync(segmentOf(folder), `${line.slice(20)}\n`);
    expect([...reader.next()]).toHaveLength(1);
  });

  it("behind a very long one, as zeros after a power cut, are read", () => {
    const folder = newFolder();
    sendTo(folder, { text: "a" });
    fs.appendFileSync(segmentOf(folder), Buffer.alloc(1_500_000));
    const reader = new MessageReader(folder);
    expect(textsOf([...reader.next()])).toEqual(["a"]);
    sendTo(folder, { text: "b" });
    sendTo(folder, { text: "c" });
    expect([...reader.next()].map(({ n, content }) => [n, content])).toEqual([
      [3, "b"],
      [4, "c"],
    ]);
    expect(reader.badCount).toBe(1);
    expect(sendTo(folder, { id: "m1" }).isNew).toBe(true);
    expect(sendTo(folder, { id: "m1" }).isNew).toBe(false);
  });

  it("after a torn one of any length are whole, and no message is lost or doubled", () => {
    const folder = newFolder();
    sendTo(folder, { id: "torn", text: "é@bob" });
    const line = fs.readFileSync(segmentOf(folder)).toString().split("\n")[1] ?? "";
    const bytes = Buffer.from(line);
    for (let length = 1; length <= bytes.length; length++) {
      const own = newFolder();
      sendTo(own, { text: "a" });
      fs.appendFileSync(segmentOf(own), bytes.subarray(0, length));
      expect(textsOf(read(own)), `${length} bytes`).toEqual(["a"]);
      // The whole line without its end may count: its sender had no answer. Sent again, it is there once.
      sendTo(own, { id: "torn", text: "é@bob" });
      sendTo(own, { text: "b" });
      expect(textsOf(read(own)), `${length} bytes`).toEqual(["a", "é@bob", "b"]);
    }
  });

  it("stay short: a long text is in a file that its hash names", () => {
    const folder = newFolder();
    const text = `long ${"x\n\u0001".repeat(20_000)}`;
    sendTo(folder, { text });
    const [message] = read(folder);
    expect(message?.content).toBe("");
    expect(message?.content_ref).toBe(createHash("sha256").update(text).digest("hex"));
    expect(message && textOf(folder, message)).toBe(text);
    expect(fs.statSync(segmentOf(folder)).size).toBeLessThan(1000);
    fs.appendFileSync(folder.path("blobs", message?.content_ref ?? ""), "changed");
    expect(message && textOf(folder, message)).toBeUndefined();
  });

  it.each<[string, Partial<Draft>, string]>([
    ["without a text", { text: " \n" }, "there is no text"],
    ["of more than a mebibyte", { text: "x".repeat(2 ** 20 + 1) }, "at most 1048576"],
    ["to no name", { to: ["a b"] }, "is no address"],
    ["to a sender's name with a scope", { from: "app:main:bob" }, "is no name of a sender"],
    ["under an id that is none", { id: "a\nb" }, "is no id"],
    ["to too many", { to: Array.from({ length: 65 }, (_, n) => `a${n}`) }, "more than 64 agents"],
  ])("hold no message %s", (_what, more, fault) => {
    const folder = newFolder();
    expect(() => sendTo(folder, more)).toThrow(fault);
    expect(fs.existsSync(folder.dir)).toBe(false);
  });

  it("hold no message whose addresses alone are longer than a line", () => {
    const folder = newFolder();
    const to = Array.from({ length: 60 }, (_, n) => `p:${"b".repeat(200)}:${"a".repeat(80)}${n}`);
    expect(() => sendTo(folder, { to })).toThrow(/the message has \d+ bytes/);
    expect(read(folder)).toEqual([]);
  });
});

describe("a message that is sent again with its id", () => {
  it("is there once", () => {
    const folder = newFolder();
    expect(sendTo(folder, { id: "m1" }).isNew).toBe(true);
    expect(sendTo(folder, { id: "m1" }).isNew).toBe(false);
    expect(read(folder)).toHaveLength(1);
  });

  it("and another text is refused", () => {
    const folder = newFolder();
    sendTo(folder, { id: "m1" });
    expect(() => sendTo(folder, { id: "m1", text: "other" })).toThrow("there is another message");
    expect(read(folder)).toHaveLength(1);
  });

  it("counts once even if two processes wrote it, each after its own look", () => {
    const folder = newFolder();
    sendTo(folder, { id: "m1" });
    const line = fs.readFileSync(segmentOf(folder), "utf8").split("\n")[1] ?? "";
    fs.appendFileSync(segmentOf(folder), `${line}\n`);
    sendTo(folder, { id: "m2" });
    expect(read(folder).map(({ n, id }) => [n, id])).toEqual([
      [1, "m1"],
      [3, "m2"],
    ]);
  });
});

describe("a segment that is full", () => {
  const filler = "x".repeat(8000);
  /** Fills the last segment to its end. */
  function fill(folder: MailFolder): number {
    let count = 0;
    for (; ; count++) {
      const path = listSegments(folder).at(-1)?.path ?? segmentOf(folder);
      const size = fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      if (size >= SEGMENT_BYTES) return count;
      sendTo(folder, { text: filler });
    }
  }

  it("is followed by another one, in which the numbers go on", () => {
    const folder = newFolder();
    const count = fill(folder);
    const reader = new MessageReader(folder, count - 1);
    expect([...reader.next()]).toHaveLength(1);
    for (const text of ["b", "c"]) sendTo(folder, { text });
    const rest = [...reader.next()];
    // The line that ends a torn one before the seal has a number, too.
    expect(rest.map(({ n, content }) => [n, content])).toEqual([
      [count + 2, "b"],
      [count + 3, "c"],
    ]);
    expect(fs.readFileSync(segmentOf(folder), "utf8").endsWith(`\n${SEAL}\n`)).toBe(true);
    expect(textsOf(read(folder, count + 2))).toEqual(["c"]);
    expect(read(folder)).toHaveLength(count + 2);
  });

  it("holds nothing behind its seal, and who wrote there writes again", () => {
    const folder = newFolder();
    const count = fill(folder);
    const line = fs.readFileSync(segmentOf(folder), "utf8").split("\n")[1] ?? "";
    // The process that sealed it was killed; another one wrote before it saw that.
    fs.appendFileSync(segmentOf(folder), `\n${SEAL}\n${line}\n`);
    expect(read(folder)).toHaveLength(count);
    sendTo(folder, { text: "b" });
    expect(read(folder).slice(-1)).toMatchObject([{ content: "b" }]);
    expect(read(folder)).toHaveLength(count + 1);
    expect(fs.existsSync(segmentOf(folder, 3))).toBe(false);
  });

  it.each(["with", "without"])("is searched for ids, %s its index", async (how) => {
    const folder = newFolder();
    sendTo(folder, { id: "m1" });
    for (const _ of [1, 2]) {
      fill(folder);
      sendTo(folder, { text: "b" });
    }
    if (how === "with") await indexFull(folder);
    const indexes = [1, 2, 3].map((k) => fs.existsSync(indexPathOf(folder, k)));
    expect(indexes).toEqual(how === "with" ? [true, true, false] : [false, false, false]);
    expect(sendTo(folder, { id: "m1" }).isNew).toBe(false);
    expect(sendTo(folder, { id: "m2" }).isNew).toBe(true);
  });
});

describe("retention", () => {
  const DAY_MS = 24 * 60 * 60 * 1000;
  const long = "long ".repeat(5000);
  /** A folder with a first segment that is old and full, and a text that only this one has. */
  function newOld(): { folder: MailFolder; blob: string } {
    const folder = new MailFolder({ dataDir: tempDir(), isDurable: false, keepMs: DAY_MS }, SCOPE);
    sendTo(folder, { text: long, to: ["june"] });
    const [blob = ""] = fs.readdirSync(folder.path("blobs"));
    fs.appendFileSync(segmentOf(folder), `${"x".repeat(SEGMENT_BYTES)}\n`);
    const old = (Date.now() - 2 * DAY_MS) / 1000;
    for (const path of [segmentOf(folder), folder.path("blobs", blob)])
      fs.utimesSync(path, old, old);
    // As the process that fills it does; the line itself is in the next one.
    makeNext(folder, { k: 1, path: segmentOf(folder), isIndexed: false });
    return { folder, blob: folder.path("blobs", blob) };
  }

  it("removes an old segment with its texts when its mail is read", async () => {
    const { folder, blob } = newOld();
    await createAgent(folder, { name: "june", type: "codex" }, NOW);
    removeOld(folder, Date.now());
    expect(fs.existsSync(segmentOf(folder))).toBe(true);
    moveCursor(folder, "june", 1, { by: "ack", atMs: NOW });
    removeOld(folder, Date.now());
    expect([segmentOf(folder), blob].map((path) => fs.existsSync(path))).toEqual([false, false]);
    sendTo(folder, { text: "b" });
    expect(read(folder)).toMatchObject([{ n: 3, content: "b" }]);
  });

  it("keeps a text that another message has, and a segment that is not old", () => {
    const { folder, blob } = newOld();
    removeOld(folder, Date.now() - 2 * DAY_MS);
    expect(fs.existsSync(segmentOf(folder))).toBe(true);
    fs.appendFileSync(
      segmentOf(folder, 2),
      `{"v":1,"id":"m","content_ref":"${blob.slice(-64)}"}\n`,
    );
    removeOld(folder, Date.now());
    expect([segmentOf(folder), blob].map((path) => fs.existsSync(path))).toEqual([false, true]);
  });

  it("and a reader at the same time: it goes on behind what was removed", () => {
    const { folder } = newOld();
    sendTo(folder, { text: "b" });
    const late = new MessageReader(folder);
    const reader = new MessageReader(folder);
    for (const { n } of reader.next()) if (n === 1) removeOld(folder, Date.now());
    expect(reader.last).toBe(3);
    expect(textsOf([...late.next()])).toEqual(["b"]);
    // It is removed between the listing and the opening.
    const { openSync } = fs;
    const again = newOld().folder;
    sendTo(again, { text: "c" });
    let isRemoved = false;
    vi.spyOn(fs, "openSync").mockImplementation(((...args: Parameters<typeof openSync>) => {
      if (args[0] === segmentOf(again) && !isRemoved) {
        isRemoved = true;
        removeOld(again, Date.now());
      }
      return openSync(...args);
    }) as typeof openSync);
    expect(textsOf(read(again))).toEqual(["c"]);
    expect(isRemoved).toBe(true);
    expect(sendTo(again, { id: "m9" }).isNew).toBe(true);
    vi.restoreAllMocks();
  });

  it("never removes the segment that is written", () => {
    const { folder } = newOld();
    removeOld(folder, Date.now() + 1000 * DAY_MS);
    expect(fs.existsSync(segmentOf(folder, 2))).toBe(true);
  });
});

describe("a cursor", () => {
  it("says what was read, and never goes back", () => {
    const folder = newFolder();
    for (const text of ["a", "b", "c"]) sendTo(folder, { text });
    expect(readCursor(folder, "june")).toEqual({ n: 0, upto: 0, fails: 0, at: 0 });
    moveCursor(folder, "june", 2, { by: "ack", atMs: NOW });
    moveCursor(folder, "june", 1, { by: "ack", atMs: NOW });
    expect(readCursor(folder, "june")).toMatchObject({ n: 1, upto: 2, fails: 0 });
    expect(textsOf(unreadOf(folder, "june").messages)).toEqual(["c"]);
  });

  it("keeps its last two records", () => {
    const folder = newFolder();
    for (let upto = 1; upto < 6; upto++) moveCursor(folder, "a/b", upto, { by: "ack", atMs: NOW });
    expect(fs.readdirSync(folder.path("cursors", "a%2Fb")).sort()).toEqual(["4.json", "5.json"]);
  });

  it("counts as it was when its last record is empty", () => {
    const folder = newFolder();
    for (const upto of [1, 2]) moveCursor(folder, "june", upto, { by: "ack", atMs: NOW });
    fs.writeFileSync(folder.path("cursors", "june", "2.json"), "");
    expect(readCursor(folder, "june")).toMatchObject({ n: 2, upto: 1 });
    moveCursor(folder, "june", 3, { by: "ack", atMs: NOW });
    expect(readCursor(folder, "june")).toMatchObject({ n: 3, upto: 3 });
  });

  it("counts when others write new records between the listing and the read", () => {
    const folder = newFolder();
    for (const upto of [1, 2]) moveCursor(folder, "june", upto, { by: "ack", atMs: NOW });
    const { readdirSync } = fs;
    vi.spyOn(fs, "readdirSync").mockImplementationOnce(((path: string) => {
      const names = readdirSync(path);
      for (const upto of [3, 4]) moveCursor(folder, "june", upto, { by: "ack", atMs: NOW });
      return names;
    }) as typeof readdirSync);
    expect(readCursor(folder, "june")).toMatchObject({ upto: 4 });
    vi.restoreAllMocks();
  });

  it("counts a message that mentions its own sender, and what needs a person for human", () => {
    const folder = newFolder();
    sendTo(folder, { from: "impl-1", to: [], text: "@impl-1 status?" });
    sendTo(folder, { from: "impl-1", to: [], text: "help", requiresHuman: true });
    sendTo(folder, { from: "impl-1", to: [], text: "for all" });
    expect(textsOf(unreadOf(folder, "impl-1").messages)).toEqual(["@impl-1 status?"]);
    expect(textsOf(unreadOf(folder, "human").messages)).toEqual(["help"]);
    expect(unreadOf(folder, "human").upto).toBe(3);
  });
});

describe("mail that waits in a supervisor", () => {
  it("is passed on in order and without a gap, however much there is", async () => {
    const folder = newFolder();
    let sent = 0;
    const sendSome = (count: number): void => {
      for (let n = 0; n < count; n++) sendTo(folder, { text: `text ${++sent}` });
    };
    sendSome(450);
    const pending = new PendingMail(folder);
    const seen: number[] = [];
    for (let round = 0; seen.length < 600; round++) {
      if (sent < 600) sendSome(30);
      await pending.look(["june", "ann"], round);
      const upto = readCursor(folder, "june").upto;
      const taken = (await pending.of("june", upto, round))?.messages.slice(0, 50) ?? [];
      expect(taken.length, `round ${round}`).toBeGreaterThan(0);
      seen.push(...taken.map(({ n }) => n));
      moveCursor(folder, "june", taken.at(-1)?.n ?? 0, { by: "run", atMs: NOW });
    }
    expect(seen).toEqual(Array.from({ length: 600 }, (_, n) => n + 1));
    expect(await pending.of("june", 600, 0)).toBeUndefined();
    expect(pending.has("june")).toBe(false);
    expect(pending.has("ann")).toBe(false);
  });
});

describe("an agent", () => {
  it("is made once, and read with defaults for what an earlier version left out", async () => {
    const folder = newFolder();
    const made = await createAgent(folder, { name: "Impl-1", type: "codex" }, NOW);
    expect(made).toMatchObject({ v: 1, ...SCOPE, name: "impl-1", inc: 1, status: "idle" });
    await expect(createAgent(folder, { name: "impl-1", type: "codex" }, NOW)).rejects.toThrow(
      "there is an agent",
    );
    fs.writeFileSync(folder.path("agents", "old.json"), '{"name":"old","status":"busy","x":1}');
    expect(readAgent(folder, "old")).toEqual({
      ...readAgent(folder, "old"),
      x: 1,
      ...SCOPE,
      status: "busy",
      type: "unknown",
      session_id: null,
      inc: 1,
      created_at: 0,
    });
    expect(listAgents(folder).map(({ name }) => name)).toEqual(["impl-1", "old"]);
  });

  it.each(["human", "Human", "a b", ""])("cannot be called %j", async (name) => {
    await expect(createAgent(newFolder(), { name, type: "codex" }, NOW)).rejects.toThrow(
      "is no name of an agent",
    );
  });

  it("that has the name of an archived one is another incarnation, without its mail", async () => {
    const folder = newFolder();
    await createAgent(folder, { name: "june", type: "codex" }, NOW);
    sendTo(folder, { text: "old" });
    await changeAgent(folder, "june", { archived_at: 5 }, NOW);
    expect(listAgents(folder)).toEqual([]);
    expect(listAgents(folder, true)).toMatchObject([{ name: "june", archived_at: 5 }]);
    const again = await createAgent(folder, { name: "june", type: "claude" }, NOW);
    expect(again).toMatchObject({ inc: 2, type: "claude", archived_at: null });
    sendTo(folder, { text: "new" });
    expect(textsOf(unreadOf(folder, "june").messages)).toEqual(["new"]);
  });

  it("keeps all of the changes that are made at once", async () => {
    const folder = newFolder();
    await createAgent(folder, { name: "june", type: "codex" }, NOW);
    await Promise.all([
      changeAgent(folder, "june", { session_id: "s" }, NOW),
      changeAgent(folder, "june", { status: "busy" }, NOW),
      changeAgent(folder, "june", { pid: 7, compacted_at: 9 }, NOW),
    ]);
    expect(readAgent(folder, "june")).toMatchObject({
      session_id: "s",
      status: "busy",
      pid: 7,
      compacted_at: 9,
    });
    expect(await changeAgent(folder, "nobody", {}, NOW)).toBeUndefined();
  });
});

describe("tasks of a scope", () => {
  it("are listed by their sort index, each id once", async () => {
    const folder = newFolder();
    await createTask(folder, { id: "b", name: "second", sort_index: 2 }, NOW);
    await createTask(
      folder,
      { id: "a", name: "first", parent_id: "b", assigned_agent: "june" },
      NOW,
    );
    await expect(createTask(folder, { id: "a", name: "again" }, NOW)).rejects.toThrow(
      'there is a task "a"',
    );
    expect(listTasks(folder)).toEqual([
      {
        ...SCOPE,
        id: "a",
        parent_id: "b",
        name: "first",
        sort_index: 0,
        assigned_agent: "june",
        result: null,
        created_at: 1_795_500_000,
        updated_at: 1_795_500_000,
      },
      expect.objectContaining({ id: "b", sort_index: 2 }),
    ]);
    expect(listTasks(newFolder())).toEqual([]);
  });
});

it("a message on its own is appended whole with its id", () => {
  const folder = newFolder();
  const message = decodeMessage('{"id":"exit-1"}', SCOPE) as Message;
  expect(appendMessage(folder, message, false)).toBeUndefined();
  expect(appendMessage(folder, message, false)).toMatchObject({ id: "exit-1" });
  expect(fs.readdirSync(join(folder.dir, ".tmp"))).toEqual([]);
});
