/** Under load: several worker processes and two producers who both want every id; each task settles once. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { newPool } from "../support/pool.ts";
import { startProgram } from "../support/programs.ts";
import { steeredConfig } from "../support/steered.ts";
import { waitFor } from "../support/wait-for.ts";

describe.each([
  { durability: "process", count: 1500 },
  { durability: "power", count: 200 },
])("$count tasks, 4 worker processes, 2 racing producers, durability $durability", (level) => {
  it("gives each task one result, and each clash an ErrTaskExists", async () => {
    const { durability, count } = level;
    const ids = Array.from({ length: count }, (_, n) => `t-${String(n).padStart(5, "0")}`);
    const pool = newPool({ config: steeredConfig({ durability }) });
    await pool.start(["--workers", "4", "--processes", "4"]);
    await waitFor(() => pool.workers().length === 4, { what: "4 worker processes" });

    const producers = ["left", "right"].map((label) =>
      startProgram("racing-producer.mjs", [pool.mailbox, durability, label, String(count)]),
    );
    for (const producer of producers)
      await waitFor(() => producer.stdout().includes("ready"), { what: "a producer" });
    for (const producer of producers) producer.child.stdin?.write("go\n");
    const answers = await Promise.all(
      producers.map(async (producer) => {
        await producer.ended;
        const line = producer.stdout().split("\n")[1] ?? "";
        return JSON.parse(line) as Record<string, number>;
      }),
    );

    const sum = (name: string): number => answers.reduce((n, a) => n + (a[name] ?? 0), 0);
    expect({ accepted: sum("accepted"), clashes: sum("ErrTaskExists") }).toEqual({
      accepted: count,
      clashes: count,
    });
    await waitFor(() => pool.settledCount() === count, {
      timeoutMs: 90_000,
      what: `${count} records`,
    });
    await pool.stop();
    const results = pool.results();
    expect(new Set(results.map((r) => r.task_id)).size).toBe(count);
    expect(new Set(results.map((r) => r.lease)).size).toBe(count);
    expect(new Set(results.map((r) => (r.output as { pid: number }).pid)).size).toBe(4);
    expect(pool.errors()).toEqual([]);
    expect(checkState(pool.state, ids)).toEqual([]);
    expect(pool.pids(), join(pool.dir)).toEqual([]);
  });
});
