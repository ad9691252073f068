#!/usr/bin/env node
/**
 * `npm run test:nights`: nights of three agents with a list of items, against a service with limits and errors, with kills, reboots, a full
 * disk, conflicts, red checks and a person who answers and commits to the target. Stand-ins play the programs, or the real claude and
 * codex do. The oracle (judge.mjs) reads git and the records, not the report.
 *
 *   npm run test:nights -- [--nights N] [--seed S] [--items N] [--kills N] [--real [--newest] [--meter]] [--book FILE] [--launcher FILE] [--keep] [--json]
 *   node test/nights/table.mjs FILE...
 *
 * With `--meter` the real programs run with a meter, opencode is the third, and the books must name what was charged, but for killed answers.
 * `--book FILE` keeps each result, by the state of the sources, and leaves out nights that stand there: a run that was broken off goes on.
 * table.mjs makes the table of docs/nights.md of it. `--launcher FILE` plays with another build, `bin/mailchute.js` of another commit.
 */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { here, read, Stage } from "../../scripts/demo-stage.mjs";
import { readFlags } from "../../scripts/flags.mjs";
import { drawItems, markerOf, randomOf } from "./items.mjs";
import { judge, TARGET } from "./judge.mjs";
import { openService } from "./service.mjs";

const { values: flags } = readFlags(import.meta.url, {
  options: {
    nights: { type: "string", default: "1" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    items: { type: "string", default: "24" },
    kills: { type: "string", default: "14" },
    limit: { type: "string", default: "360" },
    real: { type: "boolean", default: false },
    newest: { type: "boolean", default: false },
    meter: { type: "boolean", default: false },
    book: { type: "string" },
    launcher: { type: "string" },
    keep: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
/** A full disk needs a file system of its own, and another boot id a mount: both need root. */
const CAN_MOUNT =
  process.getuid?.() === 0 &&
  spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "none", os.tmpdir()]).status === 0;
const DISK_MB = 900;
const FULL_MS = 2500;

/** Where bad nights are copied to, since the file system of the nights goes; undefined: they are where they stay. */
let keptIn;

/** A file system for all that the nights leave, which is small enough to be filled. */
function mountDisk() {
  keptIn = os.tmpdir();
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-nights-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_MB}m`, "tmpfs", dir]);
  process.env.TMPDIR = dir;
  process.on("exit", () => {
    spawnSync("umount", ["--lazy", dir]);
    fs.rmdirSync(dir);
  });
}

/** After a "reboot" its processes see another boot id, as after a real one. */
class NightStage extends Stage {
  boots = 0;

  reboot() {
    this.killAll();
    if (!CAN_MOUNT) return;
    this.boots++;
    const id = `00000000-0000-4000-8000-${String(this.boots).padStart(12, "0")}`;
    fs.writeFileSync(join(this.root, "boot-id"), `${id}\n`);
  }

  command(...args) {
    const [node, launcher, ...rest] = super.command(...args);
    const command = [node, flags.launcher ?? launcher, ...rest];
    if (this.boots === 0) return command;
    const mount = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"';
    return ["unshare", "-m", "sh", "-c", mount, join(this.root, "boot-id"), ...command];
  }
}

/**
 * The tool of an agent, with its shell and its git, and what the check starts. A stand-in says that it is done when its tool was killed,
 * where a model looks at the exit code; and a check whose grep was killed is red.
 */
function isOfItem(pid) {
  const parent = /^PPid:\s*(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1];
  return (
    [pid, parent].some((one) => read(`/proc/${one}/cmdline`).includes("work.mjs")) ||
    read(`/proc/${parent}/cmdline`).includes("check.sh")
  );
}

class Night {
  constructor(seed) {
    this.seed = seed;
    this.random = randomOf(seed);
    this.stage = new NightStage("night", { limitMs: Number(flags.limit) * 1000, keep: flags.keep });
    this.project = join(this.stage.root, "project");
    this.kills = 0;
    this.timesFull = 0;
    this.people = [];
    this.items = drawItems(Number(flags.items), this.random, {
      isReal: flags.real,
      hasLogin: seed % 5 === 0,
    });
  }

  get root() {
    return this.stage.root;
  }

  git(...args) {
    return this.stage.run("git", args, this.project).trim();
  }

  async prepare() {
    const { root, state } = this.stage;
    fs.mkdirSync(this.project);
    this.git("init", "-q", "--initial-branch=main");
    this.git("config", "user.name", "A Person");
    this.git("config", "user.email", "person@example.invalid");
    fs.writeFileSync(join(this.project, "shared.txt"), "The list\n");
    fs.writeFileSync(
      join(this.project, "check.sh"),
      'for f in files/*.txt; do [ ! -e "$f" ] || grep -q "^good" "$f" || { echo "bad: $f"; exit 1; }; done\n! grep -n "^[<>=]\\{7\\}" shared.txt\n',
    );
    this.git("add", ".");
    this.git("commit", "-qm", "first");
    fs.writeFileSync(join(root, "items.json"), JSON.stringify(this.items));
    const { items } = this;
    this.service = await openService({
      root,
      items,
      isReal: flags.real,
      isNewest: flags.newest,
      isMetered: flags.meter,
    });
    const config = {
      workers: 3,
      grace_ms: 500,
      durability: "process",
      retry: { max_attempts: 6, backoff_ms: 100, backoff_max_ms: 500 },
      agents: this.service.agents,
    };
    fs.writeFileSync(join(state, "config.yaml"), JSON.stringify(config), { mode: 0o600 });
  }

  enqueue() {
    for (const item of this.items) {
      const { id, agent, base, kind } = item;
      const work = join(here("test/nights"), "work.mjs");
      const what =
        agent === "eve" && !flags.meter
          ? { exec: [process.execPath, work, this.root] }
          : { agent, prompt: `${markerOf(item)}: do the work of this item.` };
      const task = {
        ...what,
        title: markerOf(item),
        cwd: this.project,
        worktree: "auto",
        land: "merge",
        base,
        verify: kind === "flaky" ? this.flakyCheck(id) : ["sh", "check.sh"],
        ...(kind === "loop" ? { budget: { hard_tokens: 15_000 } } : {}),
        // Without a change its check is red, so that a question goes to a person.
        ...(kind === "question" ? { expect_files: [`files/${id}.txt`] } : {}),
      };
      const staged = join(this.root, `${id}.json`);
      fs.writeFileSync(staged, JSON.stringify(task));
      fs.renameSync(staged, join(this.stage.mailbox, "inbox", `${id}.json`));
    }
  }

  flakyCheck(id) {
    const file = join(this.root, `flaky-${id}`);
    return ["sh", "-c", 'sh check.sh && { [ -e "$0" ] || ! touch "$0"; }', file];
  }

  /** A person commits to the target, which no worktree has checked out. */
  commitAsPerson() {
    const found = spawnSync("git", ["rev-parse", "--verify", "--quiet", TARGET], {
      cwd: this.project,
    });
    if (found.status !== 0) return;
    const tip = found.stdout.toString().trim();
    const n = this.people.length;
    const index = join(this.stage.root, `index${n}`);
    const env = { ...this.stage.environment(), GIT_INDEX_FILE: index };
    const ask = (args, input) =>
      execFileSync("git", args, { cwd: this.project, env, input, encoding: "utf8" }).trim();
    ask(["read-tree", tip]);
    const blob = ask(["hash-object", "-w", "--stdin"], `by a person ${n}\n`);
    ask(["update-index", "--add", "--cacheinfo", `100644,${blob},person-${n}.txt`]);
    const commit = ask(["commit-tree", ask(["write-tree"]), "-p", tip, "-m", `a person ${n}`]);
    const moved = spawnSync("git", ["update-ref", `refs/heads/${TARGET}`, commit, tip], {
      cwd: this.project,
    });
    if (moved.status === 0) this.people.push(`person-${n}.txt`);
  }

  /** A person answers what is asked, and raises the limit of a day, but not that of an item. */
  answerQuestions() {
    const loops = this.items.filter(({ kind }) => kind === "loop");
    const asked = new Set(this.openQuestions());
    for (const name of loops.flatMap((one) => this.questionsOf(one))) asked.delete(name);
    for (const name of asked) {
      const answer = name.startsWith("budget.") ? "yes" : "Blue.";
      this.stage.mailchute("answer", name.slice(0, -3), answer);
    }
  }

  /** A run whose budget is used up waits for a person, who sleeps. */
  isAsked(name) {
    const item = this.items.find((one) => one.kind === "loop" && name.startsWith(one.id));
    return item !== undefined && this.questionsOf(item).length > 0;
  }

  questionsOf({ id }) {
    return this.openQuestions().filter((name) => `.${name}`.includes(`.${id}.`));
  }

  openQuestions() {
    const dir = join(this.stage.state, "questions", "open");
    return (fs.existsSync(dir) ? fs.readdirSync(dir) : []).filter((name) => name.endsWith(".md"));
  }

  isOver() {
    return (
      this.stage.inFlight().every((name) => this.isAsked(name)) &&
      this.items.every(({ id }) => this.isSettled(id))
    );
  }

  async play() {
    const { stage } = this;
    await this.prepare();
    stage.startedMs = Date.now();
    stage.start();
    await stage.until("the start", () => fs.existsSync(join(stage.mailbox, "processing")));
    this.enqueue();
    let nextKillMs = Date.now() + 1500;
    let nextPersonMs = Date.now() + 6000;
    const fullAtMs = Date.now() + 4000 + this.random(8000);
    for (;;) {
      if (this.isOver()) break;
      if (Date.now() - stage.startedMs > stage.limitMs) return this.end(this.tellLate());
      if (this.hasSupervisorEnded()) stage.start();
      if (this.kills < Number(flags.kills) && Date.now() > nextKillMs) {
        this.kill();
        nextKillMs = Date.now() + 400 + this.random(2500);
      }
      if (CAN_MOUNT && !flags.keep && this.timesFull === 0 && Date.now() > fullAtMs)
        await this.fillDisk();
      if (Date.now() > nextPersonMs) {
        if (this.people.length < 3) this.commitAsPerson();
        this.answerQuestions();
        nextPersonMs = Date.now() + 5000;
      }
      await wait(50);
    }
    if (this.hasSupervisorEnded()) stage.start();
    await wait(500);
    await stage.stop();
    return this.end(await judge(this));
  }

  tellLate() {
    const waits = this.items.filter(({ id }) => !this.isSettled(id));
    const log = read(join(this.root, "supervisor.log")).slice(-2000);
    const late = waits.map(({ id, kind }) => `${id} (${kind})`);
    return [`it did not end in time: ${late.join(", ")}`, log];
  }

  isSettled(id) {
    if (this.isAsked(id)) return true;
    const record = this.stage.recordOf(id);
    if (record === undefined) return false;
    if (record.status !== "completed" || record.landing === "nothing") return true;
    return this.stage.recordOf(`${id}.land`) !== undefined;
  }

  hasSupervisorEnded() {
    const { supervisor } = this.stage;
    return supervisor.exitCode !== null || supervisor.signalCode !== null;
  }

  end(wrong) {
    this.service.close();
    return wrong;
  }

  /** One process of the pool, or all of them as a power cut does. */
  kill() {
    this.kills++;
    const drawn = this.random(14);
    if (drawn === 0) return this.stage.reboot();
    if (drawn === 1) return this.stage.killAll();
    const pids = this.stage.pids().filter((one) => flags.real || !isOfItem(one));
    const pid =
      this.random(3) === 0 ? this.stage.supervisor.pid : pids[this.random(pids.length || 1)];
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has just ended.
    }
  }

  /** Nothing can be written for a while. */
  async fillDisk() {
    this.timesFull++;
    const path = join(this.root, "fills-the-disk");
    const fd = fs.openSync(path, "w");
    try {
      for (const block = Buffer.alloc(1 << 20); ; ) fs.writeSync(fd, block);
    } catch {
      // It is full.
    }
    fs.closeSync(fd);
    await wait(FULL_MS);
    fs.rmSync(path, { force: true });
  }
}

/** The state of what is tried, so that a result counts for it alone. */
function sourcesHash() {
  const ask = (...args) => spawnSync("git", args, { cwd: here("."), encoding: "utf8" }).stdout;
  const isChanged = ask("status", "--porcelain", "src") !== "";
  return `${ask("rev-parse", "HEAD:src").slice(0, 12)}${isChanged ? "-changed" : ""}`;
}

async function playNight(seed) {
  const night = new Night(seed);
  let wrong;
  try {
    wrong = await night.play();
  } catch (error) {
    wrong = [`${error.stack}\n${read(join(night.root, "supervisor.log")).slice(-2000)}`];
  }
  night.stage.killAll();
  if (wrong.length > 0 && keptIn !== undefined) {
    const kept = fs.mkdtempSync(join(keptIn, "mailchute-bad-night-"));
    fs.cpSync(night.root, kept, { recursive: true, verbatimSymlinks: true });
    console.error(`kept: ${kept}`);
  }
  if (keptIn !== undefined || (wrong.length === 0 && !flags.keep))
    fs.rmSync(night.root, { recursive: true, force: true, maxRetries: 5 });
  const { kills, can, landed, tips, commits, cost, waiting, timesFull, toLandedS } = night;
  return {
    seed,
    programs: flags.newest ? "newest" : flags.real ? "real" : "stand-ins",
    items: night.items.length,
    can,
    landed,
    tips,
    commits,
    to_landed_s: toLandedS,
    kills,
    reboots: night.stage.boots,
    full_disks: timesFull,
    tokens: cost,
    seconds: Math.round((Date.now() - night.stage.startedMs) / 1000),
    waiting,
    wrong,
  };
}

function tell(row) {
  if (flags.json) return console.log(JSON.stringify(row));
  const { booked } = row.tokens ?? {};
  console.log(
    `night ${row.seed} (${row.programs}): ${row.landed} of ${row.can} that can land have landed (${row.items} items), ` +
      `${row.kills} kills, ${row.reboots} reboots, ${row.full_disks} full disks, ${row.tips} tips all green, ` +
      `${(booked?.input ?? 0) + (booked?.output ?? 0)} tokens, ${row.seconds} s${row.wrong.length === 0 ? "" : ": WRONG"}`,
  );
  const isShort = row.wrong.length > 0 || row.landed < row.can;
  for (const one of [...row.wrong, ...(isShort ? (row.waiting ?? []) : [])])
    console.log(`   ${one}`);
}

const hash = sourcesHash();
const book = flags.book === undefined ? [] : read(flags.book).split("\n").filter(Boolean);
const rows = book.map((line) => JSON.parse(line)).filter((one) => one.sources === hash);
if (CAN_MOUNT && !flags.keep) mountDisk();
// Each stage listens to the end of this process.
process.setMaxListeners(0);
let bad = 0;
for (let n = 0; n < Number(flags.nights); n++) {
  const seed = Number(flags.seed) + n;
  const programs = flags.newest ? "newest" : flags.real ? "real" : "stand-ins";
  const known = rows.find((one) => one.seed === seed && one.programs === programs);
  const row = known ?? (await playNight(seed));
  tell(row);
  if (known === undefined && flags.book !== undefined)
    fs.appendFileSync(flags.book, `${JSON.stringify({ sources: hash, ...row })}\n`);
  if (row.wrong.length > 0) bad++;
}
console.log(`${Number(flags.nights) - bad} passed, ${bad} failed`);
process.exit(bad === 0 ? 0 : 1);
