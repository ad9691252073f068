/** Who lives, as `ps` tells it: with the real one, and with one that fails. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";
import { makePsSource } from "../../../src/host/processes/ps-source.ts";
import { runTable } from "../../../src/host/processes/run-ps.ts";
import { waitFor } from "../../support/wait-for.ts";

function start(program: string, args: string[], env?: Record<string, string>) {
  const child = spawn(program, args, { stdio: "ignore", detached: true, ...(env && { env }) });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child as ChildProcess & { pid: number };
}

/** Counts how often the real `ps` is run. */
function counted(): { source: ReturnType<typeof makePsSource>; runs: () => number } {
  let runs = 0;
  const source = makePsSource(() => {
    runs += 1;
    return runTable();
  });
  return { source, runs: () => runs };
}

describe("the real ps", () => {
  it("lists this process and its child, with what the child was started with", async () => {
    const { source } = counted();
    const lease = `MAILCHUTE_LEASE=test.${process.pid}.listed`;
    const env = { A: "1", B: "two words", MAILCHUTE_LEASE: lease.slice(16) };
    const { pid } = start("/bin/sleep", ["60"], env);
    const look = await waitFor(
      () => {
        const now = source.look();
        return now.nameOf(pid) === "sleep" ? now : undefined;
      },
      { what: "the program to begin" },
    );
    expect(look.rows.find((row) => row.pid === process.pid)?.parent).toBe(process.ppid);
    expect(look.rows.find((row) => row.pid === pid)).toMatchObject({
      parent: process.pid,
      group: pid,
    });
    expect(look.environ(pid)?.toString()).toBe(`A=1\0B=two words\0${lease}\0`);
    expect(look.argsOf(pid)).toMatch(/^\/bin\/sleep\x0060\0/);
  });

  it("a process lives while it runs, and is dead when it has ended or never began", async () => {
    const { source } = counted();
    const child = start("/bin/sleep", ["60"]);
    const began = source.startOf(child.pid) ?? 0;
    expect(Math.abs(Date.now() / 1000 - began)).toBeLessThan(30);
    expect(source.judge(child.pid, began)).toBe("alive");
    // The clock may have been adjusted by a second. Another second is that of another process.
    expect(source.judge(child.pid, began - 1)).toBe("alive");
    expect(source.judge(child.pid, began - 2)).toBe("dead");
    expect(source.judge(2 ** 22 + 1, began)).toBe("dead");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(source.judge(child.pid, began)).toBe("dead");
    expect(source.startOf(child.pid)).toBeUndefined();
  });

  it("a zombie is dead", async () => {
    const { source } = counted();
    // The shell becomes a sleep that never asks how its child ended.
    const child = start("/bin/sh", ["-c", "sleep 0.01 & exec sleep 60"]);
    const zombie = await waitFor(
      () => {
        const line = runTable()
          .text.split("\n")
          .find((one) => new RegExp(`^\\s*\\d+\\s+${child.pid}\\s+\\d+\\s+Z`).test(one));
        return line === undefined ? undefined : Number.parseInt(line, 10);
      },
      { what: "a zombie" },
    );
    expect(source.startOf(zombie)).toBeUndefined();
    expect(source.judge(zombie, Math.floor(Date.now() / 1000))).toBe("dead");
    expect(source.look().rows.map(({ pid }) => pid)).not.toContain(zombie);
  });

  it("is not run for a process that was just seen, and not for a pid that is free", () => {
    const { source, runs } = counted();
    const began = source.startOf(process.pid) ?? 0;
    expect(runs()).toBe(1);
    for (let n = 0; n < 100; n++) expect(source.judge(process.pid, began)).toBe("alive");
    expect(source.judge(2 ** 22 + 1, began)).toBe("dead");
    expect(runs()).toBe(1);
    // A process that began after the look is not dead because of it.
    const { pid } = start("/bin/sleep", ["60"]);
    expect(source.judge(pid, Math.floor(Date.now() / 1000))).toBe("alive");
    expect(runs()).toBe(2);
  });
});

describe("a ps that fails", () => {
  it.each([
    ["cannot be started", undefined],
    ["prints something else", "PID   USER     TIME  COMMAND\n"],
    ["leaves out this process", "    1     0     1 Ss   Mon Nov  2 08:01:59 2026\n"],
    ["prints nothing", ""],
  ])("and %s, leaves it open who lives", (_, text) => {
    const source = makePsSource(() => {
      if (text === undefined) throw Object.assign(new Error("made up"), { code: "EAGAIN" });
      return { text, pid: 0 };
    });
    expect(source.judge(process.pid, 1)).toBe("unknown");
    expect(() => source.startOf(process.pid)).toThrow();
    expect(() => source.look()).toThrow();
    // A free pid needs no list.
    expect(source.judge(2 ** 22 + 1, 1)).toBe("dead");
  });
});
