/** Tasks that own files: real programs look for each other, so that two that meet for a moment are seen, whatever dies. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newRepository } from "../support/git-repository.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

/** `$1` is what it does, `$2` where: files of living programs that would meet it are written down in `$RUN.over`. */
const LOOKS = `
others() {
  for f in "$RUN"/*."$2".*; do
    [ "$f" = "$RUN/$1.$2.$$" ] && continue
    grep -q '^State:[[:space:]]*[RSDTtI]' "/proc/\${f##*.}/status" 2>/dev/null || continue
    case "$1 \${f##*/}" in "read read."*) ;; *) echo "$1 $2 $f" >> "$RUN.over" ;; esac
  done
}
touch "$RUN/$1.$2.$$"; others "$@"; sleep 0.05; others "$@"; rm "$RUN/$1.$2.$$"
`;

function start(config = QUICK_CONFIG): { pool: Pool; run: string } {
  const pool = newPool({ config });
  const run = join(pool.dir, "running");
  fs.mkdirSync(run);
  newRepository(join(pool.dir, "repo"));
  fs.mkdirSync(join(pool.dir, "repo", "sub"));
  return { pool, run };
}

test("no two that meet run together while workers and supervisors are killed, and all end", async () => {
  const seed = Date.now() % 1_000_000;
  const random = seededRandom(seed);
  const config = QUICK_CONFIG.replace("workers: 4", "workers: 6\nprocesses: 2");
  const { pool, run } = start(config.replace("max_attempts: 3", "max_attempts: 20"));
  const count = 30;
  for (let n = 0; n < count; n++) {
    const place = ["api", "web"][random.below(2)] as string;
    const does = random.below(3) === 0 ? "write" : "read";
    pool.drop(`t${n}`, {
      exec: ["sh", "-c", LOOKS, "sh", does, place],
      env: { RUN: run },
      // Two ways to name one folder of one repository.
      cwd: random.below(2) === 0 ? "repo" : "repo/sub",
      owns: { [does]: [random.below(2) === 0 ? `src/${place}` : `src/${place}/**`] },
    });
  }
  await pool.start();
  for (let round = 1; round <= 4; round++) {
    await waitFor(() => pool.settledCount() >= 6 * round, { what: `more tasks (seed ${seed})` });
    if (round % 2 === 0) {
      process.kill(pool.supervisor()?.pid ?? 0, "SIGKILL");
      await pool.start();
    } else for (const { pid } of pool.workers().slice(0, 1)) process.kill(pid, "SIGKILL");
  }
  await waitFor(() => pool.settledCount() === count, {
    timeoutMs: 90_000,
    what: `all (seed ${seed})`,
  });
  expect(pool.results()).toHaveLength(count);
  const over = fs.existsSync(`${run}.over`) ? fs.readFileSync(`${run}.over`, "utf8") : "";
  expect(over, `seed ${seed}`).toBe("");
});

test("readers run together, a writer comes between them in its order, and people are told why it waits", async () => {
  const { pool } = start();
  const gate = join(pool.dir, "gate");
  const order = join(pool.dir, "order");
  const waits = `echo $MAILCHUTE_TASK_ID >> ${order}; while [ ! -e ${gate} ]; do sleep 0.1; done`;
  const of = (script: string, owns: object, created: number): object => ({
    exec: ["sh", "-c", script],
    cwd: "repo",
    owns,
    created_at: created,
  });
  const notes = `echo $MAILCHUTE_TASK_ID >> ${order}`;
  pool.drop("reader-1", of(waits, { read: ["src"] }, 1) as never);
  pool.drop("reader-2", of(waits, { read: ["src/api"] }, 2) as never);
  await pool.start();
  await waitFor(
    () => fs.existsSync(order) && fs.readFileSync(order, "utf8").split("\n").length === 3,
    {
      what: "both readers",
    },
  );
  pool.drop("writer", of(notes, { write: ["src/api/x.ts"] }, 3) as never);
  const whyOf = async (id: string): Promise<string> =>
    (await pool.run(["wait", id, "--timeout", "300ms"])).stderr;
  await waitFor(async () => (await whyOf("writer")).includes("files in use: reader-"), {
    what: "the reason of the writer",
  });
  pool.drop("reader-3", of(notes, { read: ["src"] }, 4) as never);
  pool.drop("elsewhere", of(notes, { write: ["docs"] }, 5) as never);
  await pool.result("elsewhere");
  await waitFor(async () => (await whyOf("reader-3")).includes("writer comes first and writes"), {
    what: "the reason of the third reader",
  });
  expect((await pool.run(["show", "writer"])).stdout).toContain("wanted: write src/api/x.ts");
  expect((await pool.run(["status"])).stdout).toContain("files in use: reader-");
  fs.writeFileSync(gate, "");
  await pool.result("reader-3");
  const lines = fs.readFileSync(order, "utf8").trim().split("\n");
  expect(lines.slice(2)).toEqual(["elsewhere", "writer", "reader-3"]);
});

test("tasks of two repositories do not meet, a single pass runs all, and a bad path and a line are refused", async () => {
  const { pool } = start();
  newRepository(join(pool.dir, "other"));
  const meets = `touch ../here.$MAILCHUTE_TASK_ID; i=0; while [ $(ls .. | grep -c here) -lt 2 ]; do sleep 0.02; i=$((i+1)); [ $i -lt 1000 ] || exit 1; done`;
  const exec = ["sh", "-c", meets];
  pool.drop("a", { exec, cwd: "repo", owns: { write: ["**"] } });
  pool.drop("b", { exec, cwd: "other", owns: { write: ["**"] } });
  for (let n = 0; n < 3; n++)
    pool.drop(`c${n}`, { exec: ["true"], cwd: "repo", owns: { write: ["x"] } });
  pool.drop("bad", { exec: ["true"], owns: { write: ["../x"] } });
  const line = JSON.stringify({ exec: ["true"], owns: { write: ["x"] } });
  fs.writeFileSync(join(pool.inbox, "lines.ndjson"), `${line}\n`);
  await pool.run(["run", "--once"]);
  expect(
    pool
      .results()
      .map(({ task_id: id }) => id)
      .sort(),
  ).toEqual(expect.arrayContaining(["a", "b", "c0", "c1", "c2"]));
  expect((await pool.error("bad")).error).toContain('owns.write: "../x": it leaves the repository');
  await pool.start();
  const texts = (): string =>
    [pool.outbox, pool.failed]
      .map((dir) => join(dir, "lines_results.ndjson"))
      .map((path) => (fs.existsSync(path) ? fs.readFileSync(path, "utf8") : ""))
      .join("");
  await waitFor(() => texts().includes("has no owns"), { what: "the results of the lines" });
});

test("without owns the programs do see others that they would meet", async () => {
  const { pool, run } = start();
  const slow = LOOKS.replace("sleep 0.05", "sleep 1");
  for (let n = 0; n < 3; n++)
    pool.drop(`t${n}`, { exec: ["sh", "-c", slow, "sh", "write", "api"], env: { RUN: run } });
  await pool.run(["run", "--once"]);
  expect(fs.readFileSync(`${run}.over`, "utf8")).toContain("write api");
});
