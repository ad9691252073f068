/** Notes of keys: which task holds a key, for how long, and what is swept. */
import fs from "node:fs";
import { basename, join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { DEDUP_WINDOW_MS_MAX } from "../../src/core/limits.ts";
import { sweepAll } from "../../src/mailbox/clean/sweep.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { dropOldKey, finishKeys, holdKey, keyNotePath } from "../../src/mailbox/submit/keys.ts";
import { tempDir } from "../support/temp-dir.ts";

const KEY = "k";
let trays: Trays;
let note: string;
let nowMs: number;

beforeEach(() => {
  nowMs = 1_000_000_000_000;
  const opened = openTrays(join(tempDir(), "mailbox"), { durability: "process" });
  trays = { ...opened, clock: { ...opened.clock, wallMs: () => nowMs } };
  note = keyNotePath(trays, KEY);
});

const hold = (id: string, windowMs = 0): string | undefined =>
  holdKey(trays, { id, key: KEY, windowMs });
const put = (tray: "inbox" | "failed", name: string): void =>
  fs.writeFileSync(join(trays[tray], name), '{"title":"x"}');

it("a task holds its key while it waits, and within the window of another one unless it has failed", () => {
  put("inbox", "a.json");
  expect([hold("a"), hold("b"), hold("a")]).toEqual([undefined, "a", undefined]);
  fs.unlinkSync(join(trays.inbox, "a.json"));
  nowMs += 999;
  expect(hold("b", 1000)).toBe("a");
  put("failed", "a_error.json");
  expect(hold("b", 1000)).toBeUndefined();
  nowMs += 1000;
  expect([hold("c", 1001), hold("c", 1000)]).toEqual(["b", undefined]);
  expect(fs.readdirSync(join(trays.dir, ".keys"))).toHaveLength(1);
});

it("a note from before the clock was set back counts only while its task waits", () => {
  hold("a", 1000);
  nowMs -= 10_000;
  put("inbox", "a.json");
  expect(hold("b", 1000)).toBe("a");
  fs.unlinkSync(join(trays.inbox, "a.json"));
  expect(hold("b", 1000)).toBeUndefined();
});

it.each(["", "{", '{"id":1}'])("a note that holds %o frees the key", (text) => {
  hold("a", 1000);
  fs.writeFileSync(note, text);
  expect(hold("b", 1000)).toBeUndefined();
  expect(JSON.parse(fs.readFileSync(note, "utf8"))).toMatchObject({ id: "b" });
});

it("while another process frees the key it is not known; the next start tidies up after a dead one", () => {
  hold("a");
  fs.linkSync(note, `${note}~`);
  expect(() => hold("b")).toThrow("EAGAIN");
  fs.unlinkSync(note);
  finishKeys(trays);
  expect(hold("b")).toBeUndefined();
});

it("a sweep leaves the second name of a note, however old it is: a process may be freeing its key", () => {
  hold("a");
  fs.linkSync(note, `${note}~`);
  nowMs += DEDUP_WINDOW_MS_MAX + 60_000;
  expect(dropOldKey(trays, `${basename(note)}~`)).toBe(false);
  expect(fs.readdirSync(join(trays.dir, ".keys"))).toHaveLength(2);
});

it("a note is swept when no window reaches back to it and its task has ended", () => {
  put("inbox", "a.json");
  hold("a");
  const old = (Date.now() - DEDUP_WINDOW_MS_MAX - 60_000) / 1000;
  nowMs += DEDUP_WINDOW_MS_MAX + 60_000;
  fs.utimesSync(note, old, old);
  const sweep = (): number => sweepAll(trays, { outboxDays: 1, failedDays: 1 }).staged;
  expect([sweep(), fs.existsSync(note)]).toEqual([0, true]);
  fs.unlinkSync(join(trays.inbox, "a.json"));
  expect([sweep(), fs.existsSync(note)]).toEqual([1, false]);
});
