/** Corpora of settings, journals and what programs print: each text has its declared answer, whatever it is. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readResults } from "../../src/agents/report.ts";
import { decodeEnvelope } from "../../src/codec/envelope.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { MailchuteError } from "../../src/core/errors.ts";
import { type ReadCounts, readJournal } from "../../src/journal/read.ts";
import { JournalTail } from "../../src/journal/tail.ts";
import { judgePhase } from "../../src/parts/plan/run/judge-phase.ts";
import { tempDir } from "../support/temp-dir.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { CONFIG_CASES } from "./corpus/configs.ts";
import { JOURNAL_CASES } from "./corpus/journals.ts";
import { STREAM_CASES } from "./corpus/streams.ts";

/** No text takes longer (ms). */
const READ_MS_MAX = 5000;

const rows = <C extends { group: string; title: string }>(cases: readonly C[]): [string, C][] =>
  cases.map((c) => [`${c.group}: ${c.title}`, c]);

function expectSize(what: string, cases: readonly { group: string }[], badCount: number): void {
  const groups = new Set(cases.map((c) => c.group)).size;
  process.stdout.write(`${what}: ${cases.length} in ${groups} classes, ${badCount} of them bad\n`);
}

describe("config.yaml", () => {
  it("has a corpus that is large enough", () => {
    const bad = CONFIG_CASES.filter((c) => c.answer.kind === "refused");
    expectSize("configurations", CONFIG_CASES, bad.length);
    expect(bad.length).toBeGreaterThanOrEqual(60);
  });

  it.each(rows(CONFIG_CASES))("%s", (_title, { content, answer }) => {
    const stateDir = tempDir();
    const path = join(stateDir, "config.yaml");
    fs.writeFileSync(path, content);
    const startedMs = performance.now();
    if (answer.kind === "taken") {
      const { settings } = loadSettings({ stateDir, env: {} });
      expect(settings).toMatchObject(answer.settings);
    } else {
      const error = faultOf(() => loadSettings({ stateDir, env: {} }));
      expect(error.code).toBe("ErrInvalidConfig");
      expect(error.message).toContain(answer.reason);
      expect(error.message).toMatch(/^[^\p{Cc}\p{Cf}]{1,400}$/u);
      if (answer.at !== undefined) expect(error.path).toBe(`${path}:${answer.at}`);
    }
    expect(performance.now() - startedMs).toBeLessThan(timeLimitMs(READ_MS_MAX));
    expect(fs.readFileSync(path).equals(Buffer.from(content as string))).toBe(true);
  });

  it.each([
    ["a directory", (path: string) => fs.mkdirSync(path)],
    ["a link to an endless file", (path: string) => fs.symlinkSync("/dev/zero", path)],
    ["a link to a terminal that is not there", (path: string) => fs.symlinkSync("/dev/tty", path)],
    ["a link to itself", (path: string) => fs.symlinkSync("config.yaml", path)],
  ])("kind: %s", (_title, make) => {
    const stateDir = tempDir();
    make(join(stateDir, "config.yaml"));
    const error = faultOf(() => loadSettings({ stateDir, env: {} }));
    expect(error.code).toBe("ErrInvalidConfig");
    expect(error.message).toContain("cannot read config.yaml");
  });
});

function faultOf(step: () => unknown): MailchuteError {
  try {
    step();
  } catch (error) {
    if (error instanceof MailchuteError) return error;
    throw error;
  }
  throw new Error("accepted");
}

describe("a journal", () => {
  it("has a corpus that is large enough", () => {
    expectSize("journals", JOURNAL_CASES, JOURNAL_CASES.filter(({ bad }) => bad > 0).length);
    expect(JOURNAL_CASES.length).toBeGreaterThanOrEqual(30);
  });

  it.each(rows(JOURNAL_CASES))("%s", async (_title, { content, records, bad }) => {
    const path = join(tempDir(), "a.jsonl");
    fs.writeFileSync(path, content);
    const counts: ReadCounts = { records: 0, bad: 0 };
    const read: unknown[] = [];
    for await (const record of readJournal(path, counts)) read.push(record["n"]);
    expect(read).toEqual(records);
    expect(counts).toMatchObject({ records: records.length, bad });

    // Whoever follows it gets the same; of a last line without its end he waits for the rest.
    const tail = new JournalTail(path);
    const followed: unknown[] = [];
    const size = content.length;
    for (let last = -1; tail.offset !== last && tail.offset < size; ) {
      last = tail.offset;
      for (const record of tail.next()) followed.push(record["n"]);
    }
    tail.close();
    expect(followed).toEqual(records);
    expect(fs.readFileSync(path).equals(content)).toBe(true);
  });
});

describe("what a program prints", () => {
  it("has a corpus that is large enough", () => {
    const bad = STREAM_CASES.filter((c) => c.answer.kind !== "envelope");
    expectSize("streams", STREAM_CASES, bad.length);
    expect(bad.length).toBeGreaterThanOrEqual(40);
  });

  it.each(rows(STREAM_CASES))("%s", (_title, { stdout, file, answer }) => {
    const dir = tempDir();
    const [log, resultFile] = [join(dir, "stdout.log"), join(dir, "result.json")];
    fs.writeFileSync(log, stdout);
    if (file !== undefined) fs.writeFileSync(resultFile, file);
    const startedMs = performance.now();
    const results = readResults(resultFile, log, 0);
    const said = results.map((one) => decodeEnvelope(one));
    const { outcome, envelope } = judgePhase(
      {
        kind: "completed",
        output: "",
        verdict: "unknown",
        verdictReason: "",
        exitCode: 0,
      },
      { by: "program", results, isRequired: true },
    );
    expect(performance.now() - startedMs).toBeLessThan(timeLimitMs(READ_MS_MAX));
    // It can be written down and read again, whatever was said.
    expect(JSON.parse(JSON.stringify(envelope))).toBeDefined();
    switch (answer.kind) {
      case "silent":
        expect(results).toEqual([]);
        expect(outcome).toMatchObject({ kind: "failed", code: "ErrNoResult" });
        return;
      case "invalid":
        expect(said[0]?.problems?.join("; ")).toContain(answer.reason);
        expect(outcome).toMatchObject({ kind: "failed", code: "ErrInvalidResult" });
        expect(said[0]?.problems?.join("; ")).toMatch(/^[^\p{Cc}\p{Cf}]{1,2000}$/u);
        return;
      case "envelope":
        expect(said.find((one) => one.envelope !== undefined)?.envelope).toMatchObject(
          answer.holds,
        );
        expect(outcome).toMatchObject({ kind: "completed" });
    }
  });
});
