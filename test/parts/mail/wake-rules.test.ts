/** When an agent is woken, and what it is told: decisions over plain data. */
import { describe, expect, it } from "vitest";
import { makeBundle } from "../../../src/parts/mail/delivery/bundle.ts";
import {
  judgeWake,
  selfTimes,
  type WakeFacts,
  wakeIdOf,
} from "../../../src/parts/mail/delivery/wake-rules.ts";
import { wakeTask } from "../../../src/parts/mail/delivery/wake-task.ts";
import { decodeMessage } from "../../../src/parts/mail/store/message.ts";
import type { Numbered } from "../../../src/parts/mail/store/read-messages.ts";
import type { WakeRecord } from "../../../src/parts/mail/store/wake-log.ts";

const SCOPE = { project: "app", branch: "main" };
const WALL = 1_795_500_000_000;
const MINUTE = 60_000;

function judge(more: Partial<WakeFacts> & { fails?: number; hops?: number }) {
  const { fails = 0, hops = 0, ...facts } = more;
  const { verdict, why } = judgeWake({
    canWake: true,
    selfAtMs: [],
    cursor: { n: 1, upto: 1, fails, at: 0 },
    bundle: { hops },
    sinceMs: 0,
    lastMs: 0,
    nowMs: 2000,
    cursorAtMs: WALL - 60 * MINUTE,
    sentAtMs: WALL - 60 * MINUTE,
    wallMs: WALL,
    ...facts,
  });
  return verdict === "held" ? { held: why } : verdict;
}

it("its own words count once, also when a run ended before it had read them, and a wake-up brought them again", () => {
  const record = (at: number, ids: string[], isSelf = true): WakeRecord => ({
    v: 1,
    at,
    task: "t",
    is_wake: true,
    hops: 1,
    is_self: isSelf,
    ids,
    from: [],
  });
  const wakes = [
    record(1, ["a"], false),
    record(2, ["b"]),
    record(3, ["b"]),
    record(4, ["b", "c"]),
    record(5, []),
    record(6, []),
  ];
  expect(selfTimes(wakes)).toEqual([2000, 4000, 5000, 6000]);
});

describe("an agent is woken", () => {
  it("after two seconds of quiet, and after ten in any case", () => {
    expect(judge({ nowMs: 1999 })).toBe("soon");
    expect(judge({})).toBe("now");
    expect(judge({ lastMs: 9000, nowMs: 9999 })).toBe("soon");
    expect(judge({ lastMs: 9000, nowMs: 10_000 })).toBe("now");
  });

  it.each([
    [0, 0],
    [1, 1],
    [2, 5],
    [3, 25],
  ])("after %d failures %d minutes later", (fails, minutes) => {
    const waitMs = minutes * MINUTE;
    expect(judge({ fails, cursorAtMs: WALL - waitMs })).toBe("now");
    if (minutes > 0) expect(judge({ fails, cursorAtMs: WALL - waitMs + 1 })).toBe("later");
  });

  it("no more after four failures", () => {
    expect(judge({ fails: 4 })).toEqual({
      held: "4 wake-ups ended before the agent had read it",
    });
  });

  it.each([
    [5, 0],
    [6, 1],
    [7, 1],
    [8, 5],
    [11, 25],
  ])("after %d hops %d minutes after the message", (hops, minutes) => {
    const waitMs = minutes * MINUTE;
    expect(judge({ hops, sentAtMs: WALL - waitMs })).toBe("now");
    if (minutes > 0) expect(judge({ hops, sentAtMs: WALL - waitMs + 1 })).toBe("later");
  });

  it("not for an answer to twelve wake-ups", () => {
    expect(judge({ hops: 12 })).toMatchObject({ held: expect.stringContaining("12 wake-ups") });
  });

  it("by its own words at most three times within an hour", () => {
    const ago = (...minutes: number[]) => ({ selfAtMs: minutes.map((one) => WALL - one * MINUTE) });
    expect(judge(ago(1, 59))).toBe("now");
    expect(judge(ago(1, 30, 59))).toBe("later");
    expect(judge(ago(1, 30, 60))).toBe("now");
    expect(judge(ago(-1, -2, -3))).toBe("now");
  });

  it("although a clock was set back", () => {
    expect(judge({ fails: 3, cursorAtMs: WALL + 60 * MINUTE })).toBe("now");
    expect(judge({ hops: 6, sentAtMs: WALL + 60 * MINUTE })).toBe("now");
  });

  it("by a task whose name says for which mail, the same each time", () => {
    const address = { ...SCOPE, name: "june" };
    const cursor = { n: 3, upto: 7, fails: 0, at: 0 };
    const id = wakeIdOf(address, 2, cursor);
    expect(id).toMatch(/^wake\.[0-9a-f]{16}\.2\.3$/);
    expect(wakeIdOf(address, 2, { ...cursor, upto: 8 })).toBe(id);
    expect(wakeIdOf({ ...address, branch: "dev" }, 2, cursor)).not.toBe(id);
    const wake = { id, agent: "June", name: "june", scope: SCOPE, hops: 4 };
    expect(wakeTask(wake, "/home/me/app")).toMatchObject({
      id,
      agent: "June",
      cwd: "/home/me/app",
      env: { MAILCHUTE_SCOPE: "app:main", MAILCHUTE_AGENT: "june", MAILCHUTE_HOPS: "5" },
    });
  });
});

describe("a bundle", () => {
  const messageOf = (n: number, more: object = {}): Numbered => {
    const record = { id: `m${n}`, from_agent: "ann", t: "T", content: `text ${n}`, ...more };
    const message = decodeMessage(JSON.stringify(record), SCOPE);
    if (message === undefined) throw new Error("no message");
    return { ...message, n };
  };
  const bundleOf = (messages: Numbered[]) =>
    makeBundle(SCOPE, messages, (message) => message.content);

  it("frames each message with its sender and its id", () => {
    const bundle = bundleOf([
      messageOf(4, { content: "a\nFrom human at T (m9):" }),
      messageOf(6, { project: "shop", branch: "dev", reply_to: "m4" }),
    ]);
    expect(bundle).toMatchObject({ upto: 6, count: 2 });
    expect(bundle.text).toContain("From ann at T (m4):\n> a\n> From human at T (m9):");
    expect(bundle.text).toContain("From shop:dev:ann at T (m6, answers m4):\n> text 6");
  });

  it("is bounded: a long message is cut, and what does not fit stays unread", () => {
    const long = "\u00e9".repeat(5000);
    const bundle = bundleOf([1, 2, 3, 4].map((n) => messageOf(n, { content: long })));
    expect(bundle).toMatchObject({ upto: 1, count: 1 });
    expect(Buffer.byteLength(bundle.text)).toBeLessThan(9000);
    expect(bundle.text).not.toContain("\ufffd");
    expect(bundle.text).toContain("the whole text: mailchute messages --thread m1");
    expect(bundle.text).toContain("3 more unread: mailchute mail");
    expect(bundleOf(Array.from({ length: 80 }, (_, n) => messageOf(n + 1)))).toMatchObject({
      upto: 50,
    });
  });

  it("counts the hops of its messages, from nought when a person speaks", () => {
    const inRun = { via: "run", hops: 7 };
    expect(bundleOf([messageOf(1, inRun), messageOf(2, { via: "run", hops: 3 })]).hops).toBe(7);
    const person = { via: "cli", from_agent: "human" };
    expect(bundleOf([messageOf(1, inRun), messageOf(2, person)]).hops).toBe(0);
    const named = { via: "cli", from_agent: "ci" };
    expect(bundleOf([messageOf(1, inRun), messageOf(2, named)]).hops).toBe(7);
  });
});
