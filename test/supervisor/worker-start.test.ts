/** Starting worker processes: with settings of any size. */
import { expect, it } from "vitest";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";

it("a worker gets settings that are larger than any variable of an environment may be", async () => {
  const names = Array.from({ length: 20_000 }, (_, n) => `VARIABLE_${n}`);
  const env = { VARIABLE_19999: "the last" };
  const pool = newPool({ config: `${QUICK_CONFIG}env_allow: [${names.join(", ")}]\n`, env });
  await pool.start();
  pool.drop("task", { exec: ["printenv", "VARIABLE_19999"] });
  expect((await pool.result("task")).output).toBe("the last\n");
});
