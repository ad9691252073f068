/** Messages on their way into one run: what is offered, what counts as read, and what a killed worker leaves. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import type { Fact } from "../../../src/agents/stream/facts.ts";
import { MessageFeed } from "../../../src/agents/stream/message-feed.ts";
import { SessionProof } from "../../../src/agents/stream/session-proof.ts";
import { TaskMessages } from "../../../src/agents/stream/task-messages.ts";
import { newClaudeReader } from "../../../src/parts/claude/read-line.ts";
import { tempDir } from "../../support/temp-dir.ts";

function newTalk(): {
  box: TaskMessages;
  /** Of a program that keeps no record of its session. */
  proof: () => SessionProof;
  /** Of a new program in run number n. */
  feed: (n: number) => MessageFeed;
  /** What the program of that run prints. */
  print: (n: number, line: object) => void;
  pass: (feed: MessageFeed) => { uuid: string; text: string }[];
} {
  const stateDir = tempDir();
  const events = (n: number): string => join(stateDir, "runs", `r${n}`, "events.jsonl");
  return {
    box: new TaskMessages(stateDir, "a", false),
    proof: () => new SessionProof(stateDir, { newReader: newClaudeReader }, undefined),
    feed: (n) =>
      new MessageFeed({
        stateDir,
        id: "a",
        isDurable: false,
        eventsLog: events(n),
        from: 0,
        briefing: undefined,
      }),
    print(n, line) {
      fs.mkdirSync(dirname(events(n)), { recursive: true });
      fs.appendFileSync(events(n), `${JSON.stringify(line)}\n`);
    },
    pass(feed) {
      const passed: { uuid: string; text: string }[] = [];
      feed.pass((uuid, text) => passed.push({ uuid, text }));
      return passed;
    },
  };
}

const read = (uuid: string): Fact => ({ fact: "message", uuid, state: "read" });

it("passes each message once to a program, in order, with an offer that is there before", () => {
  const { box, feed, pass, proof } = newTalk();
  const first = feed(1);
  expect(first.makePacket(proof(), (text) => text)).toBe("");
  expect(pass(first)).toEqual([]);
  for (const text of ["one", "two"]) box.post(text, "cli");
  first.pass((uuid, text) => {
    const n = text === "one" ? 1 : 2;
    expect(box.offerOf(n)?.uuid).toBe(uuid);
  });
  box.post("three", "cli");
  expect(pass(first).map(({ text }) => text)).toEqual(["three"]);
  expect(pass(first)).toEqual([]);
});

it("counts a message as read with its own proof only", () => {
  const { box, feed, pass } = newTalk();
  const one = feed(1);
  box.post("one", "cli");
  box.post("two", "cli");
  const [first] = pass(one);
  one.take({ fact: "thought", text: "of the packet" });
  expect([box.stateOf(1), box.stateOf(2)]).toEqual(["offered", "offered"]);
  one.take(read(first?.uuid ?? ""));
  expect([box.stateOf(1), box.stateOf(2)]).toEqual(["read", "offered"]);
  expect(one.isWaiting()).toBe(true);
  expect(one.hasUnread()).toBe(true);
});

it("counts what was in the packet as read when the model has answered", () => {
  const { box, feed, proof } = newTalk();
  box.post("one", "cli");
  box.post("two", "cli");
  const one = feed(1);
  expect(one.makePacket(proof(), (text) => text)).toBe("one\n\ntwo");
  one.take({ fact: "said", text: "API Error" });
  expect(one.hasUnread()).toBe(true);
  one.take({ fact: "tool_started", id: "1", name: "Bash", input: "{}" });
  expect(one.hasUnread()).toBe(false);
  expect(one.isWaiting()).toBe(false);
});

it("offers a message to the next program under another uuid when there is no proof of it", () => {
  const { box, feed, pass, print, proof } = newTalk();
  box.post("one", "cli");
  const [first] = pass(feed(1));
  print(1, { type: "command_lifecycle", command_uuid: first?.uuid, state: "queued" });
  expect(feed(2).makePacket(proof(), (text) => text)).toBe("one");
  expect(box.offerOf(1)?.uuid).not.toBe(first?.uuid);
});

it("finds a proof in the stream that a killed worker has not read", () => {
  const { box, feed, pass, print, proof } = newTalk();
  box.post("one", "cli");
  const [first] = pass(feed(1));
  print(1, { type: "command_lifecycle", command_uuid: first?.uuid, state: "started" });
  expect(box.stateOf(1)).toBe("offered");
  expect(feed(2).makePacket(proof(), (text) => text)).toBe("");
  expect(box.stateOf(1)).toBe("read");
});

it("leaves a message that was cancelled to the next run", () => {
  const { box, feed, pass } = newTalk();
  const one = feed(1);
  box.post("one", "cli");
  const [first] = pass(one);
  one.take({ fact: "message", uuid: first?.uuid ?? "", state: "cancelled" });
  expect(one.isWaiting()).toBe(false);
  expect(one.hasUnread()).toBe(true);
});

it("gives messages of many senders numbers of their own", () => {
  const { box } = newTalk();
  const numbers = Array.from({ length: 20 }, (_, n) => box.post(`m${n}`, "cli"));
  expect(numbers).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
  expect(box.unread().map(({ text }) => text)).toEqual(numbers.map((n) => `m${n - 1}`));
});

it("holds back all messages until the turn has ended, when one of them is urgent", () => {
  const { box, feed } = newTalk();
  const one = feed(1);
  box.post("usual", "cli");
  box.post("urgent", "cli", true);
  const passed: string[] = [];
  let hasEnded = false;
  const pass = (): void =>
    one.pass(
      (_, text) => passed.push(text),
      () => hasEnded,
    );
  pass();
  pass();
  expect(passed).toEqual([]);
  expect(box.stateOf(2)).toBe("recorded");
  hasEnded = true;
  pass();
  expect(passed).toEqual(["usual", "urgent"]);
  // Without one, nothing is asked.
  box.post("again", "cli");
  one.pass(
    (_, text) => passed.push(text),
    () => {
      throw new Error("no turn is to end");
    },
  );
  expect(passed.at(-1)).toBe("again");
});
