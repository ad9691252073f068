/** What goes wrong around a supervisor: errors of the disk at single calls. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
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

/** Runs one task to its end with one error of the disk. @param from where calls begin to count; @param at which one fails */
async function expectNoHarm(from: string, at: number): Promise<void> {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ env });
  const report = join(pool.dir, "report");
  const plan = { role: "main", root: pool.state, act: "error", code: "EIO", hasReads: true };
  env["MAILCHUTE_CRASH"] = JSON.stringify({ ...plan, from, at, report });
  pool.drop("task", { exec: ["true"] });
  const { stderr, code } = await pool.run(["run", "--drain"]);
  expect(fs.readFileSync(report, "utf8")).toContain('"fault":"EIO"');
  expect(code, stderr).toBe(0);
  expect(checkState(pool.state, ["task"])).toEqual([]);
}

it.each([
  // Twice renamed at its start, where a supervisor that cannot say who it is does not begin.
  ["its own document", "^rename .tmp/supervisor.json", 3],
  ["a listing of what runs", "^readdir mailbox/processing", 1],
  ["a listing of commands", "^readdir control/inbox", 1],
  ["a listing of tasks", "^opendir mailbox/inbox", 1],
  ["a listing of workers", "^readdir workers", 1],
  ["a read of the journal", "^read analytics/supervisor_lifecycle.jsonl", 1],
  ["a line of the journal", "^write analytics/supervisor_lifecycle.jsonl", 1],
  ["the counts", "^rename analytics/.tmp/metrics.json", 1],
])("a supervisor lives on when the disk refuses it %s", async (_what, from, at) => {
  await expectNoHarm(from, at);
});

it.each(Array.from({ length: 12 }, (_, n) => n + 1))(
  "a supervisor whose last worker has ended comes to its end when the disk refuses call %d from there",
  async (at) => {
    await expectNoHarm("^rm workers/", at);
  },
);
