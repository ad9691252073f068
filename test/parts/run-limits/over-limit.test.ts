/** Runs that take more than they may: each is stopped, its record says of what, and its neighbours complete. */
import fs from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { onProc } from "../../support/needs-proc.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";

const MIB = 1024 * 1024;
const NEIGHBOURS = 100;
const node = (script: string): string[] => [process.execPath, "-e", script];
/** Each takes a bounded amount and ends by itself, also when nothing stops it. */
const EATER = node(`const kept = [];
  for (let i = 0; i < 64; i++) kept.push(Buffer.alloc(16 * ${MIB}, 1));
  setTimeout(() => kept.length, 8000);`);
const FORKS = (start: string): string[] => [
  "sh",
  "-c",
  `i=0; while [ $i -lt 250 ]; do ${start} & i=$((i+1)); done; sleep 8`,
];
const BURNER = ["sh", "-c", "i=0; while [ $i -lt 50000000 ]; do i=$((i+1)); done"];

/** The pids of processes that a run of this tree has started, wherever they are now. */
function programsOf(state: string): string[] {
  return fs.readdirSync("/proc").filter((pid) => {
    try {
      return fs.readFileSync(`/proc/${pid}/environ`).includes(`MAILCHUTE_STATE=${state}`);
    } catch {
      return false;
    }
  });
}

onProc(
  "memory, processes, time, disk and output: each stopped and named, 100 neighbours complete",
  async () => {
    const pool = newPool({ config: `${QUICK_CONFIG}workers: 8\n`.replace("workers: 4\n", "") });
    const big = join(pool.dir, "big");
    const bad = {
      memory: { exec: EATER, run_limits: { memory_bytes: 200 * MIB } },
      processes: { exec: FORKS("sleep 8"), run_limits: { processes: 40 } },
      // Those leave the group and their parent at once: only the lease in their environment tells whose they are.
      processes2: {
        exec: FORKS("setsid sh -c 'sleep 8 & sleep 0.1'"),
        run_limits: { processes: 40 },
      },
      cpu: { exec: BURNER, run_limits: { cpu_ms: 400 } },
      disk: {
        exec: ["sh", "-c", `dd if=/dev/zero of=${big} bs=1M count=300; sleep 8`],
        run_limits: { disk_bytes: 20 * MIB },
      },
      output: {
        exec: ["sh", "-c", "yes | head -c 300000000; sleep 8"],
        run_limits: { output_bytes: MIB },
      },
    };
    for (const [id, task] of Object.entries(bad)) pool.drop(id, task);
    for (let i = 0; i < NEIGHBOURS; i++)
      pool.drop(`n-${i}`, {
        exec: ["sh", "-c", "echo fine"],
        ...(i % 2 === 0 ? {} : { run_limits: { memory_bytes: 500 * MIB, processes: 50 } }),
      });
    const { code } = await pool.run(["run", "--drain"]);
    expect(code).toBe(1);
    const errors = Object.fromEntries(pool.errors().map((record) => [record.task_id, record]));
    expect(Object.keys(errors).sort()).toEqual(Object.keys(bad).sort());
    for (const [id, code] of [
      ["memory", "ErrMemoryLimit"],
      ["processes", "ErrProcessLimit"],
      ["processes2", "ErrProcessLimit"],
      ["cpu", "ErrCpuLimit"],
      ["disk", "ErrDiskLimit"],
      ["output", "ErrOutputLimit"],
    ] as const)
      expect(errors[id]).toMatchObject({ kind: id.replace("2", ""), code, attempts: 1 });
    expect(fs.statSync(big).size).toBeLessThan(200 * MIB);
    const results = pool.results();
    expect(results.map(({ output }) => output)).toEqual(Array(NEIGHBOURS).fill("fine\n"));
    expect(results.every(({ attempts }) => attempts === 1)).toBe(true);
    // Nothing of them is left, also not what left its group.
    expect(programsOf(pool.state)).toEqual([]);
  },
);
