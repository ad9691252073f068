/** The index of a full segment finds the same messages as a search through its lines. */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { filterFor, foreignLines, linesWith } from "../../../src/parts/mail/store/inbox.ts";
import type { LineFilter } from "../../../src/parts/mail/store/line-filter.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { encodeMessage } from "../../../src/parts/mail/store/message.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { mayHaveId } from "../../../src/parts/mail/store/segment-index.ts";
import {
  currentSegment,
  indexPathOf,
  listSegments,
  makeNext,
  SEAL,
} from "../../../src/parts/mail/store/segments.ts";
import { indexFull } from "../../../src/parts/mail/store/write-indexes.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { blankMessage } from "./many-messages.ts";

const NAMES = ["ann", "bob", "human"];
const addressOf = (name: string): string => `unknown:main:${name}`;

const newFolder = (): MailFolder =>
  new MailFolder({ dataDir: tempDir(), isDurable: false }, OUTSIDE);

/** Lines of all kinds in three segments. The last one is not full. */
function fill(folder: MailFolder, random: ReturnType<typeof seededRandom>): void {
  const names = (): string[] => NAMES.filter(() => random.below(4) === 0).map(addressOf);
  let count = 0;
  const newLine = (): string => {
    const id = `m-${count++}`;
    const line = encodeMessage({
      ...blankMessage(OUTSIDE),
      id,
      to: names(),
      mentions: names(),
      content: `look, ${random.pick(NAMES)} ${"é".repeat(random.below(20))}`,
      requires_human: random.below(6) === 0,
      project: random.below(6) === 0 ? "other" : "unknown",
    });
    const kind = random.below(14);
    if (kind === 0) return line.slice(0, random.below(line.length));
    if (kind === 1) return "";
    if (kind === 2) return JSON.stringify({ id, to_agent: random.pick(NAMES), content: "old" });
    if (kind === 3) return line.replace('"content":"', `"content":"${"long ".repeat(7000)}`);
    return line;
  };
  for (const isFull of [true, true, false]) {
    const segment = currentSegment(folder);
    const lines = Array.from({ length: random.below(30) }, newLine).map((line) => `${line}\n`);
    const hasSeal = isFull && random.below(5) > 0;
    fs.appendFileSync(segment.path, `${lines.join("")}${hasSeal ? `\n${SEAL}\n` : ""}`);
    if (isFull) makeNext(folder, segment);
  }
}

function found(folder: MailFolder, filter: LineFilter, after: number): unknown {
  const reader = new MessageReader(folder, after);
  const messages = [...reader.next(filter)].filter(
    ({ to, mentions, requires_human: isForHuman, project }) =>
      [...to, ...mentions].some((one) =>
        JSON.stringify(filter.keys).includes(JSON.stringify(one)),
      ) ||
      (filter.keys?.includes("human") === true && isForHuman) ||
      (filter.keys?.includes("foreign") === true && project !== "unknown"),
  );
  // What comes later is read on from there.
  fs.appendFileSync(
    listSegments(folder).at(-1)?.path ?? "",
    `${encodeMessage({ ...blankMessage(OUTSIDE), id: "late", to: NAMES.map(addressOf) })}\n`,
  );
  return { messages, late: [...reader.next()].map(({ id, n }) => [id, n]), last: reader.last };
}

describe("with the indexes", () => {
  it("a reader finds what it finds without them, for any lines", async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = seededRandom(seed);
    for (let round = 0; round < 12; round++) {
      const folder = newFolder();
      fill(folder, random);
      const filters = [
        ...NAMES.map((name) => filterFor(folder, name)),
        linesWith(["ann", "bob"].map(addressOf)),
        foreignLines(folder),
      ];
      const copy = newFolder();
      fs.cpSync(folder.dir, copy.dir, { recursive: true });
      await indexFull(copy);
      expect(listSegments(copy).map(({ isIndexed }) => isIndexed)).toEqual([true, true, false]);
      for (const filter of filters) {
        const after = random.below(3) === 0 ? random.below(60) : 0;
        const where = JSON.stringify({ seed, round, filter, after });
        expect(found(copy, filter, after), where).toEqual(found(folder, filter, after));
      }
    }
  });

  it("a reader that stops in the middle goes on behind that message", async () => {
    const folder = newFolder();
    fill(folder, seededRandom(1));
    await indexFull(folder);
    const all = [...new MessageReader(folder).next(filterFor(folder, "ann"))].map(({ n }) => n);
    const reader = new MessageReader(folder);
    const some: number[] = [];
    for (let last = -1; some.length !== last; ) {
      last = some.length;
      for (const { n } of reader.next(filterFor(folder, "ann"))) {
        some.push(n);
        break;
      }
    }
    expect(all.length).toBeGreaterThan(5);
    expect(some).toEqual(all);
  });

  it("an id of a full segment is known, and an unknown one costs no look at its lines", async () => {
    const folder = newFolder();
    fill(folder, seededRandom(2));
    const [before] = listSegments(folder);
    expect(before && mayHaveId(folder, before, "none")).toBe(true);
    await indexFull(folder);
    const [segment] = listSegments(folder);
    const { id = "" } = [...new MessageReader(folder).next()][0] ?? {};
    expect(segment && mayHaveId(folder, segment, id)).toBe(true);
    expect(segment && mayHaveId(folder, segment, "none")).toBe(false);
  });
});

it.each(["", "{}\n", '{"v":1,"next_n":2'])(
  "an index that is damaged is not used: %j",
  async (text) => {
    const folder = newFolder();
    fill(folder, seededRandom(3));
    const whole = [...new MessageReader(folder).next(filterFor(folder, "ann"))];
    await indexFull(folder);
    fs.writeFileSync(indexPathOf(folder, 1), text);
    expect([...new MessageReader(folder).next(filterFor(folder, "ann"))]).toEqual(whole);
    const [segment] = listSegments(folder);
    expect(segment && mayHaveId(folder, segment, "m-1")).toBe(true);
  },
);

it("no index stays of a segment that retention removes", async () => {
  const folder = newFolder();
  fill(folder, seededRandom(4));
  const work = indexFull(folder);
  fs.rmSync(listSegments(folder)[0]?.path ?? "");
  await work;
  expect(fs.existsSync(indexPathOf(folder, 1))).toBe(false);
  expect(fs.existsSync(indexPathOf(folder, 2))).toBe(true);
});
