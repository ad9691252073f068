/** Programs that move the folders of a pool at work, and put them back. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool } from "../support/pool.ts";
import { starts, steeredConfig, steps } from "../support/steered.ts";
import { waitFor } from "../support/wait-for.ts";

it.each(["process", "power"])(
  "each record is there once when the outbox is moved away again and again, with durability %s",
  async (durability) => {
    const pool = newPool({ config: steeredConfig({ durability }) });
    await pool.start(["--workers", "8", "--processes", "2"]);
    const ids = Array.from({ length: 600 }, (_, n) => `task-${n}`);
    const away: string[] = [];
    // A record may still come into a folder that was taken away a moment ago.
    const found = (): string[] => away.flatMap((dir) => fs.readdirSync(dir));
    const takeAway = (): void => {
      const dir = join(pool.dir, `away-${away.length}`);
      // Taken away before, and not made again yet.
      if (!fs.existsSync(pool.outbox)) return;
      fs.renameSync(pool.outbox, dir);
      away.push(dir);
    };
    for (const id of ids) {
      pool.drop(id, steps(pool, {}));
      if (pool.settledCount() > 20) takeAway();
    }
    const areAllThere = (): boolean => {
      takeAway();
      return found().length >= ids.length;
    };
    await waitFor(areAllThere, { what: "all records" });
    expect(found().sort()).toEqual(ids.map((id) => `${id}_result.json`).sort());
    for (const id of ids) expect(starts(pool, id), id).toHaveLength(1);
    expect(fs.readdirSync(pool.processing)).toEqual([]);
    expect((await pool.stop()).exitCode).toBe(0);
  },
);

it("a tree that was moved away does not come into being again, and its work goes on when it is back", async () => {
  const config = steeredConfig({ durability: "power", heartbeat_ms: 100, lease_ttl_ms: 2000 });
  const pool = newPool({ config });
  const run = await pool.start(["--workers", "8", "--processes", "2"]);
  const ids = Array.from({ length: 400 }, (_, n) => `task-${n}`);
  for (const id of ids) pool.drop(id, steps(pool, { does: "work", ms: 5 }));
  await waitFor(() => pool.settledCount() > 20, { what: "some results" });
  const away = join(pool.dir, "away");
  fs.renameSync(pool.state, away);
  await waitFor(() => run.child.exitCode !== null, { what: "the end of the supervisor" });
  expect(fs.existsSync(pool.state)).toBe(false);
  fs.renameSync(away, pool.state);

  await pool.run(["run", "--drain", "--no-live", "--workers", "8", "--processes", "2"]);
  expect(pool.results()).toHaveLength(ids.length);
  expect(fs.readdirSync(pool.processing)).toEqual([]);
  expect(fs.readdirSync(pool.inbox)).toEqual([]);
});
