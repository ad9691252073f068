/** Who lives: the very same process, not one that has its pid by now, and no judgement about other machines. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  identityOf,
  isGone,
  judge,
  judgeOwner,
  ownerPrefix,
  ownerSequence,
  parseOwner,
  processOf,
  startTicksOf,
  thisPlace,
  thisProcess,
} from "../../src/host/identity.ts";
import { onProc } from "../support/needs-proc.ts";
import { waitFor } from "../support/wait-for.ts";

function startSleeper(program = "sleep", args = ["60"]): ChildProcess & { pid: number } {
  const child = spawn(program, args, { stdio: "ignore" });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  if (child.pid === undefined) throw new Error(`${program} did not start`);
  return child as ChildProcess & { pid: number };
}

/** Replaces the part of a place that stands for host (0), boot (1) or pid namespace (2). */
function elsewhere(part: 0 | 1 | 2): string {
  const place = thisPlace();
  const from = part * 4;
  const other = place.slice(from, from + 4) === "0000" ? "1111" : "0000";
  return place.slice(0, from) + other + place.slice(from + 4);
}

describe("this process", () => {
  it("has an identity that does not change, and lives", () => {
    expect(thisProcess()).toEqual(identityOf(process.pid));
    expect(thisProcess().pid).toBe(process.pid);
    expect(thisProcess().startTicks).toBeGreaterThan(0);
    expect(thisPlace()).toMatch(/^[0-9a-f]{12}$/);
    expect(judge(thisProcess())).toBe("alive");
  });

  it("is named by each of its claims, none of which is named twice", () => {
    const next = ownerSequence();
    const owners = Array.from({ length: 100 }, next);
    expect(new Set(owners).size).toBe(100);
    for (const owner of owners) {
      expect(owner).toMatch(/^[a-z0-9-]+$/);
      expect(owner.startsWith(`${ownerPrefix(thisProcess())}-`)).toBe(true);
      expect(parseOwner(owner)).toEqual(thisProcess());
      expect(judgeOwner(owner)).toBe("alive");
    }
  });
});

describe("an owner string", () => {
  it("is read with and without its counter", () => {
    const identity = { place: thisPlace(), pid: 4194304, startTicks: 123456789012 };
    expect(parseOwner(ownerPrefix(identity))).toEqual(identity);
    expect(parseOwner(ownerSequence(identity)())).toEqual(identity);
  });

  it("shares all but its counter with the others of its process, and nothing with those of another", () => {
    const next = ownerSequence(thisProcess());
    expect(processOf(next())).toBe(processOf(next()));
    const other = { ...thisProcess(), startTicks: thisProcess().startTicks + 1 };
    expect(processOf(ownerSequence(other)())).not.toBe(processOf(next()));
    // Without a counter the start time comes last: it must not be taken for one.
    expect(processOf(ownerPrefix(other))).not.toBe(processOf(ownerPrefix(thisProcess())));
  });

  it("of a program that is not ours says nothing about life", () => {
    for (const owner of [
      "",
      "x",
      "worker-1",
      "0123456789ab",
      "0123456789ab-1",
      "0123456789AB-1-2",
      "0123456789ab-1-2-3-4",
      "0123456789ab-1-2_",
    ]) {
      expect(parseOwner(owner), owner).toBeUndefined();
      expect(judgeOwner(owner)).toBe("unknown");
    }
  });
});

describe("another process", () => {
  it("lives while it runs, and is dead when it ended", async () => {
    const child = startSleeper();
    const identity = identityOf(child.pid);
    expect(identity.startTicks).toBeGreaterThanOrEqual(thisProcess().startTicks);
    expect(judge(identity)).toBe("alive");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(judge(identity)).toBe("dead");
    expect(startTicksOf(child.pid)).toBeUndefined();
  });

  onProc("that the system has no descriptor left to look at is not dead", () => {
    const identity = identityOf(startSleeper().pid);
    const look = vi.spyOn(fs, "readFileSync").mockImplementation(() => {
      throw Object.assign(new Error("made up"), { code: "EMFILE" });
    });
    onTestFinished(() => look.mockRestore());
    expect(judge(identity)).toBe("unknown");
    expect(isGone(identity.pid)).toBe(false);
    look.mockRestore();
    expect(judge(identity)).toBe("alive");
    expect(isGone(identity.pid)).toBe(false);
  });

  it("that is stopped is alive", async () => {
    const child = startSleeper();
    const identity = identityOf(child.pid);
    child.kill("SIGSTOP");
    await waitFor(() => / T /.test(fs.readFileSync(`/proc/${child.pid}/stat`, "utf8")), {
      what: "the stop",
    });
    expect(judge(identity)).toBe("alive");
  });

  it("that is a zombie is dead, although its pid is taken", async () => {
    // The shell becomes a sleep that never asks how its child ended.
    const child = startSleeper("sh", ["-c", "sleep 0.01 & exec sleep 60"]);
    const zombie = await waitFor(
      () =>
        fs.readdirSync("/proc").find((name) => {
          try {
            return (
              /^\d+$/.test(name) &&
              new RegExp(`\\) Z ${child.pid} `).test(fs.readFileSync(`/proc/${name}/stat`, "utf8"))
            );
          } catch {
            return false;
          }
        }),
      { what: "a zombie" },
    );
    expect(fs.existsSync(`/proc/${zombie}`)).toBe(true);
    expect(startTicksOf(Number(zombie))).toBeUndefined();
    expect(judge({ place: thisPlace(), pid: Number(zombie), startTicks: 1 })).toBe("dead");
    expect(judge({ ...identityOf(Number(zombie)) })).toBe("dead");
  });

  onProc("that has the pid of an earlier one does not keep the earlier one alive", () => {
    const child = startSleeper();
    const now = identityOf(child.pid);
    expect(judge({ ...now, startTicks: now.startTicks - 1 })).toBe("dead");
    expect(judge({ ...now, startTicks: now.startTicks + 1 })).toBe("dead");
  });

  it("of an earlier boot is dead, even with a pid and start time that are taken again", () => {
    expect(judge({ ...thisProcess(), place: elsewhere(1) })).toBe("dead");
  });

  it("on another host or in another container cannot be judged, whatever runs here under its pid", () => {
    expect(judge({ ...thisProcess(), place: elsewhere(0) })).toBe("unknown");
    expect(judge({ ...thisProcess(), place: elsewhere(2) })).toBe("unknown");
    const nobody = { pid: 2 ** 22 + 1, startTicks: 1 };
    expect(judge({ ...nobody, place: elsewhere(0) })).toBe("unknown");
    expect(judge({ ...nobody, place: elsewhere(2) })).toBe("unknown");
    expect(judge({ ...nobody, place: thisPlace() })).toBe("dead");
  });

  it("may have any name, even one that looks like the fields that follow it", async () => {
    const child = startSleeper("sh", ["-c", "printf ') Z 1 2 (' > /proc/self/comm; kill -STOP $$"]);
    await waitFor(() => fs.readFileSync(`/proc/${child.pid}/comm`, "utf8").startsWith(") Z"), {
      what: "the name",
    });
    expect(judge(identityOf(child.pid))).toBe("alive");
    expect(startTicksOf(child.pid)).toBeGreaterThanOrEqual(thisProcess().startTicks);
  });
});
