#!/usr/bin/env node
/**
 * Checks a client of the mailbox in any language: `node suite.mjs [--only NAME] CLIENT [ARGS…]`. It plays files around the client, and needs
 * no pool. Interface and checks: docs/clients.md. Exit code 0: all checks hold, 1: some do not, 2: the call is wrong.
 */
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** How long a call may take that has nothing to wait for (ms). */
const CALL_MS_MAX = 60_000;
/** How long a client waits that must not find an end (s). */
const SHORT_S = "0.6";
const TASK = { exec: ["printf", "%s", "hello"], payload: { n: 1 } };
const TEXT = 'é ß 漢字 😀 \u2028 \u0007 \\ " /';

/** Each check gets a fresh state tree and throws what does not hold. */
export const CHECKS = {
  "submit makes the file, says so, and leaves nothing staged": async (c) => {
    same(await c.submit("a", TASK), [0, { id: "a", outcome: "submitted" }]);
    holds(c.task("a"), TASK, "inbox/a.json");
    same(c.names(".tmp"), [], "names left in .tmp");
    same(c.names("inbox"), ["a.json"], "names in inbox");
  },
  "submit without an id finds a new one each time": async (c) => {
    const [one, two] = [await c.submit(undefined, TASK), await c.submit(undefined, TASK)];
    for (const [code, { id }] of [one, two]) {
      same(code, 0, "exit code");
      holds(c.task(id), TASK, `inbox/${id}.json`);
    }
    isTrue(one[1].id !== two[1].id, "two tasks got one id");
  },
  "no character of a task is lost": async (c) => {
    const task = { exec: ["echo", TEXT], payload: { [TEXT]: [TEXT, 1.5, null, true, {}] } };
    same((await c.submit("text", task))[0], 0, "exit code");
    holds(c.task("text"), task, "inbox/text.json");
  },
  "the same task may be sent again, while it waits, runs and after its end": async (c) => {
    await c.submit("a", TASK);
    const unchanged = [0, { id: "a", outcome: "unchanged" }];
    same(await c.submit("a", TASK), unchanged, "while it waits");
    c.accept("a");
    same(await c.submit("a", TASK), unchanged, "while it runs");
    c.settle("a", { status: "completed", output: "hello" });
    same(await c.submit("a", TASK), unchanged, "after its end");
    same(c.names("inbox"), [], "names in inbox");
    same(c.names(".tmp"), [], "names left in .tmp");
  },
  "another task under an id in use is refused, and the first one stays": async (c) => {
    const other = { exec: ["false"] };
    const refuse = async (when) => {
      const [code, said] = await c.submit("a", other);
      same([code, said.code], [4, "ErrTaskExists"], when);
    };
    await c.submit("a", TASK);
    const before = fs.readFileSync(c.path("inbox/a.json"));
    await refuse("while it waits");
    isTrue(before.equals(fs.readFileSync(c.path("inbox/a.json"))), "the waiting task was changed");
    c.accept("a");
    await refuse("while it runs");
    c.settle("a", { status: "completed" });
    await refuse("after its end");
    same(c.names("inbox"), [], "names in inbox");
    same(c.names(".tmp"), [], "names left in .tmp");
  },
  "of many that send one id at once exactly one has sent it": async (c) => {
    for (let round = 0; round < 3; round++) {
      const id = `race-${round}`;
      const tasks = Array.from({ length: 6 }, (_, n) => ({
        exec: ["echo", `${n}`.repeat(20_000)],
      }));
      const said = await Promise.all(tasks.map((task) => c.submit(id, task)));
      const won = said.flatMap(([code], n) => (code === 0 ? [n] : []));
      same(won.length, 1, "how many were told that theirs was submitted");
      holds(c.task(id), tasks[won[0]], "the file is not the winner's");
      same(new Set(said.map(([code]) => code)), new Set([0, 4]), "exit codes");
    }
  },
  "bad ids are refused before anything is written": async (c) => {
    const long = "x".repeat(97);
    for (const id of [
      "../a",
      "a/b",
      ".a",
      "-a",
      "a..b",
      "a b",
      "é",
      "con",
      "NUL.x",
      long,
      "a~b",
      "a@b",
      "",
    ]) {
      const [code, said] = await c.submit(id, TASK);
      same([code, said.code], [2, "ErrInvalidTask"], `the id ${JSON.stringify(id)}`);
    }
    same([c.names("inbox"), c.names(".tmp"), c.names(".")], [[], [], c.emptyNames], "files");
    same((await c.submit("x".repeat(96), TASK))[0], 0, "an id of 96 characters");
  },
  "what is no task is refused": async (c) => {
    for (const text of [
      "",
      "[]",
      "{",
      '"a"',
      "{}",
      '{"id":"b","exec":["true"]}',
      '{"exec":["true"]} {}',
    ])
      same((await c.call(["submit", "a"], text))[0], 2, `exit code for ${JSON.stringify(text)}`);
    same([c.names("inbox"), c.names(".tmp")], [[], []], "files");
  },
  "a task is on the disk before it is acknowledged, and is never written in place": async (c) => {
    const calls = await c.traced(["submit", "a"], JSON.stringify(TASK));
    if (calls === undefined) return "skipped: strace is not here";
    checkTrace(calls, c.path("inbox"), c.path(".tmp"), "a.json");
  },
  "a command goes into control/, on the disk before it is acknowledged": async (c) => {
    const control = join(c.state, "control");
    const words = ["command", "cancel", '{"node":"é","final":true}', "--timeout", "0.1"];
    const calls = await c.traced(words, "");
    const [name = ""] = fs.readdirSync(join(control, "inbox"));
    const command = JSON.parse(fs.readFileSync(join(control, "inbox", name), "utf8"));
    holds(command, { command: "cancel", args: { node: "é", final: true } }, "the command");
    same(fs.readdirSync(join(control, ".tmp")), [], "names left in control/.tmp");
    if (calls === undefined) return "skipped in part: strace is not here";
    checkTrace(calls, join(control, "inbox"), join(control, ".tmp"), name);
  },
  "a command gives back what the supervisor did, or its error": async (c) => {
    const calls = [c.call(["command", "pause"]), c.call(["command", "retry", '{"node":"x"}'])];
    const inbox = join(c.state, "control", "inbox");
    await until(() => fs.readdirSync(inbox).length === 2, "two commands");
    for (const name of fs.readdirSync(inbox)) {
      const { id, command } = JSON.parse(fs.readFileSync(join(inbox, name), "utf8"));
      const isGood = command === "pause";
      const record = isGood
        ? { task_id: id, status: "completed", result: { paused: true } }
        : { task_id: id, status: "failed", error: "no such task", code: "ErrTaskNotFound" };
      const tray = isGood ? ["outbox", "_result.json"] : ["failed", "_error.json"];
      c.publish(
        record,
        join(c.state, "control", tray[0], `${id}${tray[1]}`),
        join(c.state, "control"),
      );
      fs.unlinkSync(join(inbox, name));
    }
    same(await calls[0], [0, { result: { paused: true } }]);
    const [code, said] = await calls[1];
    same([code, said.code], [3, "ErrTaskNotFound"]);
  },
  "wait gives the result, with each character of its output": async (c) => {
    await c.submit("a", TASK);
    const wait = c.call(["wait", "a", "--timeout", "10"]);
    await c.pause();
    c.accept("a");
    await c.pause();
    c.settle("a", { status: "completed", output: { text: TEXT, big: "x".repeat(100_000) } });
    const [code, said] = await wait;
    same(code, 0, "exit code");
    same(said, { id: "a", status: "completed", output: { text: TEXT, big: "x".repeat(100_000) } });
  },
  "wait gives the error of a failed task, with exit code 1": async (c) => {
    await c.submit("a", TASK);
    c.accept("a");
    const wait = c.call(["wait", "a", "--timeout", "10"]);
    await c.pause();
    c.settle("a", {
      status: "failed",
      error: "exit code 9",
      code: "ErrExit",
      kind: "exit",
      attempts: 1,
    });
    same(await wait, [1, { id: "a", status: "failed", error: "exit code 9", code: "ErrExit" }]);
    const [code, said] = await c.call(["result", "a"]);
    same([code, said.status, said.code], [0, "failed", "ErrExit"], "result");
  },
  "a record that is not published yet is no end": async (c) => {
    await c.submit("a", TASK);
    const marker = c.accept("a");
    fs.renameSync(marker, marker.replace("~w-", "~ok-"));
    const whole = JSON.stringify({ task_id: "a", status: "completed", output: "early" });
    fs.writeFileSync(c.path(".tmp/a@abcdefgh261126.1.x_result.json.tmp"), whole.slice(0, 40));
    fs.writeFileSync(c.path("outbox/.a_result.json.part"), whole);
    fs.writeFileSync(
      c.path("outbox/aa_result.json"),
      JSON.stringify({ task_id: "aa", status: "completed" }),
    );
    same(await c.call(["wait", "a", "--timeout", SHORT_S]).then(brief), [124, "ErrWaitTimedOut"]);
    same(await c.call(["result", "a"]), [0, { id: "a", status: "open" }]);
  },
  "the record of a task that is being retried is no end": async (c) => {
    c.publish(
      { task_id: "a", status: "failed", error: "old", code: "ErrExit" },
      c.path("failed/a_error.json"),
    );
    fs.writeFileSync(c.path("inbox/a.json"), JSON.stringify({ ...TASK, id: "a" }));
    same(await c.call(["wait", "a", "--timeout", SHORT_S]).then(brief), [124, "ErrWaitTimedOut"]);
    same(await c.call(["result", "a"]), [0, { id: "a", status: "open" }]);
  },
  "a file that was refused gives its reason, and its id is free": async (c) => {
    const refusal = {
      status: "failed",
      error: "bad cwd",
      code: "ErrInvalidTask",
      kind: "invalid",
      attempts: 0,
    };
    c.publish({ task_id: "a", ...refusal, file: "failed/a~x.json" }, c.path("failed/a_error.json"));
    same(await c.call(["wait", "a", "--timeout", "5"]).then(brief), [1, "ErrInvalidTask"]);
    same(await c.submit("a", TASK), [0, { id: "a", outcome: "submitted" }]);
  },
  "an id that no tray has is told at once": async (c) => {
    for (const verb of ["wait", "result"])
      same(await c.call([verb, "nobody"]).then(brief), [3, "ErrTaskNotFound"], verb);
  },
  "list has each task in the list of its state": async (c) => {
    for (const id of ["w", "r", "d", "f"]) await c.submit(id, TASK);
    for (const id of ["r", "d", "f"]) c.accept(id);
    c.settle("d", { status: "completed" });
    c.settle("f", { status: "failed", error: "no", code: "ErrExit" });
    const lists = { waiting: ["w"], running: ["r"], completed: ["d"], failed: ["f"] };
    same(await c.call(["list"]), [0, lists]);
  },
  "without a state tree it says so, and makes none": async (c) => {
    fs.rmSync(c.state, { recursive: true });
    same(await c.submit("a", TASK).then(brief), [73, "ErrMailboxDir"]);
    isTrue(!fs.existsSync(c.state), "it made the state tree");
  },
  "a full or forbidden folder is an error, and nothing was submitted": async (c) => {
    fs.rmdirSync(c.path(".tmp"));
    fs.writeFileSync(c.path(".tmp"), "in the way");
    same(await c.submit("a", TASK).then(brief), [74, "ErrIo"]);
    same(c.names("inbox"), [], "names in inbox");
  },
};

/** The steps that make a file safe, in their order: contents, name, folder. */
function checkTrace(calls, inbox, tmp, name) {
  const target = join(inbox, name);
  const touches = (call, path) => call.paths.includes(path);
  const inPlace = calls.filter(
    ({ what, flags, paths }) =>
      what === "open" && /O_CREAT/.test(flags) && paths[0]?.startsWith(`${inbox}/`),
  );
  same(inPlace.length, 0, "files made in the inbox itself");
  isTrue(
    !calls.some((call) => call.what === "rename" && touches(call, target)),
    "a rename may replace a waiting task: link it",
  );
  const linked = calls.findIndex((call) => call.what === "link" && touches(call, target));
  isTrue(linked !== -1, `no link to ${name}`);
  const staged = calls[linked].paths.find((path) => path !== target);
  isTrue(staged.startsWith(`${tmp}/`), "it was staged outside of .tmp");
  const isSynced = (call, path) => call.what === "fsync" && touches(call, path);
  isTrue(
    calls.slice(0, linked).some((call) => isSynced(call, staged)),
    "no fsync of the file before its link",
  );
  isTrue(
    calls.slice(linked).some((call) => isSynced(call, inbox)),
    "no fsync of the inbox after the link",
  );
  const made = calls.find(
    ({ what, flags, paths }) => what === "open" && /O_CREAT/.test(flags) && paths[0] === staged,
  );
  isTrue(/O_EXCL/.test(made?.flags ?? ""), "the staged file was not made with O_EXCL");
}

/** One client with one fresh state tree. */
class Play {
  constructor(words, dir) {
    this.words = words;
    this.dir = dir;
    this.state = join(dir, "state");
    for (const mailbox of ["mailbox", "control"])
      for (const tray of ["inbox", "processing", "outbox", "failed", ".tmp"])
        makeDir(join(this.state, mailbox, tray));
    this.emptyNames = this.names(".");
  }

  path(name) {
    return join(this.state, "mailbox", name);
  }

  names(tray) {
    return fs.readdirSync(this.path(tray)).sort();
  }

  task(id) {
    return JSON.parse(fs.readFileSync(this.path(`inbox/${id}.json`), "utf8"));
  }

  submit(id, task) {
    return this.call(id === undefined ? ["submit"] : ["submit", id], JSON.stringify(task));
  }

  /** Resolves with the exit code and the object on stdout. */
  async call(words, input = "", prefix = []) {
    const [program, ...rest] = [...prefix, ...this.words, ...words];
    const child = spawn(program, rest, {
      cwd: this.dir,
      env: { ...process.env, MAILCHUTE_STATE: this.state },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const limit = setTimeout(() => child.kill("SIGKILL"), CALL_MS_MAX);
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    const [stdout, stderr, code] = await Promise.all([
      textOf(child.stdout),
      textOf(child.stderr),
      new Promise((resolve, reject) => child.once("error", reject).once("close", resolve)),
    ]);
    clearTimeout(limit);
    const shown = words.map((word) => word.slice(0, 60)).join(" ");
    try {
      const said = JSON.parse(stdout);
      if (typeof said !== "object" || said === null) throw new Error("no object");
      return [code, said];
    } catch {
      const tail = stderr.trim().slice(-300);
      throw new Error(
        `\`${shown}\` printed no JSON object (exit code ${code}): ${stdout.slice(0, 200)} ${tail}`,
      );
    }
  }

  /** What the client asked of the file system; undefined without strace. */
  async traced(words, input) {
    if (spawnSync("strace", ["-V"]).error !== undefined) return undefined;
    const file = join(this.dir, "trace");
    const what =
      "trace=open,openat,creat,link,linkat,rename,renameat,renameat2,fsync,fdatasync,sync,syncfs";
    await this.call(words, input, [
      "strace",
      "-f",
      "-y",
      "-qq",
      "-s",
      "4096",
      "-e",
      what,
      "-o",
      file,
    ]);
    return fs
      .readFileSync(file, "utf8")
      .split("\n")
      .flatMap((line) => readCall(line, this.dir));
  }

  /** Takes the task as a supervisor and a worker do. @returns the claimed file */
  accept(id) {
    const marker = this.path(`processing/${id}@abcdefgh261126.1~w-000000000000-1-1-R1.json`);
    fs.renameSync(this.path(`inbox/${id}.json`), marker);
    return marker;
  }

  /** Settles an accepted task: staged, linked, then its marker goes. */
  settle(id, record) {
    const marker = this.path(`processing/${id}@abcdefgh261126.1~w-000000000000-1-1-R1.json`);
    const task = fs.readFileSync(marker, "utf8").trim();
    const isGood = record.status === "completed";
    const committed = marker.replace("~w-", isGood ? "~ok-" : "~err-");
    fs.renameSync(marker, committed);
    const name = isGood ? `outbox/${id}_result.json` : `failed/${id}_error.json`;
    this.publish({ task_id: id, ...record }, this.path(name), this.path("."), task);
    fs.unlinkSync(committed);
  }

  publish(record, path, mailbox = this.path("."), task = undefined) {
    const head = JSON.stringify(record);
    const text = task === undefined ? head : `${head.slice(0, -1)},"task":${task}}`;
    const staged = join(mailbox, ".tmp", basename(path));
    fs.writeFileSync(staged, `${text}\n`);
    fs.linkSync(staged, path);
    fs.unlinkSync(staged);
  }

  /** Long enough for a client to look at least once. */
  pause() {
    return new Promise((resolve) => setTimeout(resolve, 150));
  }
}

/** A line of strace, as what was asked with which paths. */
function readCall(line, dir) {
  const match = /^\d+\s+(\w+)\((.*)\)\s+= (-?\d+)/.exec(line);
  if (match === null || Number(match[3]) < 0) return [];
  const [, name, args] = match;
  const what = /^(?:open|creat)/.test(name)
    ? "open"
    : /sync/.test(name)
      ? "fsync"
      : name.replace(/at2?$/, "");
  const quoted = [...args.matchAll(/(?:\b(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"/g)].map(
    ([, base, path]) => (path.startsWith("/") ? path : join(base ?? dir, path)),
  );
  const described = [...args.matchAll(/\b\d+<([^>]*)>/g)].map(([, path]) => path);
  const flags = name === "creat" ? "O_CREAT" : args;
  return [{ what, flags, paths: what === "fsync" ? described : quoted }];
}

async function textOf(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

async function until(holdsNow, what) {
  const deadline = Date.now() + CALL_MS_MAX;
  while (!holdsNow()) {
    if (Date.now() > deadline) throw new Error(`${what} did not come`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function makeDir(path) {
  const parent = join(path, "..");
  if (!fs.existsSync(parent)) makeDir(parent);
  fs.mkdirSync(path, { mode: 0o700 });
}

const brief = ([code, said]) => [code, said.code];

/** JSON with the members of each object in one order. */
function shape(value) {
  if (value instanceof Set) return shape([...value].sort());
  if (Array.isArray(value)) return `[${value.map(shape).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "undefined";
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, one]) => `${JSON.stringify(key)}:${shape(one)}`).join()}}`;
}

function same(found, wanted, what = "the answer") {
  if (shape(found) !== shape(wanted))
    throw new Error(
      `${what}: ${shape(found).slice(0, 300)} instead of ${shape(wanted).slice(0, 300)}`,
    );
}

/** Other members, such as the time of creation, are the client's own affair. */
function holds(found, wanted, what) {
  for (const [key, value] of Object.entries(wanted)) same(found[key], value, `${key} in ${what}`);
}

function isTrue(value, message) {
  if (!value) throw new Error(message);
}

/**
 * Runs the checks whose names hold `only`.
 * @returns for each its name, and what does not hold (`fault`) or was not checked (`note`)
 */
export async function runChecks(words, { only = "", onResult = () => {} } = {}) {
  const results = [];
  for (const [name, check] of Object.entries(CHECKS)) {
    if (!name.includes(only)) continue;
    const dir = fs.realpathSync(fs.mkdtempSync(join(os.tmpdir(), "mailchute-client-")));
    const result = { name };
    try {
      const note = await check(new Play(words, dir));
      if (note !== undefined) result.note = note;
    } catch (error) {
      result.fault = error.message;
    } finally {
      fs.rmSync(dir, { recursive: true, force: true });
    }
    results.push(result);
    onResult(result);
  }
  return results;
}

async function main(args) {
  const only = args[0] === "--only" ? args.splice(0, 2)[1] : "";
  if (args.length === 0) {
    console.error("usage: suite.mjs [--only NAME] CLIENT [ARGS...]   (see docs/clients.md)");
    return 2;
  }
  const [program, ...rest] = args;
  // Each call has a working directory of its own.
  const path = resolve(process.env.INIT_CWD ?? "", program);
  const words = [fs.existsSync(path) ? path : program, ...rest];
  const results = await runChecks(words, {
    only,
    onResult: ({ name, fault, note }) => {
      console.log(
        fault === undefined
          ? `ok      ${name}${note ? ` (${note})` : ""}`
          : `FAILED  ${name}\n        ${fault}`,
      );
    },
  });
  const failed = results.filter(({ fault }) => fault !== undefined).length;
  console.log(`${results.length - failed} of ${results.length} checks hold`);
  return failed === 0 && results.length > 0 ? 0 : 1;
}

if (import.meta.url === pathToFileURL(fs.realpathSync(process.argv[1] ?? ".")).href) {
  process.exitCode = await main(process.argv.slice(2));
}
