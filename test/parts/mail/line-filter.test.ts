/** Lines are found by their texts as if each was searched on its own. */
import { expect, it } from "vitest";
import { lineTest } from "../../../src/parts/mail/store/line-filter.ts";
import { seededRandom } from "../../support/seeded-random.ts";

const WORDS = ["ab", "abc", "b", "xyz", '{"v":1,', " ", "é", ""];

it("for any lines and texts", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = seededRandom(seed);
  const textOf = (words: number): string =>
    Array.from({ length: random.below(words) }, () => random.pick(WORDS)).join("");
  for (let round = 0; round < 2000; round++) {
    const lines = Array.from({ length: random.below(8) }, () => {
      const isOurs = random.below(4) > 0;
      return `${isOurs ? '{"v":1,' : ""}${textOf(6)}`;
    });
    const any = Array.from({ length: random.below(3) }, () => `${textOf(3)}c`);
    const unless = random.below(2) === 0 ? undefined : `${textOf(3)}b`;
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    const passes = lineTest(bytes, { any, ...(unless === undefined ? {} : { unless }) });
    let at = 0;
    for (const line of lines) {
      const end = at + Buffer.byteLength(line);
      const has = (text: string): boolean => line.includes(text);
      const isForeign = Buffer.byteLength(line) >= 7 && !line.startsWith('{"v":1,');
      const isWanted = any.some(has) || (unless !== undefined && !has(unless)) || isForeign;
      expect(passes(at, end), JSON.stringify({ seed, round, lines, line, any, unless })).toBe(
        isWanted,
      );
      at = end + 1;
    }
  }
});
