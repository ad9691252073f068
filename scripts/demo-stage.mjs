/** What a demo plays on: a temporary state tree with its supervisor, its lines on the screen, and an end that leaves no process behind. */
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const LAUNCHER = here("bin/mailchute.js");
/** Git takes no settings of this machine, and asks nothing. */
const GIT = { GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null", GIT_TERMINAL_PROMPT: "0" };

/** A demo keeps the mail and the other state of a user in its own directory. */
export const ownFolders = (root) => ({
  XDG_STATE_HOME: join(root, "xdg"),
  XDG_DATA_HOME: join(root, "xdg"),
});

export const read = (path) => {
  try {
    return fs.readFileSync(path, "utf8");
  } catch {
    return "";
  }
};
export const json = (path) => {
  try {
    return JSON.parse(read(path));
  } catch {
    return undefined;
  }
};
/** The objects of a journal. A full disk or a kill may leave an incomplete line. */
export const lines = (path) =>
  read(path)
    .split("\n")
    .slice(0, -1)
    .flatMap((line) => {
      try {
        return [JSON.parse(line)];
      } catch {
        return [];
      }
    });

export class Stage {
  supervisor;
  startedMs = Date.now();

  /** @param name of the temporary directory. @param limitMs by then it must be over */
  constructor(name, { limitMs, keep }) {
    this.root = fs.realpathSync(fs.mkdtempSync(join(os.tmpdir(), `mailchute-${name}-`)));
    this.state = join(this.root, "state");
    this.mailbox = join(this.state, "mailbox");
    this.limitMs = limitMs;
    for (const dir of [this.state, this.mailbox, join(this.mailbox, "inbox")])
      fs.mkdirSync(dir, { mode: 0o700 });
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
      process.on(signal, () => process.exit(130));
    process.on("exit", () => {
      this.killAll();
      if (!keep) fs.rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
    });
  }

  environment() {
    const ours = Object.entries(process.env).filter(
      ([name]) => !/^(?:MAILCHUTE|DROVER|GIT)_/.test(name),
    );
    return { ...Object.fromEntries(ours), ...GIT, ...ownFolders(this.root) };
  }

  /** A command of mailchute for this tree: the program and its arguments. */
  command(...args) {
    return [process.execPath, LAUNCHER, ...args, "--state", this.state];
  }

  start() {
    const log = fs.openSync(join(this.root, "supervisor.log"), "a");
    const [program, ...args] = this.command("run");
    this.supervisor = spawn(program, args, {
      cwd: this.root,
      env: this.environment(),
      stdio: ["ignore", log, log],
      detached: true,
    });
    fs.closeSync(log);
  }

  /** @returns what a program printed. It throws when it fails */
  run(program, args, cwd = this.root) {
    const end = spawnSync(program, args, { cwd, env: this.environment(), encoding: "utf8" });
    if (end.status === 0) return end.stdout;
    throw new Error(`${program} ${args.join(" ")}: ${end.stderr || end.stdout || end.error}`);
  }

  mailchute(...args) {
    const [program, ...rest] = this.command(...args);
    return this.run(program, rest);
  }

  /** Waits until `look` finds something, and calls `hear` again and again. */
  async until(what, look, hear = () => {}) {
    for (;;) {
      hear();
      const found = look();
      if (found) return found;
      if (Date.now() - this.startedMs > this.limitMs)
        throw new Error(`${what} did not happen in time`);
      if (this.supervisor.exitCode !== null && what !== "the end")
        throw new Error(
          `the supervisor ended before ${what}:\n${read(join(this.root, "supervisor.log"))}`,
        );
      await wait(50);
    }
  }

  async stop(hear) {
    this.supervisor.kill("SIGTERM");
    const hasEnded = () => this.supervisor.exitCode !== null || this.supervisor.signalCode !== null;
    await this.until("the end", hasEnded, hear);
  }

  recordOf(id) {
    return (
      json(join(this.mailbox, "outbox", `${id}_result.json`)) ??
      json(join(this.mailbox, "failed", `${id}_error.json`))
    );
  }

  events() {
    return lines(join(this.state, "analytics", "supervisor_lifecycle.jsonl"));
  }

  /** What waits or runs. */
  inFlight() {
    return ["inbox", "processing"].flatMap((tray) =>
      fs.readdirSync(join(this.mailbox, tray)).filter((name) => name.endsWith(".json")),
    );
  }

  /** Pids of living processes that carry the name of this tree in their environment. */
  pids() {
    if (!fs.existsSync("/proc/self/environ")) return [];
    return fs
      .readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .filter((pid) => read(`/proc/${pid}/environ`).includes(this.root))
      .map(Number);
  }

  /** SIGKILL for all that belongs to it, until nothing is left. */
  killAll() {
    for (let round = 0; round < 50; round++) {
      const pids = this.pids();
      if (pids.length === 0 && round > 0) return;
      for (const pid of [this.supervisor?.pid, ...pids])
        try {
          if (pid !== undefined) process.kill(pid, "SIGKILL");
        } catch {
          // It has just ended.
        }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }

  paint(code, text) {
    return process.stdout.isTTY ? `\u001b[${code}m${text}\u001b[0m` : text;
  }

  bold(text) {
    console.log(this.paint(1, text));
  }

  say(text) {
    console.log(`   ${text}`);
  }

  tell(subject, text, colour = 32) {
    const seconds = ((Date.now() - this.startedMs) / 1000).toFixed(1).padStart(5);
    console.log(`${seconds} s  ${subject.padEnd(9)} ${this.paint(colour, text)}`);
  }

  /** Prints each count. @param counts name, expected, found. @returns how many are wrong */
  check(counts) {
    let wrong = 0;
    for (const [name, expected, found] of counts) {
      const isRight = expected === found;
      if (!isRight) wrong++;
      const mark = isRight ? this.paint(32, "ok ") : this.paint(31, "OFF");
      this.say(
        `${mark} ${String(found).padStart(3)}  ${name}${isRight ? "" : `, expected ${expected}`}`,
      );
    }
    return wrong;
  }
}
