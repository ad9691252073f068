/** A settlement that cannot go on holds up no other task of its worker, and is told of a few times at most. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

test.each(["process", "power"])(
  "a task whose callback cannot be submitted holds up no other, with durability %s",
  async (durability) => {
    const config = QUICK_CONFIG.replace("workers: 4", "workers: 1");
    const pool = newPool({ config: config.replace("process", durability) });
    const once = join(pool.mailbox, ".once");
    fs.writeFileSync(once, "a file where callbacks need a folder");
    const running = await pool.start();
    pool.drop("calls", { exec: ["true"], on_success: { exec: ["true"] } });
    const said = (): string[] =>
      running
        .stderr()
        .split("\n")
        .filter((line) => line.includes("cannot settle calls yet"));
    await waitFor(() => said().length > 0, { what: "the refusal" });
    for (let n = 0; n < 20; n++) {
      pool.drop(`next-${n}`, { exec: ["true"] });
      await pool.result(`next-${n}`);
    }
    expect(said().length).toBeLessThan(8);
    expect(new Set(said()).size).toBe(said().length);
    fs.rmSync(once);
    await waitFor(() => pool.results().length === 22, { what: "the callback" });
  },
);
