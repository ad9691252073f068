/** A follower that begins again at its last place gives each line once, however often the journal was rotated in between. */
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { stateTree } from "../../src/core/state-tree.ts";
import { rotate } from "../../src/journal/journal.ts";
import { type JournalPlace, readOn } from "../../src/journal/read-on.ts";
import { JournalTail } from "../../src/journal/tail.ts";
import { JournalNews } from "../../src/parts/notify/journal-news.ts";
import { JournalReader } from "../../src/supervisor/environment/journal-reader.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { tempDir } from "../support/temp-dir.ts";

/** The ids of the lines after a place, and the new place. */
type Follow = (dir: string, from: JournalPlace) => { ids: string[]; place: JournalPlace };

const placeOf = ({ ino, offset }: JournalPlace): JournalPlace => ({ ino, offset });
/** Looks until nothing has come for some looks. */
function untilQuiet(look: () => string[]): string[] {
  const ids: string[] = [];
  for (let quiet = 0; quiet < 5; quiet++) {
    const more = look();
    if (more.length > 0) quiet = 0;
    ids.push(...more);
    vi.advanceTimersByTime(3000);
  }
  return ids;
}
const idsOf = (lines: readonly string[]): string[] =>
  lines.map((line) => (JSON.parse(line) as { task_id: string }).task_id);

const FOLLOWERS: Record<string, Follow> = {
  "a tail": (dir, from) => {
    const tail = new JournalTail(stateTree(dir).events, from.offset, from.ino);
    const ids = untilQuiet(() => idsOf(tail.nextLines()));
    tail.close();
    return { ids, place: placeOf(tail) };
  },
  "a reader of all that is there": (dir, from) => {
    const ids: string[] = [];
    const visit = (line: string): void => void ids.push(...idsOf([line]));
    const { place } = readOn(stateTree(dir).events, from, Number.POSITIVE_INFINITY, visit);
    return { ids, place };
  },
  "the supervisor": (dir, from) => {
    const ids: string[] = [];
    const facts = { emit: (_: string, line: string) => ids.push(...idsOf([line])) };
    const reader = new JournalReader({ tree: stateTree(dir), facts, alerts: {} } as never);
    reader.startAt(from);
    untilQuiet(() => (reader.read() ? [""] : []));
    const place = placeOf(reader.place);
    reader.close();
    return { ids, place };
  },
  "the notifier": (dir, from) => {
    const none = { ino: 0, offset: 0 };
    const news = new JournalNews(stateTree(dir), { events: from, alerts: none });
    const ids = untilQuiet(() => news.read().map(({ text }) => text.split(":")[0] ?? ""));
    const place = placeOf(news.places.events);
    news.close();
    return { ids, place };
  },
};

/** The build that takes a place for one in the current file, as after a restart without a look at the rotated ones. */
const forgetful: Follow = (dir, from) => {
  const path = stateTree(dir).events;
  const isThere = fs.statSync(path).ino === from.ino;
  return (FOLLOWERS["a tail"] as Follow)(dir, isThere ? from : { ino: 0, offset: 0 });
};

/** @returns the ids that were written, and those that were given */
function play(follow: Follow, seed: number): [written: string[], given: string[]] {
  const random = seededRandom(seed);
  const dir = tempDir();
  const path = stateTree(dir).events;
  fs.mkdirSync(join(path, ".."));
  const written: string[] = [];
  const given: string[] = [];
  const append = (): void => {
    const id = `t${written.length}`;
    written.push(id);
    const failed = { event: "failed", task_id: id, error: "exit 1", kind: "exit" };
    fs.appendFileSync(path, `${JSON.stringify(failed)}\n`);
  };
  let place: JournalPlace = { ino: 0, offset: 0 };
  append();
  for (let start = 0; start < 5; start++) {
    const { ids, place: next } = follow(dir, place);
    given.push(...ids);
    place = next;
    for (let part = 0; part <= random.below(4); part++) {
      for (let n = 0; n <= random.below(3); n++) append();
      rotate(path, 0, 1_000 * (start * 10 + part));
    }
    append();
  }
  given.push(...follow(dir, place).ids);
  return [written, given];
}

describe("a follower", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each(Object.keys(FOLLOWERS))("%s loses no line over restarts and rotations", (name) => {
    for (let seed = 1; seed <= 8; seed++) {
      const [written, given] = play(FOLLOWERS[name] as Follow, seed);
      expect(given, `seed ${seed}`).toEqual(written);
    }
  });

  it("a build that forgets the rotated files loses lines", () => {
    const isWhole = (seed: number): boolean => {
      const [written, given] = play(forgetful, seed);
      return written.every((id) => given.includes(id));
    };
    expect([1, 2, 3].some((seed) => !isWhole(seed))).toBe(true);
  });

  it("reads on at once when a file was rotated before it began, if nobody writes it any more", () => {
    const dir = tempDir();
    const path = stateTree(dir).events;
    fs.mkdirSync(join(path, ".."));
    const line = (id: string): string => `{"event":"failed","task_id":"${id}"}\n`;
    fs.writeFileSync(path, line("a"));
    const { ino } = fs.statSync(path);
    rotate(path, 0, 0);
    fs.writeFileSync(path, line("b"));
    vi.advanceTimersByTime(3000);
    const tail = new JournalTail(path, 0, ino);
    expect([...idsOf(tail.nextLines()), ...idsOf(tail.nextLines())]).toEqual(["a", "b"]);
    tail.close();
  });
});
