/**
 * One running supervisor, the whole corpus dropped at once among good files: each input gets its answer, whole and
 * without delaying the others, and is then left in peace.
 */
import fs from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errorName } from "../../src/core/names.ts";
import { newPool, type Running, readJson } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";
import { CORPUS, type InputCase } from "./corpus.ts";

const GOOD_COUNT = 20;
/** The good ones must not wait for the bad ones longer than this (ms). */
const GOOD_WITHIN_MS = 2000;
/** Most CPU time that the supervisor may burn between two turns of its event loop (ms): far above its slices. */
const LOOP_DELAY_MS_MAX = 100;
const HERTZ = 100;

/** What a dropped thing is, to be found again unchanged in `failed/`. */
interface Fingerprint {
  ino: number;
  size: number;
  kind: string;
  bytes: string | undefined;
}

describe("the corpus of inputs", () => {
  const possible = CORPUS.filter((c) => c.isPossible !== false);
  for (const c of CORPUS)
    if (c.isPossible === false) process.stderr.write(`\nSKIPPED: ${c.title} needs root\n`);

  const loopDelayFile = join(tempDir(afterAll), "loop-delay");
  const pool = newPool({
    onEnd: afterAll,
    env: {
      LOOP_DELAY_FILE: loopDelayFile,
      NODE_OPTIONS: `--import ${programPath("report-loop-delay.mjs")}`,
    },
  });
  const outside = join(pool.dir, "outside");
  const dropped = new Map<InputCase, Fingerprint>();
  const loopDelay = (): number[] => fs.readFileSync(loopDelayFile, "utf8").split(" ").map(Number);
  let supervisor: Running;
  let aloneMs = 0;
  let goodMs = 0;

  beforeAll(async () => {
    fs.mkdirSync(outside);
    supervisor = await pool.start();
    await waitFor(() => fs.existsSync(loopDelayFile), { what: "the first measurement" });
    process.kill(supervisor.pid, "SIGUSR2");
    await waitFor(() => loopDelay()[0] === 1, { what: "a new measurement" });

    // What the machine makes of it without any bad file: it may have other work to do.
    const aloneStartedMs = performance.now();
    for (let i = 0; i < GOOD_COUNT; i++) pool.drop(`alone-${i}`, { exec: ["true"] });
    for (let i = 0; i < GOOD_COUNT; i++) await pool.result(`alone-${i}`);
    aloneMs = performance.now() - aloneStartedMs;

    const startedMs = performance.now();
    const every = Math.ceil(possible.length / GOOD_COUNT);
    for (const [index, c] of possible.entries()) {
      if (index % every === 0)
        pool.drop(`good-${index / every}`, { exec: ["echo", "-n", String(index)] });
      dropped.set(c, drop(c));
    }
    const good = possible.filter((_, index) => index % every === 0).map((_, i) => `good-${i}`);
    for (const id of good) await pool.result(id);
    goodMs = performance.now() - startedMs;
    await waitFor(() => settledCount() >= possible.length - countOf("ignored"), {
      what: "an answer to everything",
      timeoutMs: 20_000,
    }).catch((error: unknown) => {
      // Which one has none is told by its own test.
      process.stderr.write(`${String(error)}\n${supervisor.stderr()}`);
    });
  });

  const countOf = (kind: string): number => possible.filter((c) => c.answer.kind === kind).length;
  const settledCount = (): number =>
    pool.errors().length + pool.results().filter((r) => !/^(?:good|alone)-/.test(r.task_id)).length;

  function pathOf(folder: string, name: string | Buffer): Buffer {
    return Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name)]);
  }

  /** Made elsewhere, then renamed in: what is half made is another test's matter. */
  function drop(c: InputCase): Fingerprint {
    const staged = pathOf(outside, c.name);
    if (c.make === undefined) fs.writeFileSync(staged, c.content ?? "");
    else c.make(staged, outside);
    const print = fingerprint(staged);
    fs.renameSync(staged, pathOf(pool.inbox, c.name));
    return print;
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

  it.each(possible.map((c) => [c.title, c] as const))("%s", async (_title, c) => {
    const { answer } = c;
    const print = dropped.get(c);
    const stem = Buffer.from(c.name)
      .toString("latin1")
      .replace(/\.json$/, "");
    switch (answer.kind) {
      case "ignored":
        expect(fingerprint(pathOf(pool.inbox, c.name))).toEqual(print);
        return;
      case "runs": {
        const result = await pool.result(stem);
        expect(result).toMatchObject({ status: "completed", attempts: 1 });
        if (answer.output !== undefined) expect(result.output).toBe(answer.output);
        return;
      }
      case "refused": {
        const records = pool
          .errors()
          .filter((record) =>
            Buffer.from(unescapeName(record.dropped_as ?? ""), "latin1").equals(
              Buffer.from(c.name),
            ),
          );
        expect(records).toHaveLength(1);
        const record = records[0];
        expect(record).toMatchObject({
          status: "failed",
          code: answer.code ?? "ErrInvalidTask",
          kind: "invalid",
          attempts: 0,
          error: expect.stringContaining(answer.reason),
        });
        if (answer.offset !== undefined) expect(record?.offset).toBe(answer.offset);
        expect(record?.error).toMatch(/^[^\p{Cc}\p{Cf}]*$/u);
        if (c.title.startsWith("content:") && !answer.reason.startsWith("more than"))
          expect(record?.excerpt).toMatch(/^[\x20-\x7e]{0,200}$/);
        expect(record?.file).toMatch(/^failed\/[A-Za-z0-9][\w.-]*~\w+\.json$/);
        expect(fingerprint(join(pool.mailbox, record?.file ?? ""))).toEqual(print);
        expect(fs.existsSync(join(pool.outbox, `${stem}_result.json`))).toBe(false);
        expect(fs.existsSync(pathOf(pool.inbox, c.name))).toBe(false);
      }
    }
  });

  it("good files among them settle within 2 s", () => {
    expect(goodMs).toBeLessThan(GOOD_WITHIN_MS + 2 * aloneMs);
  });

  it("what was refused under a legal id has its record under that id", () => {
    const record = readJson<{ error: string }>(join(pool.failed, errorName("content-1")));
    expect(record?.error).toContain("the file is empty");
  });

  it("each refusal is told once", () => {
    const events = pool.events().filter((event) => event["event"] === "quarantined");
    expect(events).toHaveLength(countOf("refused"));
    expect(new Set(events.map((event) => event["file"])).size).toBe(countOf("refused"));
    expect(pool.alerts()).toEqual([]);
    expect(supervisor.stderr().match(/^mailchute: refused /gm)).toHaveLength(countOf("refused"));
  });

  it("what is printed about them can do nothing to a terminal", () => {
    expect(supervisor.stderr().replaceAll("\n", "")).toMatch(/^[^\p{Cc}\p{Cf}]*$/u);
  });

  it("nothing else is left, and nothing of them was run or opened for writing", () => {
    const names = fs.readdirSync(pool.inbox, { encoding: "buffer" }).map((n) => n.toString("hex"));
    const ignored = possible
      .filter((c) => c.answer.kind === "ignored")
      .map((c) => Buffer.from(c.name).toString("hex"));
    expect(names.sort()).toEqual(ignored.sort());
    expect(fs.readdirSync(pool.processing)).toEqual([]);
    expect(fs.readdirSync(pool.tmp)).toEqual([]);
    expect(fs.existsSync(join(pool.dir, "pwned"))).toBe(false);
    expect(readJson(join(outside, "link-target.json"))).toEqual({ exec: ["true"] });
  });

  it("the supervisor was never busy for long", () => {
    expect(loopDelay()[1]).toBeLessThan(LOOP_DELAY_MS_MAX);
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
    expect(pool.alerts()).toEqual([]);
    // Two to four seconds with ten sweeps each: what was refused or ignored is neither read again nor worth time.
    expect(after.reads - before.reads).toBeLessThan(400);
    expect(after.cpuMs - before.cpuMs).toBeLessThan(500);
  });
});

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

/** Undoes the escapes of `dropped_as`. */
function unescapeName(text: string): string {
  return text.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
