/** Where the groups of runs can be, judged on a made-up tree of groups; and, as root on a system of version 2, real groups. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, test } from "vitest";
import {
  enterPoolGroup,
  findGroupPlace,
  type GroupSystem,
  RunGroup,
  removeEmptyGroups,
} from "../../src/host/run-groups.ts";
import { realGroups } from "../support/real-groups.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const isRoot = process.getuid?.() === 0;

/** A group as files; the pool is process 500 in it. */
function fakeGroup(path: string, files: Record<string, string> = {}): GroupSystem {
  const mount = tempDir();
  const dir = join(mount, path);
  fs.mkdirSync(dir, { recursive: true });
  const usual = {
    "cgroup.controllers": "cpu memory pids\n",
    "cgroup.subtree_control": "\n",
    "cgroup.procs": "500\n",
  };
  for (const [name, text] of Object.entries({ ...usual, ...files }))
    fs.writeFileSync(join(dir, name), text);
  return { mount, path, pid: 500, ancestors: [1] };
}

describe("there is a place", () => {
  it("in a group that holds only this pool", () => {
    const system = fakeGroup("/system.slice/mailchute.service");
    const base = join(system.mount ?? "", system.path);
    expect(findGroupPlace(system)).toEqual({ base, isEntered: false });
  });

  it("beside the pool that has moved, in which other processes are its own", () => {
    const system = fakeGroup("/a.service", { "cgroup.subtree_control": "memory pids\n" });
    const base = join(system.mount ?? "", "a.service");
    const inside = { ...system, path: "/a.service/mailchute-pool", pid: 501 };
    expect(findGroupPlace(inside)).toEqual({ base, isEntered: true });
  });

  it("in a container, whose first process has started us", () => {
    const system = fakeGroup("/", { "cgroup.procs": "1\n7\n500\n" });
    const place = { base: system.mount, isEntered: false };
    expect(findGroupPlace({ ...system, ancestors: [7, 1] })).toMatchObject(place);
    expect(findGroupPlace({ ...system, pid: 1, ancestors: [] })).toContain("other processes");
  });
});

it.each([
  ["nothing is mounted", { mount: undefined }, {}, "no control groups of version 2"],
  ["a controller is missing", {}, { "cgroup.controllers": "hugetlb pids" }, "does not have memory"],
  ["both are missing", {}, { "cgroup.controllers": "" }, "does not have memory and pids"],
  ["others stand there", {}, { "cgroup.procs": "500\n7\n" }, "other processes, too (7)"],
  ["a shell stands above us", { ancestors: [7, 1] }, { "cgroup.procs": "7\n500\n" }, "(7)"],
  ["it is not there", { path: "/other" }, {}, "is not to be seen"],
] as const)("no place where %s", (_, system, files, why) => {
  expect(findGroupPlace({ ...fakeGroup("/a", files), ...system })).toContain(why);
});

test.skipIf(isRoot)("no place where the group is not ours", () => {
  const system = fakeGroup("/a");
  fs.chmodSync(join(system.mount ?? "", "a", "cgroup.procs"), 0o444);
  expect(findGroupPlace(system)).toContain("must be delegated");
});

it("the pool moves all of its processes, then hands the controllers on", () => {
  const system = fakeGroup("/a");
  const place = findGroupPlace(system);
  if (typeof place === "string") throw new Error(place);
  enterPoolGroup(place);
  const at = (name: string) => fs.readFileSync(join(place.base, name), "utf8");
  expect(at("mailchute-pool/cgroup.procs")).toBe("500");
  expect(at("cgroup.subtree_control")).toBe("+memory +pids");
});

it("a group of a run has the limits that it was given, and says what the kernel counted", () => {
  const dir = tempDir();
  const group = new RunGroup(dir, "run", { memoryBytes: 1000, threads: 50 });
  const at = (name: string) => fs.readFileSync(join(group.dir, name), "utf8");
  expect([at("memory.max"), at("memory.oom.group"), at("pids.max")]).toEqual(["1000", "1", "50"]);
  expect(group.read()).toEqual({ pids: [], cpuMs: 0, kills: 0, refusals: 0 });
  fs.writeFileSync(
    join(group.dir, "memory.events"),
    "low 0\noom 3\noom_kill 2\noom_group_kill 1\n",
  );
  fs.writeFileSync(join(group.dir, "pids.events"), "max 4\n");
  fs.writeFileSync(join(group.dir, "cpu.stat"), "usage_usec 1500400\nuser_usec 1\n");
  fs.writeFileSync(join(group.dir, "cgroup.procs"), "12\n13\n");
  expect(group.read()).toEqual({ pids: [12, 13], cpuMs: 1500, kills: 2, refusals: 4 });
});

it("groups in which nothing stands go when they are old; others stay", () => {
  const dir = tempDir();
  for (const name of ["run-1", "run-2", "run-3/left", "other"])
    fs.mkdirSync(join(dir, name), { recursive: true });
  removeEmptyGroups(dir, "run-", (one) => !one.endsWith("2"));
  expect(fs.readdirSync(dir).sort()).toEqual(["other", "run-2", "run-3"]);
});

test("a real group counts what entered it, and ends all of it at once", async ({ skip }) => {
  const base = realGroups();
  if (base === undefined) return skip("no control groups of version 2 that can be written (root)");
  const group = new RunGroup(base, "run", { memoryBytes: 0, threads: 0 });
  const script = `echo $$ >${group.entry}; setsid sh -c 'sleep 20 & sleep 20' & exec sh -c 'i=0; while :; do i=$((i+1)); done'`;
  const child = spawn("sh", ["-c", script], { stdio: "ignore" });
  await waitFor(() => group.read().pids.length >= 3 && group.read().cpuMs > 50, {
    what: "its processes and their time",
    timeoutMs: 5000,
  });
  expect(group.remove()).toBe(false);
  group.kill();
  await once(child, "exit");
  await waitFor(() => group.read().pids.length === 0, { what: "the end of all of them" });
  await waitFor(() => group.remove(), { what: "the end of the group" });
  expect(fs.readdirSync(dirname(group.dir)).filter((name) => name === "run")).toEqual([]);
});
