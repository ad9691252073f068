/** Arguments by an option table. */
import { expect, test } from "vitest";
import { ErrUsage, type OptionTable } from "../../src/cli/shell/command-spec.ts";
import { describeError } from "../../src/cli/shell/error-text.ts";
import { exitCodeOf } from "../../src/cli/shell/exit-codes.ts";
import { parseArguments, readDuration } from "../../src/cli/shell/parse.ts";
import {
  ErrInvalidCommand,
  ErrInvalidConfig,
  ErrInvalidTask,
  ErrInvalidTransition,
  ErrIo,
  ErrMailboxDir,
  ErrNoTasks,
  ErrSupervisorGone,
  ErrSupervisorRunning,
  ErrTaskExists,
  ErrTaskNotFound,
} from "../../src/core/errors.ts";
import { suggest } from "../../src/core/suggest.ts";

const TABLE = {
  id: { type: "text", value: "ID", help: "" },
  after: { type: "text", value: "ID", many: true, help: "" },
  mode: { type: "text", value: "M", choices: ["fast", "slow"], help: "" },
  count: { type: "number", value: "N", min: 0, max: 9, help: "" },
  wait: { type: "duration", value: "T", unit: "s", help: "" },
  room: { type: "size", value: "S", help: "" },
  quiet: { type: "flag", short: "q", help: "" },
  live: { type: "toggle", help: "" },
} as const satisfies OptionTable;

const parse = (...args: string[]) => parseArguments("verb", args, TABLE);

test("numbers in text options stay text", () => {
  expect(parse("--id", "0012", "--after=1e3", "--after", "007", "0x10").values).toMatchObject({
    id: "0012",
    after: ["1e3", "007"],
  });
  expect(parse("0x10", "00").positionals).toEqual(["0x10", "00"]);
});

test("what was not given is false, empty or undefined", () => {
  expect(parse().values).toEqual({
    id: undefined,
    after: [],
    mode: undefined,
    count: undefined,
    wait: undefined,
    room: undefined,
    quiet: false,
    live: undefined,
  });
});

test.each([
  ["4096", 4096],
  ["1K", 1024],
  ["500m", 500 * 1024 ** 2],
  ["1.5G", 1.5 * 1024 ** 3],
  ["2 GiB", 2 * 1024 ** 3],
  ["2TB", 2 * 1024 ** 4],
  ["10B", 10],
])("a size of %s is %i bytes", (text, bytes) => {
  expect(parse("--room", text).values["room"]).toBe(bytes);
});

test.each(["", "G", "-1", "1.2.3", "2 X", "0x10", "1e3", "9999999T"])(
  "a size of %j is refused",
  (text) => {
    expect(() => parse(`--room=${text}`)).toThrow(/--room wants a size/);
  },
);

test("toggles are true, false or not given; flags have no --no- form", () => {
  expect(parse("--live").values["live"]).toBe(true);
  expect(parse("--no-live").values["live"]).toBe(false);
  expect(() => parse("--no-quiet")).toThrow(ErrUsage);
});

test("everything after -- is left alone", () => {
  expect(parse("-q", "a", "--", "--id", "--", "x")).toMatchObject({
    positionals: ["a"],
    rest: ["--id", "--", "x"],
  });
  expect(parse("a").rest).toBeUndefined();
});

test.each([
  [["--idd", "x"]],
  [["--id"]],
  [["--id", "--quiet"]],
  [["--id", "a", "--id", "b"]],
  [["--quiet=yes"]],
  [["--count", "10"]],
  [["--count", "1.5"]],
  [["--count", ""]],
  [["--wait", "soon"]],
  [["--mode", "fats"]],
  [["-x"]],
  [["--__proto__", "x"]],
])("%j is a usage error", (args) => {
  expect(() => parse(...args)).toThrow(ErrUsage);
});

test("a value that begins with a dash can be given", () => {
  expect(parse("--id=--quiet").values["id"]).toBe("--quiet");
  expect(parse("--id", "-").values["id"]).toBe("-");
  expect(parse("--id", "-5").values["id"]).toBe("-5");
});

test.each([
  ["10", 10_000],
  ["10s", 10_000],
  ["500ms", 500],
  ["1.5m", 90_000],
  ["2h", 7_200_000],
  ["1d", 86_400_000],
  ["1h30m", 5_400_000],
  ["1d 2h 0.5s", 93_600_500],
  ["1h30", undefined],
  ["30 30", undefined],
  [`${"1h".repeat(5000)}x`, undefined],
  ["", undefined],
  ["-1", undefined],
  ["1w", undefined],
  ["999999999999999999", undefined],
])("the time %j is %j ms", (text, ms) => {
  expect(readDuration(text, "s")).toBe(ms);
});

test("each documented error has its exit code", () => {
  const codes: [Error, number][] = [
    [new ErrMailboxDir("x"), 73],
    [new ErrTaskExists("x"), 4],
    [new ErrNoTasks("x"), 3],
    [new ErrTaskNotFound("x"), 3],
    [new ErrInvalidTask("x"), 2],
    [new ErrInvalidCommand("x"), 2],
    [new ErrInvalidConfig("x"), 78],
    [new ErrInvalidTransition("x"), 4],
    [new ErrSupervisorRunning("x"), 4],
    [new ErrSupervisorGone("x"), 5],
    [new ErrIo("x"), 74],
  ];
  for (const [error, code] of codes) expect(exitCodeOf(error), error.name).toBe(code);
  expect(
    exitCodeOf(Object.assign(new Error("EACCES: permission denied, open 'x'"), { code: "EACCES" })),
  ).toBe(74);
  const unnamed = "Unknown system error -117";
  const uncleaned = Object.assign(new Error(`${unnamed}: ${unnamed}, open 'x'`), { code: unnamed });
  expect(exitCodeOf(uncleaned)).toBe(74);
  expect(describeError(uncleaned)).toMatchObject({ code: "ErrIo", message: uncleaned.message });
  const cause = Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
  expect(exitCodeOf(cause)).toBe(75);
  for (const error of [new ErrIo("x", { cause }), new ErrInvalidConfig("x", { cause })])
    expect(exitCodeOf(error), error.name).toBe(75);
  expect(exitCodeOf(new TypeError("x"))).toBe(70);
});

test("a slip of the fingers is recognised, another word is not", () => {
  const words = ["status", "stop", "enqueue"];
  expect(suggest("sttaus", words)).toBe("status");
  expect(suggest("enq", words)).toBe("enqueue");
  expect(suggest("frobnicate", words)).toBeUndefined();
});
