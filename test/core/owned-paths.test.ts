/** The files that tasks own: which paths meet, and which are refused. */
import { describe, expect, it } from "vitest";
import { explainBadOwned, meetAt, ownsKeyOf, pathsMeet } from "../../src/core/owned-paths.ts";

const PAIRS: readonly [a: string, b: string, meet: boolean][] = [
  ["a", "a", true],
  ["a", "./a/b/", true],
  ["a/b", "a/c", false],
  ["ab", "a", false],
  ["**", "anything/at/all", true],
  ["src/*.ts", "src/x.ts", true],
  ["src/*.ts", "src/x.md", false],
  ["src/*.ts", "src/a/x.ts", false],
  ["*.ts", "*.md", false],
  ["a*", "*b", true],
  ["a?c", "abc", true],
  ["a?c", "ac", false],
  ["**/x.ts", "src/a/x.ts", true],
  ["**/x.ts", "src", true],
  ["src/**/t", "src/t", true],
  ["src/**/t", "lib", false],
];

describe("paths", () => {
  it.each(PAIRS)("%s and %s: %s, in both orders", (a, b, meet) => {
    expect(pathsMeet(a, b)).toBe(meet);
    expect(pathsMeet(b, a)).toBe(meet);
  });

  it("of two that only read do not meet; a path that one of them writes does", () => {
    const readers = { read: ["src"], write: [] };
    expect(meetAt(readers, { read: ["src/a"], write: [] })).toBeUndefined();
    expect(meetAt(readers, { read: [], write: ["docs", "src/a"] })).toEqual(["src", "src/a"]);
    expect(meetAt({ read: [], write: ["src/a"] }, readers)).toEqual(["src/a", "src"]);
  });

  it("that leave the repository are refused", () => {
    for (const bad of ["/etc", "a/../../b", "..", ".", "./"])
      expect(explainBadOwned(bad), bad).toEqual(expect.any(String));
    for (const good of ["a", "**", "src/*.ts", "a..b"])
      expect(explainBadOwned(good)).toBeUndefined();
  });

  it("make no claim when both lists are empty", () => {
    expect(ownsKeyOf({ owns: { read: [], write: [] }, cwd: "x" })).toBeUndefined();
    expect(ownsKeyOf({ owns: { write: ["a"] }, cwd: "x" })).toBe('["x",[],["a"]]');
  });
});
