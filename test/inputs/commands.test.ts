/** A corpus of command files, dropped at once into a running pool: each gets its answer, and good ones are not held up. */
import fs from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errorName, resultName } from "../../src/core/names.ts";
import { newPool, type Running, readJson } from "../support/pool.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";
import { COMMAND_CASES, type CommandCase } from "./corpus/commands.ts";

const CASES_MIN = 60;
/** A good command among the bad ones is in effect within this (ms). */
const GOOD_WITHIN_MS = 2000;

interface Acknowledgement {
  task_id: string;
  status: string;
  error?: string;
  code?: string;
  result?: object;
  dropped_as?: string;
  file?: string;
}

describe("the corpus of command files", () => {
  const pool = newPool({ onEnd: afterAll });
  const tray = (name: string): string => join(pool.state, "control", name);
  const outside = join(pool.dir, "outside");
  const contents = new Map<CommandCase, Buffer | undefined>();
  const countOf = (kind: string): number =>
    COMMAND_CASES.filter((c) => c.answer.kind === kind).length;
  let supervisor: Running;
  let goodMs = 0;
  let refusals: Acknowledgement[] = [];

  beforeAll(async () => {
    fs.mkdirSync(outside);
    supervisor = await pool.start();
    await waitFor(() => fs.existsSync(tray("inbox")), { what: "the control mailbox" });
    const staged = COMMAND_CASES.map((c) => {
      const path = join(outside, c.name);
      if (c.make === undefined) fs.writeFileSync(path, c.content ?? "");
      else c.make(Buffer.from(path), outside);
      contents.set(c, c.make === undefined ? fs.readFileSync(path) : undefined);
      return path;
    });
    const good = join(outside, "good.json");
    fs.writeFileSync(good, '{"command":"set-workers","args":{"workers":4}}');
    for (const [i, c] of COMMAND_CASES.entries())
      fs.renameSync(staged[i] ?? "", join(tray("inbox"), c.name));
    const startedMs = performance.now();
    fs.renameSync(good, join(tray("inbox"), "good.json"));
    await waitFor(() => fs.existsSync(join(tray("outbox"), resultName("good"))), {
      what: "the good command",
      timeoutMs: 30_000,
    });
    goodMs = performance.now() - startedMs;
    const count = (name: string): number =>
      fs.readdirSync(tray(name)).filter((file) => /_(?:error|result)\.json$/.test(file)).length;
    await waitFor(
      () =>
        count("failed") === countOf("refused") + countOf("failed") &&
        count("outbox") === countOf("done") + 1 &&
        fs.readdirSync(tray("processing")).length === 0,
      { what: "an answer to everything", timeoutMs: 20_000 },
    ).catch((error: unknown) => {
      // Which one has none is told by its own test.
      process.stderr.write(`${String(error)}\n${supervisor.stderr()}`);
    });
    refusals = fs
      .readdirSync(tray("failed"))
      .filter((file) => file.endsWith("_error.json"))
      .flatMap((file) => readJson<Acknowledgement>(join(tray("failed"), file)) ?? []);
  });

  it("is large enough", () => {
    process.stdout.write(
      `commands: ${COMMAND_CASES.length} files in ${new Set(COMMAND_CASES.map((c) => c.group)).size} classes, a good one among them within ${Math.round(goodMs)} ms\n`,
    );
    expect(COMMAND_CASES.length - countOf("done")).toBeGreaterThanOrEqual(CASES_MIN);
  });

  it.each(COMMAND_CASES.map((c) => [`${c.group}: ${c.title}`, c] as const))("%s", (_title, c) => {
    const { answer, name } = c;
    const stem = name.slice(0, -5);
    switch (answer.kind) {
      case "ignored":
        expect(fs.readFileSync(join(tray("inbox"), name))).toEqual(contents.get(c));
        return;
      case "done":
        // All came at once: another one that steers the same thing may have overtaken it.
        expect(readJson<Acknowledgement>(join(tray("outbox"), resultName(stem)))).toMatchObject({
          status: "completed",
          result: expect.toSatisfy(
            (result: Record<string, unknown>) =>
              typeof result["superseded_by"] === "string" ||
              Object.entries(answer.result).every(([key, value]) => result[key] === value),
          ),
        });
        return;
      case "failed":
        expect(readJson(join(tray("failed"), errorName(stem)))).toMatchObject({
          status: "failed",
          code: answer.code,
          error: expect.stringContaining(answer.reason),
        });
        return;
      case "refused": {
        const found = refusals.filter((one) => unescapeName(one.dropped_as ?? "") === name);
        expect(found).toHaveLength(1);
        expect(found[0]).toMatchObject({
          status: "failed",
          code: "ErrInvalidCommand",
          error: expect.stringContaining(answer.reason),
        });
        expect(found[0]?.error).toMatch(/^[^\p{Cc}\p{Cf}]{0,400}$/u);
        const kept = join(pool.state, "control", found[0]?.file ?? "");
        const bytes = contents.get(c);
        if (bytes === undefined) expect(fs.lstatSync(kept)).toBeDefined();
        else expect(fs.readFileSync(kept).equals(bytes)).toBe(true);
      }
    }
  });

  it("a good one among them is in effect within 2 s", () => {
    expect(goodMs).toBeLessThan(timeLimitMs(GOOD_WITHIN_MS));
  });

  it("nothing else is left, and the pool runs as before", async () => {
    const stays = COMMAND_CASES.filter((c) => c.answer.kind === "ignored").map((c) => c.name);
    expect(fs.readdirSync(tray("inbox")).sort()).toEqual(stays.sort());
    expect(fs.readdirSync(tray("processing"))).toEqual([]);
    expect(pool.events().filter((event) => event["event"] === "paused")).toEqual([]);
    pool.drop("t", { exec: ["true"] });
    await pool.result("t");
  });
});

/** Undoes the escapes of `dropped_as`. */
function unescapeName(text: string): string {
  const bytes = text.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, "latin1").toString("utf8");
}
