/** `cluster: {bridge: true}`: a bridge that cannot work does not touch the pool. With real servers: `nats/in-run.test.ts`. */
import { expect, test } from "vitest";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

test("a bridge without its packages is told of, and the pool works", async () => {
  const pool = newPool({
    config: `${QUICK_CONFIG}\ncluster: {servers: ["nats://127.0.0.1:9"], bridge: true}\n`,
  });
  const run = await pool.start();
  pool.drop("t", { exec: ["true"] });
  expect(await pool.result("t")).toMatchObject({ status: "completed" });
  await waitFor(() => run.stderr().includes("the bridge has ended (exit code"), {
    what: "the end of the bridge",
  });
  expect(run.stderr()).toContain("the packages for NATS cannot be loaded");
  pool.drop("u", { exec: ["true"] });
  expect(await pool.result("u")).toMatchObject({ status: "completed" });
});
