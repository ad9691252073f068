#!/usr/bin/env node
/**
 * laptop.mjs: 100 agents on a laptop, at a quarter of the size: a control group of 2 GiB, a disk of 12.5 GiB, and programs that take 400 MiB
 * each at their peak, in worktrees of 150 MiB: more than the disk holds. First with 1, 2, 4, 8 and 16 slots and no look at memory, then with
 * 100 slots and `free_memory_min`.
 *
 *   --tasks N     how many (default 100)        --slots A,B     the numbers of slots (default 1,2,4,8,16)
 *   --memory MIB  of the group (default 2048)   --step MS       how long each step of a program lasts (default 1500)
 *   --disk MIB    of the disk (default 12800)   --worktree MIB  of each worktree (default 150)
 *
 * Prints a table. Ends with 1 when a process was killed with the look at memory, when a task or a commit is lost, when a task used a second
 * attempt, or when it does less than 0.9 of what the best number of slots does of which nothing was killed. It needs root, loop devices and
 * a memory group that it may make.
 */
import "../../scripts/own-folders.mjs";
import { execFileSync, spawn } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readFlags } from "../../scripts/flags.mjs";

const text = (value) => ({ type: "string", default: value });
const { values } = readFlags(import.meta.url, {
  options: {
    tasks: text("100"),
    slots: text("1,2,4,8,16"),
    memory: text("2048"),
    step: text("1500"),
    disk: text("12800"),
    worktree: text("150"),
  },
});
const MIB = 1024 * 1024;
const TASKS = Number(values.tasks);
/** Of the session and of the tests of a program (MiB), apart from Node itself. */
const [SESSION, TESTS] = [140, 170];
const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
const AGENT = fileURLToPath(new URL("agent.mjs", import.meta.url));
const FILES = 15;
const run = (program, ...args) =>
  execFileSync(program, args, { stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" });

/** A folder on a disk of its own. */
function makeDisk() {
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-laptop-"));
  const image = `${dir}.img`;
  fs.writeFileSync(image, "");
  fs.truncateSync(image, Number(values.disk) * MIB);
  run("mkfs.ext4", "-q", "-m", "0", image);
  run("mount", "-o", "loop", image, dir);
  const remove = () => {
    run("umount", dir);
    fs.rmSync(image);
    fs.rmdirSync(dir);
  };
  return { dir, remove };
}

function makeRepo(dir) {
  const git = (...args) =>
    run("git", "-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", ...args);
  run("git", "init", "-q", "--initial-branch=main", dir);
  const bytes = Buffer.alloc((Number(values.worktree) * MIB) / FILES);
  for (let n = 0; n < FILES; n++) fs.writeFileSync(join(dir, `f${n}`), randomFillSync(bytes));
  git("add", "--all");
  git("commit", "-qm", "first");
  return git;
}

/** A new group with this limit. */
function makeGroup(bytes) {
  const name = `mailchute-laptop-${process.pid}`;
  const isV1 = fs.existsSync("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  const dir = join(isV1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup", name);
  try {
    fs.mkdirSync(dir);
    fs.writeFileSync(join(dir, isV1 ? "memory.limit_in_bytes" : "memory.max"), String(bytes));
  } catch (error) {
    console.error(
      `cannot make a memory group (${error.message}): run this as root, where control groups are mounted`,
    );
    process.exit(2);
  }
  const kills = () => {
    const file = fs.readFileSync(join(dir, isV1 ? "memory.oom_control" : "memory.events"), "utf8");
    return Number(/^oom_kill (\d+)$/m.exec(file)?.[1] ?? 0);
  };
  return { procs: join(dir, "cgroup.procs"), kills, remove: () => fs.rmdirSync(dir) };
}

/** Runs all tasks once, in a group and on a disk of their own. */
async function play(slots, freeMin) {
  const group = makeGroup(Number(values.memory) * MIB);
  const disk = makeDisk();
  try {
    return await playIn(disk.dir, group, slots, freeMin);
  } finally {
    await removed(group);
    disk.remove();
  }
}

async function playIn(root, group, slots, freeMin) {
  const git = makeRepo(join(root, "repo"));
  const state = join(root, "state");
  fs.mkdirSync(join(state, "mailbox", "inbox"), { recursive: true });
  const args = [AGENT, SESSION, TESTS, values.step].map((one) => JSON.stringify(String(one)));
  fs.writeFileSync(
    join(state, "config.yaml"),
    `workers: ${slots}\nprocesses: 2\ndurability: process\nfree_memory_min: ${freeMin}\nagents:\n` +
      `  - {name: coder, kind: exec, program: ${process.execPath}, args: [${args.join()}], usual_memory_bytes: ${512 * MIB}}\n`,
  );
  for (let n = 0; n < TASKS; n++) {
    const task = { agent: "coder", prompt: "work", cwd: "repo", worktree: "auto" };
    fs.writeFileSync(join(state, "mailbox", "inbox", `t${n}.json`), JSON.stringify(task));
  }
  const began = performance.now();
  const script = 'echo $$ > "$1"; shift; exec "$@"';
  const words = [process.execPath, LAUNCHER, "run", "--state", state, "--drain"];
  const child = spawn("sh", ["-c", script, "sh", group.procs, ...words], {
    cwd: root,
    env: { ...process.env, XDG_STATE_HOME: root },
    stdio: ["ignore", "ignore", "inherit"],
  });
  await once(child, "exit");
  const seconds = (performance.now() - began) / 1000;
  const records = (tray) =>
    fs.readdirSync(join(state, "mailbox", tray)).filter((name) => name.endsWith(".json"));
  const done = records("outbox");
  const again = done.filter((name) => {
    const record = JSON.parse(fs.readFileSync(join(state, "mailbox", "outbox", name), "utf8"));
    return record.attempts !== 1;
  });
  const isCommitted = (name) =>
    git("log", "--format=%s", "-1", `mailchute/${name.split("_")[0]}`) === "done\n";
  return {
    slots,
    seconds,
    killed: group.kills(),
    done: done.length,
    failed: records("failed").length,
    again: again.length,
    commits: done.filter(isCommitted).length,
  };
}

/** A group can be removed a moment after its last process has ended. */
async function removed(group) {
  for (let n = 0; ; n++) {
    try {
      group.remove();
      return;
    } catch (error) {
      if (n > 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

const rate = ({ done, seconds }) => (60 * done) / seconds;
const row = (name, end) =>
  console.log(
    `${name.padEnd(22)} ${String(end.killed).padStart(6)} ${String(end.done).padStart(5)} ${String(end.failed).padStart(7)} ${String(end.again).padStart(6)} ${String(end.commits).padStart(8)} ${end.seconds.toFixed(0).padStart(6)} s ${rate(end).toFixed(1).padStart(6)}/min`,
  );

console.log(
  `${TASKS} tasks in ${values.memory} MiB, each up to ${SESSION + TESTS + 90} MiB, worktrees of ${values.worktree} MiB on ${values.disk} MiB`,
);
console.log(`${"slots".padEnd(22)} killed  done  failed  again  commits     time`);
let best = 0;
for (const slots of values.slots.split(",").map(Number)) {
  const end = await play(slots, 0);
  row(String(slots), end);
  if (end.killed === 0 && end.done === TASKS) best = Math.max(best, rate(end));
}
const end = await play(100, 128 * MIB);
row("100, free_memory_min", end);
const share = best > 0 ? rate(end) / best : 1;
console.log(`${share.toFixed(2)} of the best number of slots of which nothing was killed`);
const isWhole = end.done === TASKS && end.commits === TASKS;
const isRight = isWhole && end.killed === 0 && end.again === 0 && share >= 0.9;
process.exitCode = isRight ? 0 : 1;
