/** The list of children of a process, read again and again through one descriptor. Real processes. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { ProcessChildren } from "../../src/host/process-children.ts";
import { onProc } from "../support/needs-proc.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

/** Starts a shell with so many children. @returns its process, and its children once all are there */
async function withChildren(count: number) {
  const file = join(tempDir(), "pids");
  const script = `for i in $(seq ${count}); do sleep 600 & echo $! >> "$1.new"; done; mv "$1.new" "$1"; wait`;
  const shell = spawn("sh", ["-c", script, "sh", file], { stdio: "ignore", detached: true });
  const pid = shell.pid ?? 0;
  onTestFinished(() => {
    process.kill(-pid, "SIGKILL");
  });
  await waitFor(() => fs.existsSync(file), { what: "all children" });
  return { shell, pid, children: fs.readFileSync(file, "utf8").trim().split("\n").map(Number) };
}

function open(pid: number): ProcessChildren {
  const list = ProcessChildren.open(pid);
  if (list === undefined) throw new Error("no such process");
  onTestFinished(() => list.close());
  return list;
}

onProc("all children are listed, also more than one read of the system holds", async () => {
  const { pid, children } = await withChildren(1100);
  expect(children.join(" ").length).toBeGreaterThan(4096);
  const list = open(pid);
  await waitFor(() => list.read().length === children.length, { what: "the end of mv" });
  expect(list.read()).toEqual(children);
  // The same descriptor shows what has changed since.
  const [first = 0] = children;
  process.kill(first, "SIGKILL");
  await waitFor(() => !list.read().includes(first), { what: "one child less" });
  expect(list.read()).toEqual(children.slice(1));
});

onProc("a process that has ended has no children, and one that never was has no list", async () => {
  const { shell, pid } = await withChildren(1);
  const list = open(pid);
  await waitFor(() => list.read().length === 1, { what: "the end of mv" });
  const ended = new Promise((resolve) => shell.once("exit", resolve));
  process.kill(pid, "SIGKILL");
  await ended;
  expect(list.read()).toEqual([]);
  expect(ProcessChildren.open(pid)).toBeUndefined();
});
