/** Both journals are what `jq` users expect: each line parses by itself, each finished task has its events and lease. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { steeredConfig, steps, trace } from "../support/steered.ts";
import { waitFor } from "../support/wait-for.ts";

const CONFIG = steeredConfig({ workers: 4, processes: 2 });

function journals(pool: Pool): string[] {
  return [
    join(pool.state, "analytics", "supervisor_lifecycle.jsonl"),
    join(pool.state, "supervisor_leases.jsonl"),
  ];
}

/** What `jq ARGS FILE` prints, as lines. Throws when it fails. */
function jq(args: readonly string[], path: string): string[] {
  const text = execFileSync("jq", [...args, path], {
    maxBuffer: 64 * 1024 * 1024,
    stdio: "pipe",
  }).toString();
  return text.split("\n").filter((line) => line !== "");
}

function hasJq(): boolean {
  try {
    execFileSync("jq", ["--version"], { stdio: "pipe" });
    return true;
  } catch {
    process.stderr.write("\nSKIPPED: tests of the journals need jq\n");
    return false;
  }
}

function lineCount(path: string): number {
  return fs.readFileSync(path, "utf8").split("\n").length - 1;
}

it.skipIf(!hasJq())("jq reads every line of a run of all kinds of ends", async () => {
  const pool = newPool({ config: CONFIG });
  await pool.start();
  const ids: string[] = [];
  const drop = (id: string, task: object): void => {
    ids.push(id);
    pool.drop(id, task);
  };
  for (let n = 0; n < 40; n++) drop(`works-${n}`, steps(pool, { does: "work", ms: n % 7 }));
  for (let n = 0; n < 5; n++) {
    drop(`fails-${n}`, { max_attempts: 2, ...steps(pool, { does: "fail" }) });
    drop(`second-${n}`, steps(pool, { does: "fail", good: 2 }));
    drop(`late-${n}`, {
      timeout_ms: 50,
      max_attempts: 1,
      ...steps(pool, { does: "work", ms: 5000 }),
    });
    drop(`program-${n}`, { exec: ["sh", "-c", `echo 'a "quoted" \\ line\\u0000'; exit ${n % 2}`] });
  }
  // What goes into the journal from outside is long, and full of what JSON must escape.
  drop("speaks", { exec: ["sh", "-c", "printf '\\001\\n\"%20000s' x >&2; exit 64"] });
  await waitFor(() => pool.settledCount() === ids.length, {
    what: `${ids.length} ends`,
  });
  await pool.stop();

  for (const path of journals(pool)) {
    expect(jq(["-c", "-e", "."], path)).toHaveLength(lineCount(path));
    // One write holds a record: appends of several processes do not mix.
    for (const line of fs.readFileSync(path, "utf8").split("\n"))
      expect(Buffer.byteLength(line)).toBeLessThan(16 * 1024);
  }
  const [events = "", leases = ""] = journals(pool);
  // As the README's recipes do it: without the ISO strings, which jq 1.6 cannot read.
  const four = '["selected","assigned","started","completed"]';
  const finished = jq(
    [
      "-s",
      "-r",
      `group_by(.task_id)[] | select(.[0].task_id != "") | select((${four} - map(.event)) == [])
       | select(all(.[]; has("timestamp") and has("agent_id") and (.t|type) == "number"))
       | .[0].task_id`,
    ],
    events,
  );
  expect(finished.sort()).toEqual(ids.toSorted());
  const open = jq(
    [
      "-s",
      "-r",
      'group_by([.lease, .owner])[] | select(map(.status) != ["active","released"]) | .[0].lease',
    ],
    leases,
  );
  expect(open).toEqual([]);
  expect(checkState(pool.state, ids)).toEqual([]);
});

it.skipIf(!hasJq())("jq reads the journals of a run with kills and torn lines", async () => {
  const pool = newPool({ config: CONFIG });
  const ids = Array.from({ length: 60 }, (_, n) => `t-${n}`);
  await pool.start();
  for (const id of ids) pool.drop(id, steps(pool, { does: "work", ms: 30 }));
  await waitFor(() => trace(pool).length > 20, { what: "work to go on" });
  await pool.killAll();
  // The last write of a process that was killed inside it.
  for (const path of journals(pool)) fs.appendFileSync(path, '{"event":"torn","task_id":"t-');
  await pool.start();
  await waitFor(() => pool.settledCount() === ids.length, { what: `${ids.length} records` });
  await pool.stop();

  for (const path of journals(pool)) {
    expect(() => jq(["-c", "."], path)).toThrow();
    const whole = jq(["-R", "-c", "fromjson? | objects"], path);
    expect(whole.length, "all but the torn line").toBe(lineCount(path) - 1);
  }
  expect(checkState(pool.state, ids, { hadCrashes: true })).toEqual([]);
  const metrics = JSON.parse(
    fs.readFileSync(join(pool.state, "analytics", "metrics.json"), "utf8"),
  ) as { tasks: { completed: number }; journal: { bad_lines: number } };
  expect(metrics.tasks.completed).toBe(ids.length);
  expect(metrics.journal.bad_lines).toBe(1);
});
