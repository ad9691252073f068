/** The grammar of file names: what is an id, what a name says, and that writing and reading agree. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ID_CHARS_MAX } from "../../src/core/limits.ts";
import {
  cleanRun,
  errorName,
  explainBadId,
  foldId,
  formatName,
  isId,
  leaseOf,
  nextAttempt,
  nonceOf,
  type ProcessingName,
  parseName,
  parsePlainClaim,
  parseSettledName,
  parseStagedResults,
  prefixOf,
  readInboxName,
  resultName,
  runOf,
  runOfLease,
  settledBatchName,
  stagedResultsName,
  submissionOf,
  withStage,
} from "../../src/core/names.ts";

const LETTERS_AND_DIGITS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".split(
  "",
);

const ids = fc
  .tuple(
    fc.constantFrom(...LETTERS_AND_DIGITS),
    fc.array(fc.constantFrom(...LETTERS_AND_DIGITS, ".", "_", "-"), {
      maxLength: ID_CHARS_MAX - 1,
    }),
  )
  .map(([first, rest]) => first + rest.join(""))
  .filter((id) => !id.includes("..") && !/^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i.test(id));
const lower = (minLength: number, maxLength: number) =>
  fc.string({
    unit: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz0123456789".split("")),
    minLength,
    maxLength,
  });
const tokens = fc
  .array(lower(1, 12), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join("-"));
const names: fc.Arbitrary<ProcessingName> = fc
  .record({
    id: ids,
    submission: lower(1, 12),
    attempt: fc.integer({ min: 0, max: 1_000_000 }),
    stage: fc.constantFrom(
      "ready" as const,
      "w" as const,
      "hold" as const,
      "ok" as const,
      "err" as const,
      "bad" as const,
      "again" as const,
    ),
    token: tokens,
  })
  .map((name) => ({ ...name, token: name.stage === "ready" ? "" : name.token }));

describe("the names of a batch", () => {
  it("are those of a task with the ending .ndjson, and are read back as what they are", () => {
    expect(readInboxName("a.b.ndjson")).toEqual({ kind: "task", id: "a.b", isBatch: true });
    expect(readInboxName("..ndjson").kind).toBe("ignored");
    expect(readInboxName("a@b.ndjson").kind).toBe("bad");
    const ready: ProcessingName = {
      id: "a",
      submission: "s1",
      attempt: 2,
      stage: "ready",
      token: "",
      isBatch: true,
    };
    for (const name of [ready, nextAttempt(ready), withStage(ready, "w", "p-1-2-3")]) {
      expect(formatName(name)).toMatch(/^a@s1\.[23]~(ready|w-p-1-2-3)\.ndjson$/);
      expect(parseName(formatName(name))).toEqual(name);
    }
    expect(parseName("a@s1.2~ready.json")?.isBatch).toBeUndefined();
    expect(parsePlainClaim("a.ndjson")).toBeUndefined();
  });

  it("tell what belongs to which batch", () => {
    const claim = parseName("a@s1.2~w-p-1-2-3.ndjson") as ProcessingName;
    expect(stagedResultsName(claim)).toBe("a@s1.2.p-1-2-3_results.ndjson");
    expect(parseStagedResults(stagedResultsName(claim))).toBe(prefixOf(claim));
    expect(parseStagedResults("a_results.ndjson")).toBeUndefined();
    for (const file of ["a_result.json", "a_results.ndjson", settledBatchName("a", "s1")])
      expect(parseSettledName(file)).toBe("a");
    expect(parseSettledName("a.json")).toBeUndefined();
    expect(submissionOf(leaseOf(claim))).toBe("s1");
  });
});

describe("an id", () => {
  it("may be any text of letters, digits, dots, underscores and dashes that begins with a letter or digit", () => {
    fc.assert(
      fc.property(ids, (id) => {
        expect(explainBadId(id)).toBeUndefined();
        expect(isId(id)).toBe(true);
        expect(readInboxName(`${id}.json`)).toEqual({ kind: "task", id });
      }),
    );
  });

  it.each([
    "a",
    "7",
    "A.b_c-d",
    "0012",
    "console",
    "null",
    "com",
    "com10",
    "nul-1",
    "a.con",
    "x.json",
    "a".repeat(96),
  ])("accepts %j", (id) => {
    expect(explainBadId(id)).toBeUndefined();
  });

  it.each([
    ["", "empty"],
    ["a".repeat(97), "longer than 96"],
    ["../etc", "begins with"],
    ["a/b", "holds only"],
    ["a\\b", "holds only"],
    ["a\0b", "holds only"],
    ["a\n", "holds only"],
    ["\na", "begins with"],
    ["a b", "holds only"],
    [".hidden", "begins with"],
    ["-rf", "begins with"],
    ["_x", "begins with"],
    ["a@b", "holds only"],
    ["a~b", "holds only"],
    ["a%2e", "holds only"],
    ["é", "begins with"],
    ["aé", "holds only"],
    ["a..b", "'..'"],
    ["a..", "'..'"],
    ["con", "Windows device"],
    ["NUL", "Windows device"],
    ["Aux.txt", "Windows device"],
    ["prn.", "Windows device"],
    ["com1", "Windows device"],
    ["LPT9.log", "Windows device"],
  ])("refuses %j and says why", (id, why) => {
    expect(explainBadId(id)).toContain(why);
    expect(isId(id)).toBe(false);
  });

  it("can never name a file outside its directory", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."ab./\\~@\0\n -_".split("")) }), (id) => {
        fc.pre(isId(id));
        expect(id).not.toMatch(/[/\\\0\n~@ ]|\.\.|^[.-]/);
      }),
    );
  });

  it("is compared without case", () => {
    expect(foldId("Task-A")).toBe(foldId("tASK-a"));
    expect(foldId("a")).not.toBe(foldId("b"));
  });
});

describe("a name in the inbox", () => {
  it.each([
    ".a.json",
    ".hidden",
    "#a#",
    "#a.json#",
    "a.json~",
    "a.swp",
    "a.json.swp",
    "a.SWO",
    "a.tmp",
    "a.json.part",
    "a.bak",
    "a.txt",
    "a",
    "README",
    "a.jsonl",
    "a.JSON",
  ])("is left alone when it is not ours: %j", (name) => {
    expect(readInboxName(name)).toEqual({ kind: "ignored" });
  });

  it.each([
    "-a.json",
    "a@b.json",
    "a~b.json",
    "a b.json",
    "a..b.json",
    "nul.json",
    "a\n.json",
    `${"a".repeat(97)}.json`,
    "é.json",
  ])("is bad when it ends in .json but no task can have it: %j", (name) => {
    expect(readInboxName(name)).toMatchObject({ kind: "bad", reason: expect.stringMatching(/./) });
  });

  it("is bad when it is not UTF-8, whatever its ending", () => {
    for (const name of ["a\ufffd.json", "a\ufffd"]) {
      expect(readInboxName(name)).toEqual({ kind: "bad", reason: "the name is not UTF-8" });
    }
  });

  it("says the id of a task, with its case and its leading zeros", () => {
    expect(readInboxName("0012.json")).toEqual({ kind: "task", id: "0012" });
    expect(readInboxName("A.b.json")).toEqual({ kind: "task", id: "A.b" });
  });
});

describe("a name in processing", () => {
  it("is read back as what was written", () => {
    fc.assert(
      fc.property(names, (name) => {
        expect(parseName(formatName(name))).toEqual(name);
      }),
      { numRuns: 300 },
    );
  });

  it("that others made up is read only if it would be written the same: else its claim was ENOENT for ever", () => {
    const files = [
      "a@s.01~ready.json",
      "a@s.99999999999999999999~ready.json",
      "..@s.1~ready.json",
      `${"a".repeat(200)}@s.1~ready.json`,
      "a@S.1~ready.json",
    ];
    for (const file of files) {
      const name = parseName(file);
      expect(name === undefined || (formatName(name) === file && isId(name.id)), file).toBe(true);
    }
  });

  it("fits a directory entry, whatever the id", () => {
    const longest: ProcessingName = {
      id: "a".repeat(ID_CHARS_MAX),
      submission: "s".repeat(8),
      attempt: 1000,
      stage: "again",
      token: `${"f".repeat(12)}-${(2 ** 22).toString(36)}-${Number.MAX_SAFE_INTEGER.toString(36)}-${(2 ** 40).toString(36)}`,
    };
    expect(formatName(longest).length).toBeLessThanOrEqual(255);
  });

  it("looks as the protocol says", () => {
    const ready: ProcessingName = {
      id: "a",
      submission: "s1",
      attempt: 2,
      stage: "ready",
      token: "",
    };
    expect(formatName(ready)).toBe("a@s1.2~ready.json");
    expect(formatName(withStage(ready, "w", "p-1-2-3"))).toBe("a@s1.2~w-p-1-2-3.json");
    expect(formatName(withStage(ready, "ok", "x"))).toBe("a@s1.2~ok-x.json");
    expect(formatName(withStage(ready, "err", "x"))).toBe("a@s1.2~err-x.json");
  });

  it.each([
    "a.json",
    "a@s.1.json",
    "a@s.1~ready",
    "a@s.1~ready-x.json",
    "a@s.1~w.json",
    "a@s.1~w-.json",
    "a@s.1~w-a_b.json",
    "a@s.1~done-x.json",
    "a@s.~ready.json",
    "a@s.x~ready.json",
    "a@s.-1~ready.json",
    "a@.1~ready.json",
    "@s.1~ready.json",
    "a@S!.1~ready.json",
    "a@s.1~ready.json\n",
    "x a@s.1~ready.json~",
  ])("is not ours: %j", (file) => {
    expect(parseName(file)).toBeUndefined();
  });

  it("keeps its submission when the attempt is counted up, and is free to be claimed", () => {
    fc.assert(
      fc.property(names, (name) => {
        expect(nextAttempt(name)).toEqual({
          id: name.id,
          submission: name.submission,
          attempt: name.attempt + 1,
          stage: "ready",
          token: "",
        });
      }),
    );
  });

  it("gives each claim a lease and a run of its own", () => {
    const claim: ProcessingName = {
      id: "a",
      submission: "s",
      attempt: 1,
      stage: "w",
      token: "place-p-t-1",
    };
    const others = [
      { ...claim, submission: "t" },
      { ...claim, attempt: 2 },
      { ...claim, token: "place-p-t-2" },
    ];
    expect(leaseOf(claim)).toBe("s.1.place-p-t-1");
    expect(runOf(claim)).toBe("a@s.1.1");
    expect(new Set([claim, ...others].map(leaseOf)).size).toBe(4);
    expect(new Set([claim, ...others].map(runOf)).size).toBe(4);
  });

  it("says in its nonce in which folder of the day its runs lie; a nonce of others says none", () => {
    const submission = nonceOf("0abcdefv", Date.UTC(2026, 10, 24, 23, 59));
    expect(submission).toBe("0abcdefv261124");
    const name: ProcessingName = { id: "a", submission, attempt: 2, stage: "w", token: "p-q-r-7" };
    expect(runOf(name)).toBe(`2026-11-24/a@${submission}.2.7`);
    expect(runOfLease("a", leaseOf(name))).toBe(runOf(name));
    expect(cleanRun(runOf(name))).toBe(runOf(name));
    expect(parseName(formatName(name))).toEqual(name);
    for (const other of ["s", "0abcdefv", "0abcdefv261324", "0abcdefv2611240"])
      expect(runOf({ ...name, submission: other })).toBe(`a@${other}.2.7`);
    for (const bad of ["../a@s.1.1", "2026-11-24/../a@s.1.1", "/etc", "a", "2026-11-24/x/a@s.1.1"])
      expect(cleanRun(bad)).toBeUndefined();
    expect(cleanRun("a@s.1.1")).toBe("a@s.1.1");
  });
});

describe("a foreign worker's plain claim", () => {
  it("is an id and .json, and nothing else", () => {
    expect(parsePlainClaim("task-1.json")).toBe("task-1");
    for (const file of [
      "task-1",
      "a@s.1~ready.json",
      "a@b.json",
      ".a.json",
      "a~b.json",
      "a..b.json",
      "con.json",
    ]) {
      expect(parsePlainClaim(file)).toBeUndefined();
    }
  });

  it("is never read as one of our own names", () => {
    fc.assert(
      fc.property(ids, names, (id, name) => {
        expect(parseName(`${id}.json`)).toBeUndefined();
        expect(parsePlainClaim(formatName(name))).toBeUndefined();
      }),
    );
  });
});

describe("a settled task's file", () => {
  it("is named after its id, and says how it ended", () => {
    expect(resultName("a")).toBe("a_result.json");
    expect(errorName("a")).toBe("a_error.json");
  });
});
