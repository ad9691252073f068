/** Which changes touch what a check relies on. */
import { expect, test } from "vitest";
import { patternsOf } from "../../../src/parts/landing/check-files.ts";
import { addedPaths, protectedPaths } from "../../../src/parts/landing/protected-paths.ts";

const GLOBS = ["**/test/**", "**/*.test.*", "+**/conftest.py"];
const PATHS = ["src/a.js", "test/a.test.js", "test/Data.txt"];

function judge(
  changed: readonly string[],
  links: Record<string, string> = {},
  files: string[] = [],
) {
  const target = {
    paths: [...PATHS, ...Object.keys(links)],
    links: new Map(Object.entries(links)),
  };
  const all = changed.map((path) => ({ path, isNew: !target.paths.includes(path) }));
  return protectedPaths(GLOBS, files, all, target);
}

test("a file that the target has is protected, and a new one only by a pattern with a plus", () => {
  expect(judge(["src/a.js", "test/a.test.js", "test/new.test.js"])).toEqual(["test/a.test.js"]);
  expect(judge(["conftest.py", "deep/in/conftest.py"])).toHaveLength(2);
});

test.each([
  ["capitals", "TEST/A.test.js"],
  ["letters of another script", "tеst/а.test.js"],
  ["a letter of no width", "test/a\u200b.test.js"],
  ["a composed letter", "test/\u00e1.test.js"],
  ["wide letters", "ｔest/a.test.js"],
  ["a line end", "test/a\n.test.js"],
  ["a path in capitals that the target has in small letters", "test/data.txt"],
])("%s make no other file of it", (_, path) => {
  expect(judge([path])).toEqual([path]);
});

test("a link of the target is followed, also through other links, and a circle ends", () => {
  const links = {
    "test/data": "shared/data",
    "shared/data": "real/data",
    "test/round": "test/round",
  };
  expect(judge(["real/data/new.txt"], links)).toEqual([]);
  const target = { paths: [...PATHS, "real/data/x.txt"], links: new Map(Object.entries(links)) };
  const changed = [{ path: "real/data/x.txt", isNew: false }];
  expect(protectedPaths(GLOBS, [], changed, target)).toEqual(["real/data/x.txt"]);
});

test("another repository or a link in the place of a protected folder is a change of it", () => {
  const target = { paths: ["test"], links: new Map() };
  expect(protectedPaths(GLOBS, [], [{ path: "test", isNew: false }], target)).toEqual(["test"]);
});

test("files that the check names are protected", () => {
  expect(judge(["src/a.js"], {}, ["src/a.js"])).toEqual(["src/a.js"]);
});

test("new tests are those that a check can leave out", () => {
  const changed = [
    { path: "test/new.js", isNew: true },
    { path: "test/a.test.js", isNew: false },
    { path: "src/b.js", isNew: true },
  ];
  expect(addedPaths(GLOBS, changed)).toEqual(["test/new.js"]);
});

test("a source file whose name only holds the word test is none of the checks", () => {
  const paths = [
    "src/contest.js",
    "src/latest/index.js",
    "src/attest.ts",
    "src/special.py",
    "lib/protest.rb",
  ];
  const changed = paths.map((path) => ({ path, isNew: false }));
  expect(protectedPaths(patternsOf(["@checks"]), [], changed, { paths, links: new Map() })).toEqual(
    [],
  );
});
