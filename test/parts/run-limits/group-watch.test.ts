/** What the kernel has stopped in the group of a run becomes a failure with a name; and a real group, entered by the shell in front. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, test } from "vitest";
import type { LimitFault, RunLimits } from "../../../src/core/run-limits.ts";
import { type GroupSystem, RunGroup } from "../../../src/host/run-groups.ts";
import { GroupWatch } from "../../../src/parts/run-limits/group-watch.ts";
import { WorkerGroups } from "../../../src/parts/run-limits/worker-groups.ts";
import { wrapProgram } from "../../../src/parts/run-limits/wrap.ts";
import { realGroups } from "../../support/real-groups.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const LIMITS: RunLimits = { memory_bytes: 2 ** 20, processes: 3, cpu_ms: 1000 };

/** A group as files. */
function fakeRun(files: Record<string, string>): RunGroup {
  const group = new RunGroup(tempDir(), "run", { memoryBytes: 2 ** 20, threads: 50 });
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(join(group.dir, name), text);
  return group;
}

it.each([
  ["memory", { "memory.events": "max 9\noom 1\noom_kill 1\n" }],
  ["processes", { "pids.events": "max 2\n" }],
  ["processes", { "cgroup.procs": "1\n2\n3\n4\n" }],
  ["cpu", { "cpu.stat": "usage_usec 900000\n" }],
] as const)("%s", (kind, files) => {
  const watch = new GroupWatch(fakeRun(files), LIMITS, 101);
  expect(watch.look()?.kind).toBe(kind);
});

it("at its limits it may stay", () => {
  const files = {
    "memory.events": "max 9\noom 0\noom_kill 0\n",
    "pids.events": "max 0\n",
    "cgroup.procs": "1\n2\n3\n",
    "cpu.stat": "usage_usec 899000\n",
  };
  const watch = new GroupWatch(fakeRun(files), LIMITS, 101);
  expect(watch.look()).toBeUndefined();
  expect(watch.use).toMatchObject({ processes: 3, cpuMs: 1000 });
});

it("a worker whose pool has not moved makes no groups", () => {
  const mount = tempDir();
  for (const name of ["cgroup.controllers", "cgroup.subtree_control", "cgroup.procs"])
    fs.writeFileSync(join(mount, name), name.endsWith("procs") ? "" : "memory pids\n");
  const system: GroupSystem = { mount, path: "/", pid: 5, ancestors: [] };
  expect(new WorkerGroups(system).make(LIMITS)).toBeUndefined();
  const inside = new WorkerGroups({ ...system, path: "/mailchute-pool" }).make(LIMITS);
  expect(fs.readFileSync(join(inside?.dir ?? "", "memory.max"), "utf8")).toBe("1048576");
  expect(fs.readFileSync(join(inside?.dir ?? "", "pids.max"), "utf8")).toBe("536");
});

test("in a real group: it is entered before the program begins, counted, and ended as one", async ({
  skip,
}) => {
  const base = realGroups();
  if (base === undefined) return skip("no control groups of version 2 that can be written (root)");
  const system = { mount: base, path: "/mailchute-pool", pid: process.pid, ancestors: [] };
  const groups = new WorkerGroups(system, []);
  // Without controllers only what is counted can be limited.
  const group = groups.make({});
  if (group === undefined) throw new Error("no group");
  const script = "i=0; while [ $i -lt 30 ]; do setsid sleep 8 & i=$((i+1)); done; sleep 8";
  const [program = "", ...args] = wrapProgram(
    ["sh", "-c", script],
    { groupFile: group.entry },
    process.env,
  );
  const faults: LimitFault[] = [];
  const watch = new GroupWatch(group, { processes: 20 }, 0);
  const child = spawn(program, args, { stdio: "ignore" });
  watch.start((fault) => faults.push(fault));
  const [, signal] = await once(child, "exit");
  expect(signal).toBe("SIGKILL");
  expect(faults).toMatchObject([{ kind: "processes" }]);
  await waitFor(() => group.read().pids.length === 0, { what: "the end of all of them" });
  groups.remove(group);
  expect(fs.existsSync(group.dir)).toBe(false);
});
