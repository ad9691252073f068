/** A writer of kv that stands still between seeing the old values and replacing them, until others have taken its lock. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { systemClock } from "../../src/host/system-clock.ts";
import { KvStore } from "../../src/kv/store.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const HOOK = fileURLToPath(new URL("../crash/hook.cjs", import.meta.url));

function isStopped(pid: number): boolean {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
}

function valuesOf(pool: Pool): Record<string, unknown> {
  const entries = JSON.parse(fs.readFileSync(join(pool.state, "kv", "a.json"), "utf8")) as Record<
    string,
    { value: unknown }
  >;
  return Object.fromEntries(Object.entries(entries).map(([key, { value }]) => [key, value]));
}

it("puts back what others put meanwhile, and brings nothing back that they removed", async () => {
  const env: Record<string, string> = {};
  const pool = newPool({ env });
  const put = (key: string, value: string): string[] => ["kv", "put", "a", key, value];
  for (const key of ["kept", "gone", "same"])
    expect(await pool.run(put(key, "before"))).toMatchObject({ code: 0 });
  const plan = {
    role: "main",
    root: pool.state,
    act: "stop",
    when: "before",
    at: 1,
    from: "^rename kv/\\.tmp/a\\.json\\.\\d+$",
  };
  Object.assign(env, { NODE_OPTIONS: `--require=${HOOK}`, MAILCHUTE_CRASH: JSON.stringify(plan) });
  const silent = pool.spawn(put("same", "by the silent"));
  for (const key of Object.keys(env)) delete env[key];
  await waitFor(() => isStopped(silent.pid), { what: "the writer to stand still" });
  // The first of them waits until the lock looks dead.
  for (const args of [put("same", "later"), put("new", "later")])
    expect(await pool.run(args)).toMatchObject({ code: 0 });
  const kv = new KvStore(join(pool.state, "kv"), systemClock, "process");
  expect(await kv.remove("a", "gone", { run: null, lease: null, attempt: 0, by: "test" })).toBe(
    true,
  );
  kv.close();
  const expected = { kept: "before", same: "later", new: "later" };
  expect(valuesOf(pool)).toEqual(expected);
  process.kill(silent.pid, "SIGCONT");
  await silent.ended;
  expect(valuesOf(pool)).toEqual(expected);
});
