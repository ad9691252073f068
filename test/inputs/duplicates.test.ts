/**
 * An id that is there already, wherever the first one is. The same bytes again are no fault and go; other bytes are
 * kept whole in failed/ as ErrTaskExists; neither is run, and the first one's records stay as they are.
 */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { errorName, resultName } from "../../src/core/names.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

/** Appends a line to a log when it runs, then ends as told. */
function logged(pool: Pool, ending: string): { exec: string[] } {
  const log = join(pool.dir, "runs.log");
  return { exec: ["sh", "-c", `echo "$MAILCHUTE_TASK_ID" >> "$0"; ${ending}`, log] };
}

function runsOf(pool: Pool, id: string): number {
  const path = join(pool.dir, "runs.log");
  const lines = fs.existsSync(path) ? fs.readFileSync(path, "utf8").split("\n") : [];
  return lines.filter((line) => line.toLowerCase() === id).length;
}

/** A first task in each place where one can be. */
const PLACES = {
  inbox: {
    start: async (pool: Pool, id: string) => {
      const task = { ...logged(pool, "true"), not_before: Math.floor(Date.now() / 1000) + 3600 };
      pool.drop(id, task);
      await waitFor(() => (pool.supervisor()?.waiting.delayed ?? 0) > 0, {
        what: "a delayed task",
      });
      return task;
    },
    runs: 0,
    file: (pool: Pool, id: string) => join(pool.inbox, `${id}.json`),
  },
  processing: {
    start: async (pool: Pool, id: string) => {
      const task = logged(pool, "while [ -e /proc/self ]; do sleep 0.1; done");
      pool.drop(id, task);
      await waitFor(() => runsOf(pool, id) === 1, { what: "a running task" });
      return task;
    },
    runs: 1,
    file: (pool: Pool, id: string) => {
      const file = fs.readdirSync(pool.processing).find((name) => name.startsWith(`${id}@`));
      return join(pool.processing, file ?? "missing");
    },
  },
  backoff: {
    start: async (pool: Pool, id: string) => {
      const task = logged(pool, "exit 1");
      pool.drop(id, task);
      const isWaiting = (name: string): boolean =>
        name.startsWith(`${id}@`) && name.includes(".2~ready");
      await waitFor(() => fs.readdirSync(pool.processing).some(isWaiting), { what: "a backoff" });
      return task;
    },
    runs: 1,
    file: (pool: Pool, id: string) => {
      const file = fs.readdirSync(pool.processing).find((name) => name.startsWith(`${id}@`));
      return join(pool.processing, file ?? "missing");
    },
  },
  outbox: {
    start: async (pool: Pool, id: string) => {
      const task = logged(pool, "true");
      pool.drop(id, task);
      await pool.result(id);
      return task;
    },
    runs: 1,
    file: (pool: Pool, id: string) => join(pool.outbox, resultName(id)),
  },
  failed: {
    start: async (pool: Pool, id: string) => {
      const task = logged(pool, "exit 64");
      pool.drop(id, task);
      await pool.error(id);
      return task;
    },
    runs: 1,
    file: (pool: Pool, id: string) => join(pool.failed, errorName(id)),
  },
} as const;

type Place = keyof typeof PLACES;

/** The record of a refused file that was dropped under this id: never under the plain name, which is not its own. */
function refusalOf(pool: Pool, id: string) {
  return waitFor(() => pool.errors().find((record) => record.dropped_as === `${id}.json`), {
    what: `the refusal of ${id}`,
  });
}

async function expectRefusedWhole(pool: Pool, id: string, bytes: string): Promise<void> {
  const record = await refusalOf(pool, id);
  expect(record).toMatchObject({ code: "ErrTaskExists", kind: "invalid", attempts: 0 });
  expect(record.recordFile).toContain("~");
  const path = join(pool.mailbox, record.file ?? "");
  // The record comes first, the file a moment later.
  await waitFor(() => fs.existsSync(path), { what: "the refused file" });
  expect(fs.readFileSync(path, "utf8")).toBe(bytes);
  expect(fs.existsSync(join(pool.inbox, `${id}.json`))).toBe(false);
}

/** A task that fails waits for longer than any test. */
const LONG_BACKOFF = { config: "retry: { backoff_ms: 600000, backoff_max_ms: 600000 }\n" };

describe.each(Object.keys(PLACES) as Place[])(
  "a duplicate while the first one is in %s",
  (place) => {
    const { start, file, runs } = PLACES[place];

    it("with other bytes, or in another case, is kept in failed/ and never run", async () => {
      const pool = newPool(LONG_BACKOFF);
      await pool.start();
      const task = await start(pool, "first");
      const before = fs.readFileSync(file(pool, "first"), "utf8");
      const other = JSON.stringify(logged(pool, "echo other"));
      if (place !== "inbox") {
        fs.writeFileSync(join(pool.dir, "first.json"), other);
        fs.renameSync(join(pool.dir, "first.json"), join(pool.inbox, "first.json"));
        await expectRefusedWhole(pool, "first", other);
      }
      // Another case is another id, so even the same bytes are another task.
      pool.drop("FIRST", task);
      await expectRefusedWhole(pool, "FIRST", JSON.stringify(task));

      pool.drop("after", logged(pool, "true"));
      await pool.result("after");
      expect(runsOf(pool, "first")).toBe(runs);
      expect(fs.readFileSync(file(pool, "first"), "utf8")).toBe(before);
    });

    // In the inbox a file of the same name replaces the first one: that is the producer's own doing.
    if (place === "inbox") return;
    it("with the same bytes goes, with an event", async () => {
      const pool = newPool(LONG_BACKOFF);
      await pool.start();
      const task = await start(pool, "first");
      const before = fs.readFileSync(file(pool, "first"), "utf8");
      const errorsBefore = pool.errors().length;
      pool.drop("first", task);
      const isDuplicate = (event: Record<string, unknown>): boolean =>
        event["event"] === "duplicate" && event["task_id"] === "first";
      await waitFor(() => pool.events().some(isDuplicate), { what: "the event" });
      expect(fs.readdirSync(pool.inbox)).toEqual([]);
      expect(fs.readdirSync(pool.tmp)).toEqual([]);
      expect(pool.errors()).toHaveLength(errorsBefore);

      pool.drop("after", logged(pool, "true"));
      await pool.result("after");
      expect(pool.events().filter(isDuplicate)).toHaveLength(1);
      expect(runsOf(pool, "first")).toBe(runs);
      expect(fs.readFileSync(file(pool, "first"), "utf8")).toBe(before);
    });
  },
);

describe("duplicates over a restart", () => {
  it("what settled before the start is known without case, also while the same id waits again", async () => {
    const pool = newPool();
    await pool.start();
    for (const id of ["Done", "Broken"])
      pool.drop(id, logged(pool, id === "Done" ? "true" : "exit 64"));
    await pool.result("Done");
    await pool.error("Broken");
    await pool.stop();
    const other = JSON.stringify({ exec: ["true"] });
    for (const id of ["DONE", "broken"]) fs.writeFileSync(join(pool.inbox, `${id}.json`), other);
    await pool.start();
    await expectRefusedWhole(pool, "DONE", other);
    await expectRefusedWhole(pool, "broken", other);
    expect(pool.results()).toHaveLength(1);

    // Once its record is taken away the id is free again, in any case.
    fs.rmSync(join(pool.outbox, resultName("Done")));
    pool.drop("dONE", { exec: ["echo", "again"] });
    expect((await pool.result("dONE")).output).toBe("again\n");
  });

  it("two files whose names differ in case only: one runs, the other is kept", async () => {
    const pool = newPool();
    for (const id of ["same", "SAME", "Same"]) pool.drop(id, { exec: ["echo", id] });
    await pool.start();
    const refusals = await waitFor(
      () => {
        const errors = pool.errors();
        return errors.length === 2 && pool.results().length === 1 ? errors : undefined;
      },
      { what: "one result and two refusals" },
    );
    expect(refusals.map((record) => record.code)).toEqual(["ErrTaskExists", "ErrTaskExists"]);
    const ids = [...refusals.map((r) => r.dropped_as), `${pool.results()[0]?.task_id}.json`];
    expect(new Set(ids)).toEqual(new Set(["SAME.json", "Same.json", "same.json"]));
  });

  it("a plain claim of a foreign program takes its id from the moment of its rename", async () => {
    const pool = newPool();
    await pool.start();
    pool.drop("warm", { exec: ["true"] });
    await pool.result("warm");
    fs.writeFileSync(join(pool.processing, "theirs.json"), JSON.stringify({ exec: ["true"] }));
    const other = JSON.stringify({ exec: ["echo", "other"] });
    pool.drop("theirs", { exec: ["echo", "other"] });
    await expectRefusedWhole(pool, "theirs", other);
    expect(fs.existsSync(join(pool.processing, "theirs.json"))).toBe(true);
    expect(pool.results()).toHaveLength(1);
  });
});

describe("a mended file", () => {
  it("of the same name, dropped after a refusal, runs; the refused bytes and their record stay", async () => {
    const pool = newPool();
    await pool.start();
    fs.writeFileSync(join(pool.inbox, "mended.json"), '{"exec":["echo","bad",]}');
    const refused = await pool.error("mended");
    expect(refused.code).toBe("ErrInvalidTask");
    pool.drop("mended", { exec: ["echo", "good"] });
    expect((await pool.result("mended")).output).toBe("good\n");
    expect(fs.existsSync(join(pool.failed, errorName("mended")))).toBe(false);
    const kept = pool.errors();
    expect(kept).toHaveLength(1);
    expect(kept[0]).toMatchObject({ lease: refused.lease, file: refused.file });
    expect(fs.readFileSync(join(pool.mailbox, refused.file ?? ""), "utf8")).toBe(
      '{"exec":["echo","bad",]}',
    );
  });

  it("that is bad again is refused again, and nothing of the first refusal is lost", async () => {
    const pool = newPool();
    await pool.start();
    const contents = ["[1]", "[2]", "[3]"];
    for (const [index, content] of contents.entries()) {
      fs.writeFileSync(join(pool.inbox, "bad.json"), content);
      await waitFor(() => pool.errors().length === index + 1, { what: "the refusal" });
    }
    const files = pool.errors().map((record) => join(pool.mailbox, record.file ?? ""));
    // A record comes first, its file a moment later.
    await waitFor(() => files.every((file) => fs.existsSync(file)), { what: "the refused files" });
    const kept = files.map((file) => fs.readFileSync(file, "utf8"));
    expect(kept.sort()).toEqual(contents);
  });
});
