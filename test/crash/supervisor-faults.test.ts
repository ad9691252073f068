/** What goes wrong around a supervisor: errors of the disk at single calls. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { newPool } from "../support/pool.ts";

const HOOK = fileURLToPath(new URL("hook.cjs", import.meta.url));

it("a task that the disk did not let in once does not count as started", async () => {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ env });
  env["MAILCHUTE_CRASH"] = JSON.stringify({
    role: "main",
    root: pool.state,
    act: "error",
    code: "EIO",
    at: 1,
    from: "^rename mailbox/inbox/task.json",
    report: join(pool.dir, "report"),
  });
  pool.drop("task", { exec: ["true"] });
  const { stderr, code } = await pool.run(["run", "--max-iterations", "1"]);
  expect(stderr).toContain("cannot accept task.json: EIO");
  expect(pool.settledCount()).toBe(1);
  expect(code).toBe(0);
});
