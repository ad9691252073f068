/** A pool in a small memory group, whose runs take more than anybody could know: one is put back before the kernel ends it. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { controlGroup, whyNoGroup } from "../../resources/control-group.ts";
import { newPool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

const MIB = 2 ** 20;
/** Takes so many MiB in steps, then waits for the file. */
const GROWS = `
const [mib, file] = process.argv.slice(1);
const kept = [];
const timer = setInterval(() => {
  if (kept.length * 10 < Number(mib)) kept.push(Buffer.alloc(10 * 1024 * 1024, 1));
  else if (require("node:fs").existsSync(file)) {
    clearInterval(timer);
    console.log(kept.length);
  }
}, 100);
`;

it("the youngest run is put back when memory gets short, uses no attempt, and runs again when there is room", async ({
  skip,
}) => {
  const why = whyNoGroup("memory");
  if (why !== undefined) skip(why);
  const group = controlGroup("memory");
  group.limit(700 * MIB);
  const pool = newPool({ prefix: group.prefix });
  const ids = ["a", "b"];
  for (const id of ids)
    pool.drop(id, { exec: [process.execPath, "-e", GROWS, "300", join(pool.dir, id)] });
  await pool.start();
  const held = await waitFor(() => pool.events().find(({ event }) => event === "held"), {
    what: "a run that is put back",
  });
  const id = String(held["task_id"]);
  const started = pool.events().filter(({ event }) => event === "started");
  expect(started.map((one) => one["task_id"]).at(-1)).toBe(id);
  expect(held["gate"]).toBe("memory-exec");
  expect(pool.alerts()).toContainEqual(
    expect.objectContaining({ alert: "memory", message: expect.stringMatching(`^${id}: it was`) }),
  );
  const { stdout } = await pool.run(["why", id]);
  expect(stdout).toContain("memory");
  for (const one of ids) fs.writeFileSync(join(pool.dir, one), "");
  for (const one of ids) expect((await pool.result(one)).attempts).toBe(1);
});
