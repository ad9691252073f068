/** Starting worker processes: with settings of any size, and when the system refuses. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

it("a worker gets settings that are larger than any variable of an environment may be", async () => {
  const names = Array.from({ length: 20_000 }, (_, n) => `VARIABLE_${n}`);
  const env = { VARIABLE_19999: "the last" };
  const pool = newPool({ config: `${QUICK_CONFIG}env_allow: [${names.join(", ")}]\n`, env });
  await pool.start();
  pool.drop("task", { exec: ["printenv", "VARIABLE_19999"] });
  expect((await pool.result("task")).output).toBe("the last\n");
});

it("a worker that the system does not let start is tried again, and told of", async () => {
  const env: Record<string, string> = {};
  const pool = newPool({ config: `${QUICK_CONFIG}processes: 2\n`, env });
  const hook = join(pool.dir, "hook.cjs");
  fs.writeFileSync(
    hook,
    `const child = require("node:child_process");
const { spawn } = child;
// Workers inherit it, and are to start programs.
let count = process.env.MAILCHUTE_WORKER_BOOT === undefined ? 0 : 2;
child.spawn = (...args) => {
  if (count++ < 2) throw Object.assign(new Error("spawn E2BIG"), { code: "E2BIG" });
  return spawn(...args);
};
`,
  );
  env["NODE_OPTIONS"] = `--require=${hook}`;
  const run = await pool.start();
  await waitFor(() => pool.alerts().some((a) => String(a["message"]).includes("cannot start")), {
    what: "an alert",
  });
  pool.drop("task", { exec: ["true"] });
  await pool.result("task");
  await waitFor(() => pool.workers().length === 2, { what: "both workers" });
  expect(run.stderr()).toContain("a worker process cannot start: spawn E2BIG");
  expect(pool.supervisor()?.pid).toBe(run.pid);
});
