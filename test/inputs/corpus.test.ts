/**
 * One running supervisor, the whole corpus dropped among good files: each input gets its answer, whole and without
 * delaying the others, and is then left in peace.
 */
import fs from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errorName, resultName } from "../../src/core/names.ts";
import type { ErrorRecord } from "../../src/core/task.ts";
import { hostKind } from "../../src/host/host-kind.ts";
import { newPool, QUICK_CONFIG, type Running, readJson } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";
import { CORPUS } from "./corpus/index.ts";
import type { Answer, InputCase } from "./corpus/input-case.ts";
import { SETTLED_IDS, WAITING_ID } from "./corpus/names.ts";

/** What the corpus must hold at least. */
const FILES_MIN = 300;
const GROUPS_MIN = 45;
/** So many are dropped at once, with good ones among them. */
const WAVE = 80;
const GOOD_PER_WAVE = 4;
const ALONE_COUNT = 20;
/** The good ones must not wait for the bad ones longer than this (ms). */
const GOOD_WITHIN_MS = 2000;
/** Most CPU time that the supervisor may burn between two turns of its event loop (ms): far above its slices. */
const LOOP_DELAY_MS_MAX = 100;
/** So much may the supervisor's memory grow by, whatever was dropped (bytes): 200 MB of it would be the corpus, kept. */
const MEMORY_BYTES_MAX = 96 * 1024 * 1024;
const HERTZ = 100;

/** What a dropped thing is, to be found again unchanged in `failed/`. */
interface Fingerprint {
  ino: number;
  size: number;
  kind: string;
  bytes: string | undefined;
}

const possible = CORPUS.filter((c) => c.isPossible !== false);
const titleOf = (c: InputCase): string => `${c.group}: ${c.title}`;

describe("the corpus of inputs", () => {
  for (const c of CORPUS)
    if (c.isPossible === false) process.stderr.write(`\nSKIPPED: ${titleOf(c)} needs root\n`);

  const loopDelayFile = join(tempDir(afterAll), "loop-delay");
  // A portable host does not see that a file is still open, so a slow writer may pause no longer than this.
  const settleMs = hostKind() === "proc" ? 300 : 1500;
  const pool = newPool({
    onEnd: afterAll,
    config: QUICK_CONFIG.replace("settle_ms: 300", `settle_ms: ${settleMs}`),
    env: {
      LOOP_DELAY_FILE: loopDelayFile,
      NODE_OPTIONS: `--import ${programPath("report-loop-delay.mjs")}`,
    },
  });
  const outside = join(pool.dir, "outside");
  const dropped = new Map<InputCase, Fingerprint>();
  const refusals = new Map<string, (ErrorRecord & { recordFile: string })[]>();
  const loopDelay = (): number[] => fs.readFileSync(loopDelayFile, "utf8").split(" ").map(Number);
  let supervisor: Running;
  let aloneMs = 0;
  let goodMs = 0;
  let memoryBefore = 0;

  beforeAll(async () => {
    fs.mkdirSync(outside);
    supervisor = await pool.start();
    await waitFor(() => fs.existsSync(loopDelayFile), { what: "the first measurement" });
    process.kill(supervisor.pid, "SIGUSR2");
    await waitFor(() => loopDelay()[0] === 1, { what: "a new measurement" });

    // What the machine makes of it without any bad file: it may have other work to do.
    pool.drop(WAITING_ID, { prompt: "no agent is configured" });
    const aloneStartedMs = performance.now();
    for (let i = 0; i < ALONE_COUNT; i++)
      pool.drop(`alone-${i}`, { exec: ["true"], title: "alone" });
    for (let i = 0; i < ALONE_COUNT; i++) await pool.result(`alone-${i}`);
    aloneMs = performance.now() - aloneStartedMs;
    for (const id of SETTLED_IDS) await pool.result(id);

    memoryBefore = memory(supervisor.pid).now;
    const slow = possible.filter((c) => c.write !== undefined).map((c) => write(c));
    const quick = possible.filter((c) => c.write === undefined);
    for (let from = 0; from < quick.length; from += WAVE) await dropWave(quick, from);
    await Promise.all(slow);
    const answers = expectedAnswers();
    const isThrough = (): boolean =>
      JSON.stringify(answersSoFar()) === JSON.stringify(answers) &&
      fs.readdirSync(pool.processing).length === 0 &&
      fs.readdirSync(pool.tmp).length === 0;
    await waitFor(isThrough, {
      what: "an answer to everything",
      timeoutMs: 20_000,
    }).catch((error: unknown) => {
      // Which one has none is told by its own test.
      process.stderr.write(`${String(error)}\n${supervisor.stderr()}`);
    });
    for (const record of pool.errors()) {
      const name = unescapeName(record.dropped_as ?? "");
      refusals.set(name, [...(refusals.get(name) ?? []), record]);
    }
  });

  const countOf = (...kinds: Answer["kind"][]): number =>
    possible.filter((c) => kinds.includes(c.answer.kind)).length;
  const expectedAnswers = (): [number, number] => [
    countOf("runs", "batch") + ALONE_COUNT + goodCount(),
    countOf("refused", "fails"),
  ];
  /** Alerts of other things than that a task failed. */
  /** Of these each bad input has one, by its answer. */
  const EXPECTED_ALERTS = ["task_failed", "lines_failed", "no_agent", "duplicate"];
  const troubles = (): unknown[] =>
    pool.alerts().filter(({ alert }) => !EXPECTED_ALERTS.includes(String(alert)));
  const goodCount = (): number =>
    Math.ceil(possible.filter((c) => c.write === undefined).length / WAVE) * GOOD_PER_WAVE;
  const answersSoFar = (): [number, number] => [
    fs.readdirSync(pool.outbox).filter((name) => name.endsWith("_result.json")).length,
    fs.readdirSync(pool.failed).filter((name) => name.endsWith("_error.json")).length,
  ];

  /** Drops some, good ones among them, and waits for the good ones. */
  async function dropWave(cases: readonly InputCase[], from: number): Promise<void> {
    const wave = cases.slice(from, from + WAVE);
    const made = wave.map((c) => ({ c, staged: make(c) }));
    const every = Math.ceil(wave.length / GOOD_PER_WAVE);
    const startedMs = performance.now();
    for (let i = 0; i < GOOD_PER_WAVE; i++) {
      // Ahead of what runs among the others: what is measured is what bad files cost, not a full pool.
      pool.drop(`good-${from + i}`, { exec: ["echo", "-n", String(i)], priority: 5 });
      for (const { c, staged } of made.slice(i * every, (i + 1) * every))
        fs.renameSync(staged, pathOf(pool.inbox, c.name));
    }
    for (let i = 0; i < GOOD_PER_WAVE; i++) await pool.result(`good-${from + i}`, 30_000);
    goodMs = Math.max(goodMs, performance.now() - startedMs);
  }

  function pathOf(folder: string, name: string | Buffer): Buffer {
    return Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name)]);
  }

  /** Made elsewhere, then renamed in: what is half made is another case's matter. */
  function make(c: InputCase): Buffer {
    const staged = pathOf(outside, c.name);
    if (c.make === undefined) fs.writeFileSync(staged, c.content ?? "");
    else c.make(staged, outside);
    dropped.set(c, fingerprint(staged));
    return staged;
  }

  async function write(c: InputCase): Promise<void> {
    await c.write?.(join(pool.inbox, String(c.name)));
  }

  function fingerprint(path: string | Buffer): Fingerprint {
    const stats = fs.lstatSync(path);
    const isRead = stats.isFile() && stats.size < 10 * 1024 * 1024;
    return {
      ino: stats.ino,
      size: stats.size,
      kind: (stats.mode & fs.constants.S_IFMT).toString(8),
      bytes: isRead
        ? fs.readFileSync(path).toString("base64")
        : stats.isSymbolicLink()
          ? fs.readlinkSync(path)
          : stats.isDirectory()
            ? fs.readdirSync(path).join()
            : undefined,
    };
  }

  /** The record holds the task as it was dropped, digit for digit. */
  function expectWhole(c: InputCase, recordPath: string): void {
    if (typeof c.content !== "string") return;
    const text = c.content.replace(/^\ufeff/, "").trim();
    expect(fs.readFileSync(recordPath, "utf8")).toContain(`"task":${text}`);
  }

  it("is as large and as varied as it should be", () => {
    const groups = new Set(possible.map(({ group }) => group));
    const kinds = possible.map(({ answer }) => answer.kind);
    const bad = kinds.filter((kind) => kind !== "runs" && kind !== "waits");
    process.stdout.write(
      `corpus: ${possible.length} files in ${groups.size} classes; ${bad.length} of them are not to run as they are\n`,
    );
    expect(new Set(CORPUS.map((c) => Buffer.from(c.name).toString("hex"))).size).toBe(
      CORPUS.length,
    );
    expect(new Set(CORPUS.map(titleOf)).size).toBe(CORPUS.length);
    expect(bad.length).toBeGreaterThanOrEqual(FILES_MIN);
    expect(groups.size).toBeGreaterThanOrEqual(GROUPS_MIN);
  });

  it.each(possible.map((c) => [titleOf(c), c] as const))("%s", (_title, c) => {
    const { answer } = c;
    const print = dropped.get(c);
    const stem = Buffer.from(c.name)
      .toString("latin1")
      .replace(/\.(?:nd)?json$/, "");
    const inInbox = pathOf(pool.inbox, c.name);
    switch (answer.kind) {
      case "ignored":
      case "waits":
        expect(fingerprint(inInbox)).toEqual(print);
        return;
      case "gone":
        expect(fs.existsSync(inInbox)).toBe(false);
        expect(fs.existsSync(join(pool.outbox, resultName(stem)))).toBe(false);
        expect(refusals.get(String(c.name))).toBeUndefined();
        return;
      case "runs": {
        const path = join(pool.outbox, resultName(stem));
        const result = readJson<{ output: unknown }>(path);
        expect(result).toMatchObject({ task_id: stem, status: "completed", attempts: 1 });
        if (answer.output !== undefined) expect(result?.output).toBe(answer.output);
        expectWhole(c, path);
        return;
      }
      case "fails": {
        const path = join(pool.failed, errorName(stem));
        expect(readJson(path)).toMatchObject({
          task_id: stem,
          status: "failed",
          kind: answer.failure,
          attempts: 1,
          error: expect.stringContaining(answer.reason),
        });
        expectWhole(c, path);
        return;
      }
      case "batch":
        expectBatch(c, stem, answer);
        return;
      case "refused": {
        const records = refusals.get(Buffer.from(c.name).toString("latin1")) ?? [];
        expect(records).toHaveLength(1);
        const record = records[0];
        const code = answer.code ?? "ErrInvalidTask";
        expect(record).toMatchObject({
          status: "failed",
          code,
          kind: "invalid",
          attempts: 0,
          error: expect.stringContaining(answer.reason),
        });
        if (answer.offset !== undefined) expect(record?.offset).toBe(answer.offset);
        expect(record?.error).toMatch(/^[^\p{Cc}\p{Cf}]*$/u);
        expect(record?.file).toMatch(/^failed\/[A-Za-z0-9][\w.-]*~\w+\.(?:nd)?json$/);
        const found = fingerprint(join(pool.mailbox, record?.file ?? ""));
        if (print !== undefined) expect(found).toEqual(print);
        if (code !== "ErrTaskExists")
          expect(fs.existsSync(join(pool.outbox, resultName(stem)))).toBe(false);
        expect(fs.existsSync(inInbox)).toBe(false);
      }
    }
  });

  /** Its counts, an answer for each of its lines, and the batch itself as it was dropped. */
  function expectBatch(c: InputCase, id: string, answer: Answer & { kind: "batch" }): void {
    const result = readJson<{ batch: object }>(join(pool.outbox, resultName(id)));
    const { completed, bad } = answer;
    expect(result).toMatchObject({
      status: "completed",
      verdict: bad === 0 ? "pass" : "fail",
      batch: { lines: completed + bad, completed, bad },
    });
    const lines = fs
      .readFileSync(join(pool.outbox, `${id}_results.ndjson`), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { line: number; status: string; error?: string });
    const failed = lines.filter(({ status }) => status === "failed");
    expect(failed.map(({ line }) => line).sort((a, b) => a - b)).toEqual(
      Object.keys(answer.faults).map(Number),
    );
    for (const { line, error } of failed) {
      expect(error).toContain(answer.faults[line]);
    }
    const kept = fs.readdirSync(pool.outbox).filter((name) => name.startsWith(`${id}~`));
    expect(kept).toHaveLength(1);
    if (c.content !== undefined)
      expect(
        fs.readFileSync(join(pool.outbox, kept[0] ?? "")).equals(Buffer.from(c.content as string)),
      ).toBe(true);
  }

  it("good files among them settle within 2 s", () => {
    expect(goodMs).toBeLessThan(timeLimitMs(GOOD_WITHIN_MS) + 2 * aloneMs);
  });

  it("what was refused under a legal id has its record under that id", () => {
    const record = readJson<{ error: string }>(join(pool.failed, errorName("empty-1")));
    expect(record?.error).toContain("the file is empty");
  });

  it("each refusal is told once", () => {
    const events = pool.events().filter((event) => event["event"] === "quarantined");
    expect(events).toHaveLength(countOf("refused"));
    expect(new Set(events.map((event) => event["file"])).size).toBe(countOf("refused"));
    expect(troubles()).toEqual([]);
    expect(supervisor.stderr().match(/^mailchute: refused /gm)).toHaveLength(countOf("refused"));
  });

  it("what is printed about them can do nothing to a terminal", () => {
    expect(supervisor.stderr().replaceAll("\n", "")).toMatch(/^[^\p{Cc}\p{Cf}]*$/u);
  });

  it("nothing else is left, and nothing of them was run or opened for writing", () => {
    const names = fs.readdirSync(pool.inbox, { encoding: "buffer" }).map((n) => n.toString("hex"));
    const stays = possible
      .filter((c) => c.answer.kind === "ignored" || c.answer.kind === "waits")
      .map((c) => Buffer.from(c.name).toString("hex"));
    stays.push(Buffer.from(`${WAITING_ID}.json`).toString("hex"));
    expect(names.sort()).toEqual(stays.sort());
    expect(fs.readdirSync(pool.processing)).toEqual([]);
    expect(fs.readdirSync(pool.tmp)).toEqual([]);
    for (const dir of [pool.dir, pool.state, pool.mailbox, outside, process.cwd()])
      expect(fs.readdirSync(dir).filter((name) => name.startsWith("pwned"))).toEqual([]);
    expect(readJson(join(outside, "link-target.json"))).toEqual({ exec: ["true"] });
  });

  it("the supervisor was never busy for long", () => {
    // On a crowded machine the same work takes more CPU time, but not without end.
    expect(loopDelay()[1]).toBeLessThan(
      Math.min(timeLimitMs(LOOP_DELAY_MS_MAX), 4 * LOOP_DELAY_MS_MAX),
    );
  });

  it("nor did it keep what it read", () => {
    const { peak } = memory(supervisor.pid);
    process.stdout.write(
      `corpus: good files within ${Math.round(goodMs)} ms (alone ${Math.round(aloneMs)} ms), longest turn ${loopDelay()[1]} ms, memory +${Math.round((peak - memoryBefore) / 2 ** 20)} MiB\n`,
    );
    expect(peak - memoryBefore).toBeLessThan(MEMORY_BYTES_MAX);
  });

  it("it leaves them in peace afterwards", async () => {
    const eventCount = pool.events().length;
    const before = usage(supervisor.pid);
    const beat = (): string | undefined => pool.supervisor()?.heartbeat_at;
    for (let round = 0; round < 2; round++) {
      const last = beat();
      await waitFor(() => beat() !== last && beat() !== undefined, { what: "a heartbeat" });
    }
    const after = usage(supervisor.pid);
    expect(pool.events()).toHaveLength(eventCount);
    expect(troubles()).toEqual([]);
    // Two to four seconds with ten sweeps each: what was refused or ignored is neither read again nor worth time.
    expect(after.reads - before.reads).toBeLessThan(400);
    expect(after.cpuMs - before.cpuMs).toBeLessThan(500);
  });
});

/** Resident memory of a process, now and at most (bytes). */
function memory(pid: number): { now: number; peak: number } {
  const status = fs.readFileSync(`/proc/${pid}/status`, "latin1");
  const kilobytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]);
  return { now: 1024 * kilobytes("VmRSS"), peak: 1024 * kilobytes("VmHWM") };
}

/** CPU time (ms) and read calls of a process so far. */
function usage(pid: number): { cpuMs: number; reads: number } {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const reads = /^syscr: (\d+)/m.exec(fs.readFileSync(`/proc/${pid}/io`, "latin1"))?.[1];
  return {
    cpuMs: ((Number(fields[11]) + Number(fields[12])) * 1000) / HERTZ,
    reads: Number(reads),
  };
}

/** Undoes the escapes of `dropped_as`: bytes, as Latin-1. */
function unescapeName(text: string): string {
  return text.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
