/** Ending an attempt: whatever it started and however that hid, nothing is left; and nobody else is touched. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { startTicksOf } from "../../src/host/identity.ts";
import { endTree, findTree, LEASE_VARIABLE } from "../../src/host/process-tree.ts";
import { onProc } from "../support/needs-proc.ts";
import { type Program, startProgram } from "../support/programs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";

interface Family {
  lease: string;
  program: Program;
  rootPid: number;
  /** pids by role, as the processes themselves wrote them down. */
  pids: Record<string, number>;
}

let leases = 0;

/** Starts a program that writes the pids of its processes to files, and waits until all of `roles` are there. */
async function startFamily(name: string, roles: readonly string[]): Promise<Family> {
  const dir = tempDir();
  leases += 1;
  const lease = `test.${process.pid}.${leases}`;
  const program = startProgram(name, [dir], { env: { [LEASE_VARIABLE]: lease }, detached: true });
  const rootPid = program.child.pid ?? 0;
  const pids: Record<string, number> = {};
  const started = new Map<number, number | undefined>();
  onTestFinished(() => {
    for (const [pid, ticks] of started)
      if (ticks !== undefined && startTicksOf(pid) === ticks) process.kill(pid, "SIGKILL");
  });
  for (const role of roles) {
    const path = join(dir, role);
    const text = await waitFor(
      () =>
        fs.existsSync(path) &&
        /^\d+\n$/.test(fs.readFileSync(path, "utf8")) &&
        fs.readFileSync(path, "utf8"),
      {
        what: `${name} to start its ${role}: ${program.stderr()}`,
      },
    );
    const pid = Number(text);
    pids[role] = pid;
    started.set(pid, startTicksOf(pid));
  }
  return { lease, program, rootPid, pids };
}

const isRunning = (pid: number): boolean => startTicksOf(pid) !== undefined;
const running = (family: Family): string[] =>
  Object.keys(family.pids).filter((role) => isRunning(family.pids[role] ?? 0));

describe("the tree of an attempt", () => {
  it.each([
    ["has-grandchild.sh", ["root", "child", "grandchild"]],
    ["leaves-session.sh", ["root", "elsewhere"]],
    ["cleans-environment.sh", ["root", "stranger"]],
  ])("of %s holds all its processes, found by the lease alone", async (name, roles) => {
    const family = await startFamily(name, roles);
    expect(findTree(family.lease)).toEqual(expect.arrayContaining(Object.values(family.pids)));
    expect(findTree(family.lease, family.rootPid)).toEqual(
      expect.arrayContaining(Object.values(family.pids)),
    );
    expect(await endTree(family.lease, 0, family.rootPid)).toBe(0);
    expect(running(family)).toEqual([]);
  });

  it("holds nobody else: not us, not another attempt, not one whose lease begins with the same text", async () => {
    const ours = await startFamily("ignores-sigterm.sh", ["root"]);
    const other = await startFamily("ignores-sigterm.sh", ["root"]);
    const longer = spawn("sleep", ["60"], {
      stdio: "ignore",
      env: {
        ...process.env,
        [LEASE_VARIABLE]: `${ours.lease}0`,
        X: `${LEASE_VARIABLE}=${ours.lease}`,
      },
    });
    onTestFinished(() => {
      longer.kill("SIGKILL");
    });
    await waitFor(
      () => fs.readFileSync(`/proc/${longer.pid}/cmdline`, "utf8").startsWith("sleep"),
      { what: "the bystander" },
    );
    expect(findTree(ours.lease)).toEqual([ours.pids["root"]]);
    expect(await endTree(ours.lease, 50, ours.rootPid)).toBe(0);
    expect(running(ours)).toEqual([]);
    expect(running(other)).toEqual(["root"]);
    expect(isRunning(longer.pid ?? 0)).toBe(true);
    expect(await endTree(other.lease, 0)).toBe(0);
  });

  onProc(
    "is ended when the system can tell again what is there, and not taken for ended before",
    async () => {
      const family = await startFamily("has-grandchild.sh", ["root", "child", "grandchild"]);
      let looks = 0;
      const look = vi.spyOn(fs, "readFileSync").mockImplementation(() => {
        looks += 1;
        throw Object.assign(new Error("made up"), { code: "ENFILE" });
      });
      onTestFinished(() => look.mockRestore());
      let isEnded = false;
      const ended = endTree(family.lease, 0).finally(() => {
        isEnded = true;
      });
      await waitFor(() => looks >= 3, { what: "three looks in vain" });
      expect(isEnded).toBe(false);
      look.mockRestore();
      expect(running(family)).toEqual(["root", "child", "grandchild"]);
      expect(await ended).toBe(0);
      expect(running(family)).toEqual([]);
    },
  );

  it("is found although another variable holds the same text before the real one", async () => {
    const lease = `test.${process.pid}.twice`;
    const child = spawn("sleep", ["60"], {
      stdio: "ignore",
      env: { X: `${LEASE_VARIABLE}=${lease}`, PATH: process.env["PATH"], [LEASE_VARIABLE]: lease },
    });
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    await waitFor(() => findTree(lease).includes(child.pid ?? 0), {
      what: "the process",
      timeoutMs: 3000,
    });
    expect(await endTree(lease, 0)).toBe(0);
  });

  it("holds what works in its own state tree, and not the same lease in the tree it was copied from", async () => {
    const lease = `test.${process.pid}.copied`;
    const [ours, other] = [tempDir(), tempDir()];
    const startIn = (state: string, taskFile: string): number => {
      const env = {
        [LEASE_VARIABLE]: lease,
        MAILCHUTE_STATE: state,
        MAILCHUTE_TASK_FILE: taskFile,
      };
      const child = spawn("/bin/sleep", ["60"], { stdio: "ignore", env });
      onTestFinished(() => void child.kill("SIGKILL"));
      return child.pid ?? 0;
    };
    const held = [
      startIn(ours, `${ours}/runs/x/task.json`),
      // Our tree was there before it was moved.
      startIn("/nowhere/state", "/nowhere/state/runs/x/task.json"),
      // What it starts may speak to another tree.
      startIn(other, `${ours}/runs/x/task.json`),
    ];
    const copied = startIn(other, `${other}/runs/x/task.json`);
    const inOrder = (pids: readonly number[]): number[] => [...pids].sort((a, b) => a - b);
    await waitFor(() => findTree(lease).length === 4, { what: "all four" });
    expect(inOrder(findTree(lease, undefined, undefined, ours))).toEqual(inOrder(held));
    expect(await endTree(lease, 0, undefined, ours)).toBe(0);
    expect(findTree(lease)).toEqual([copied]);
  });

  it("that is gone already, or never was, takes no time to end", async () => {
    const from = performance.now();
    expect(findTree("no.such.lease")).toEqual([]);
    expect(await endTree("no.such.lease", 5000)).toBe(0);
    expect(performance.now() - from).toBeLessThan(timeLimitMs(1000));
  });
});

describe("ending a tree", () => {
  it("asks first: a program that ends at SIGTERM is not killed", async () => {
    const family = await startFamily("has-grandchild.sh", ["root", "child", "grandchild"]);
    const from = performance.now();
    expect(await endTree(family.lease, 10_000, family.rootPid)).toBe(0);
    expect(performance.now() - from).toBeLessThan(5000);
    expect(running(family)).toEqual([]);
    expect(await family.program.ended).toEqual({ exitCode: null, signal: "SIGTERM" });
  });

  it("kills what ignores SIGTERM, after the time it was given and not before", async () => {
    const family = await startFamily("ignores-sigterm.sh", ["root"]);
    const from = performance.now();
    expect(await endTree(family.lease, 300, family.rootPid)).toBe(0);
    expect(performance.now() - from).toBeGreaterThanOrEqual(300);
    expect(running(family)).toEqual([]);
    expect(await family.program.ended).toEqual({ exitCode: null, signal: "SIGKILL" });
  });

  it("kills at once when there is no time to give", async () => {
    const family = await startFamily("has-grandchild.sh", ["root", "child", "grandchild"]);
    expect(await endTree(family.lease, 0, family.rootPid)).toBe(0);
    expect(running(family)).toEqual([]);
    expect(await family.program.ended).toEqual({ exitCode: null, signal: "SIGKILL" });
  });

  it("reaches a child in a session of its own, which killing the group would miss", async () => {
    const family = await startFamily("leaves-session.sh", ["root", "elsewhere"]);
    process.kill(-family.rootPid, "SIGKILL");
    await waitFor(() => !isRunning(family.rootPid), { what: "the group to end" });
    expect(running(family)).toEqual(["elsewhere"]);
    expect(await endTree(family.lease, 100, family.rootPid)).toBe(0);
    expect(running(family)).toEqual([]);
  });

  it("reaches a daemon that forked twice and ignores SIGTERM, after its parents ended", async () => {
    const family = await startFamily("double-forks.sh", ["root", "daemon"]);
    await family.program.ended;
    expect(running(family)).toEqual(["daemon"]);
    expect(await endTree(family.lease, 100)).toBe(0);
    expect(running(family)).toEqual([]);
  });

  it("reaches a child without our variables and with a session of its own, although its parent ends first", async () => {
    const family = await startFamily("cleans-environment.sh", ["root", "stranger"]);
    expect(await endTree(family.lease, 300, family.rootPid)).toBe(0);
    expect(running(family)).toEqual([]);
  });

  onProc(
    "waits for a program that is just being started, and does not carry its lease yet",
    async () => {
      const go = join(tempDir(), "go");
      const lease = `test.${process.pid}.newborn`;
      // No environment, as between the end of the old program and the start of the new one.
      const script = `while [ ! -e ${go} ]; do :; done; ${LEASE_VARIABLE}=${lease} exec sleep 600`;
      const program = spawn("/bin/sh", ["-c", script], { env: {}, stdio: "ignore" });
      onTestFinished(() => void program.kill("SIGKILL"));
      const ended = new Promise((resolve) => {
        program.once("exit", (_code, signal) => resolve(signal));
      });
      const ending = endTree(lease, 0);
      // It has looked once, and found nothing that carries the lease.
      fs.writeFileSync(go, "");
      expect(await ending).toBe(0);
      expect(await ended).toBe("SIGKILL");
    },
  );

  it("reaches processes that are stopped", async () => {
    const family = await startFamily("has-grandchild.sh", ["root", "child", "grandchild"]);
    for (const pid of Object.values(family.pids)) process.kill(pid, "SIGSTOP");
    expect(await endTree(family.lease, 100, family.rootPid)).toBe(0);
    expect(running(family)).toEqual([]);
  });
});
