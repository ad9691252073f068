/** A batch that is costly to read: the tasks beside it in the same worker process must not notice. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, type Pool, readJson } from "../support/pool.ts";
import { steeredConfig, steps } from "../support/steered.ts";
import { waitFor } from "../support/wait-for.ts";

/** Most CPU time that a worker may burn between two turns of its event loop (ms): far above its slices. */
const BUSY_MS_MAX = 100;
const MIB = 1024 * 1024;
/** For a handler that does nothing this is long; for one that waits behind a whole batch it is not (ms). */
const TIMEOUT_MS = 2000;

interface Shape {
  name: string;
  /** Makes the batch at this path. */
  write: (path: string, pool: Pool) => void;
  counts: { lines: number; completed: number; bad: number };
}

const manyKeys = `{"payload":{${Array.from({ length: 81_000 }, (_, i) => `"k${i}":1`).join(",")}}}\n`;

const SHAPES: readonly Shape[] = [
  {
    name: "newlines",
    write(path, pool) {
      const fd = fs.openSync(path, "w");
      const newlines = Buffer.alloc(MIB, "\n");
      for (let i = 0; i < 32; i++) fs.writeSync(fd, newlines);
      fs.writeSync(fd, `${JSON.stringify(steps(pool, {}))}\n`);
      fs.closeSync(fd);
    },
    counts: { lines: 1, completed: 1, bad: 0 },
  },
  {
    name: "brackets",
    write: (path) => fs.writeFileSync(path, `${"[".repeat(MIB)}\n`.repeat(24)),
    counts: { lines: 24, completed: 0, bad: 24 },
  },
  {
    name: "sparse",
    write(path, pool) {
      fs.writeFileSync(path, "");
      fs.truncateSync(path, 500 * MIB);
      fs.appendFileSync(path, `\n${JSON.stringify(steps(pool, {}))}\n`);
    },
    counts: { lines: 2, completed: 1, bad: 1 },
  },
  {
    name: "keys",
    write: (path) => fs.writeFileSync(path, manyKeys.repeat(16)),
    counts: { lines: 16, completed: 0, bad: 16 },
  },
];

test("a batch that is costly to read leaves the tasks of its worker their time", async () => {
  const pool = newPool({ config: steeredConfig({ processes: 1 }) });
  await pool.start();
  const busyMs: Record<string, number> = {};
  for (const { name, write, counts } of SHAPES) {
    const until = join(pool.dir, `${name}-over`);
    pool.drop(`${name}-measure`, steps(pool, { does: "measure", until }));
    const staged = join(pool.dir, name);
    write(staged, pool);
    await waitFor(() => runs(pool, `${name}-measure`), { what: "the measurement to begin" });
    fs.renameSync(staged, join(pool.inbox, `${name}.ndjson`));
    await waitFor(() => runs(pool, name), { what: `the start of ${name}` });
    pool.drop(`${name}-beside`, { ...steps(pool, {}), timeout_ms: TIMEOUT_MS });
    expect((await pool.result(`${name}-beside`)).attempts).toBe(1);
    const record = join(pool.outbox, `${name}_result.json`);
    await waitFor(() => fs.existsSync(record), { what: `the end of ${name}`, timeoutMs: 60_000 });
    expect(readJson<{ batch: object }>(record)?.batch, name).toMatchObject(counts);
    fs.writeFileSync(until, "");
    const { output } = await pool.result(`${name}-measure`);
    busyMs[name] = (output as { ms: number }).ms;
  }
  for (const [name, ms] of Object.entries(busyMs))
    expect(ms, `ms without a turn of the event loop, while ${name} is read`).toBeLessThan(
      BUSY_MS_MAX,
    );
});

function runs(pool: Pool, id: string): boolean {
  return pool.events().some((event) => event["event"] === "started" && event["task_id"] === id);
}
