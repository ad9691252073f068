/** A real pool by the built command line, on a state tree of its own, and what its journals say afterwards. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runProgram, stopProcess, until } from "./processes.mjs";

export const LAUNCHER = fileURLToPath(new URL("../bin/mailchute.js", import.meta.url));
/** 600 bytes, as every contestant gets them. */
export const BODY = JSON.stringify({ prompt: "x".repeat(572), created_at: 1 });
export const PROMPT = "x".repeat(572);
const WARM_TASKS = 8;
const NO_OP = "export default () => null;\n";

export class Pool {
  /**
   * @param dir an empty directory
   * @param settings of config.yaml, as an object; `handler` is the source of the module agent that runs everything, `launcher` the
   * command line of the checkout that is measured
   */
  constructor(dir, { handler = NO_OP, launcher = LAUNCHER, ...settings } = {}) {
    this.launcher = launcher;
    this.state = join(dir, "state");
    this.inbox = join(this.state, "mailbox", "inbox");
    this.stagingDir = join(dir, "staging");
    this.eventsPath = join(this.state, "analytics", "supervisor_lifecycle.jsonl");
    fs.mkdirSync(this.inbox, { recursive: true, mode: 0o700 });
    fs.mkdirSync(this.stagingDir);
    const module = join(dir, "handler.mjs");
    fs.writeFileSync(module, handler);
    const agents = [{ name: "bench", kind: "module", module, default: true }];
    const config = { durability: "process", processes: 2, workers: 16, ...settings, agents };
    // JSON is YAML.
    fs.writeFileSync(join(this.state, "config.yaml"), `${JSON.stringify(config, null, 2)}\n`);
  }

  /** Puts many files in, each by rename: a pool that runs sees none of them half written. */
  fill(count, body = BODY, prefix = "t") {
    const staged = join(this.stagingDir, "next");
    for (let i = 0; i < count; i++) {
      fs.writeFileSync(staged, body);
      fs.renameSync(staged, join(this.inbox, `${prefix}${i}.json`));
    }
  }

  /** Puts one file in by rename, whole from the start. @returns process.hrtime just before the rename (ns) */
  drop(id, task) {
    const staged = join(this.stagingDir, `${id}.json`);
    fs.writeFileSync(staged, JSON.stringify(task));
    const droppedNs = process.hrtime.bigint();
    fs.renameSync(staged, join(this.inbox, `${id}.json`));
    return droppedNs;
  }

  /** Drops a command as any program would. @returns epoch ms just before its file appeared */
  send(name, command, args) {
    const staged = join(this.stagingDir, name);
    fs.writeFileSync(staged, JSON.stringify({ command, args }));
    const t = performance.timeOrigin + performance.now();
    fs.renameSync(staged, join(this.state, "control", "inbox", `${name}.json`));
    return t;
  }

  /** Starts `run` and returns at once. */
  start(args = []) {
    this.startedAtMs = performance.timeOrigin + performance.now();
    this.child = spawn(
      process.execPath,
      [this.launcher, "run", "--state", this.state, "--no-live", ...args],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    this.child.stderr.setEncoding("utf8").on("data", (text) => {
      // What it says to every SIGTERM.
      if (!text.includes("stopping:")) process.stderr.write(text);
    });
  }

  async stop(signal = "SIGTERM") {
    if (this.child !== undefined) await stopProcess(this.child, signal);
  }

  /** Starts, and waits until a few tasks have gone through. */
  async startWarm(args = []) {
    this.start(args);
    for (let i = 0; i < WARM_TASKS; i++) this.drop(`warm-${i}`, { title: "warm", prompt: "warm" });
    const isWarm = () =>
      this.events().filter(({ event }) => event === "completed").length >= WARM_TASKS;
    try {
      await until(isWarm, "a warm pool", { everyMs: 20 });
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Waits until so many worker processes have ever been ready. */
  async workersReady(count) {
    const readyCount = () =>
      fs.readFileSync(this.eventsPath, "utf8").split('\n{"event":"worker_started"').length - 1;
    await until(() => readyCount() >= count, `${count} worker processes`, { everyMs: 20 });
  }

  /**
   * Runs all that waits to its end.
   * @returns tasks/s by the journal, and by the wall, start of the program included
   * @throws Error when other than `expected` tasks have ended
   */
  async drain(expected) {
    const args = [this.launcher, "run", "--state", this.state, "--no-live", "--drain"];
    const { wallS } = await runProgram(process.execPath, args);
    const { count, spanS } = this.span();
    if (count !== expected) throw new Error(`${count} of ${expected} tasks have ended`);
    return { rate: count / spanS, wall_rate: count / wallS };
  }

  /** From the first `started` to the last `completed`, by the journals. */
  span() {
    let firstMs = Number.POSITIVE_INFINITY;
    let lastMs = 0;
    let count = 0;
    for (const { event, t } of this.events()) {
      if (event === "started") firstMs = Math.min(firstMs, t);
      if (event !== "completed") continue;
      lastMs = Math.max(lastMs, t);
      count++;
    }
    return { count, spanS: (lastMs - firstMs) / 1000 };
  }

  /** All events so far, in their order over all parts of the journal: `event`, `t` (epoch ms), `task_id`. */
  events() {
    const dir = join(this.state, "analytics");
    if (!fs.existsSync(dir)) return [];
    return fs
      .readdirSync(dir)
      .filter((name) => name.startsWith("supervisor_lifecycle"))
      .flatMap((name) => eventsIn(fs.readFileSync(join(dir, name), "utf8")));
  }

  /** Whether nothing waits or runs: two short looks, however much there was. */
  isEmpty() {
    return [this.inbox, join(this.state, "mailbox", "processing")].every((path) => {
      const dir = fs.opendirSync(path);
      const entry = dir.readSync();
      dir.closeSync();
      return entry === null;
    });
  }

  /** Reads only what is new since its last call, also past a rotation of the journal. */
  follow() {
    this.followed ??= { fd: undefined, offset: 0, rest: "" };
    const { followed } = this;
    if (followed.fd === undefined) {
      if (!fs.existsSync(this.eventsPath)) return [];
      followed.fd = fs.openSync(this.eventsPath, "r");
    }
    const { size, ino } = fs.fstatSync(followed.fd);
    const buffer = Buffer.alloc(size - followed.offset);
    fs.readSync(followed.fd, buffer, 0, buffer.length, followed.offset);
    followed.offset += buffer.length;
    // Writers go on in a file that was rotated away for a second.
    const there = fs.statSync(this.eventsPath, { throwIfNoEntry: false });
    if (buffer.length === 0 && there?.ino !== ino) {
      fs.closeSync(followed.fd);
      this.followed = undefined;
      return this.follow();
    }
    const text = followed.rest + buffer.toString("utf8");
    const end = text.lastIndexOf("\n") + 1;
    followed.rest = text.slice(end);
    return eventsIn(text.slice(0, end));
  }
}

/** Far faster than JSON.parse, over millions of lines. */
const EVENT = /^\{"event":"(started|completed)","task_id":"([^"]*)".*?"t":(\d+)/gm;

function eventsIn(text) {
  const events = [];
  for (const [, event, task_id, t] of text.matchAll(EVENT))
    events.push({ event, task_id, t: Number(t) });
  return events;
}
