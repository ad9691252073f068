/**
 * Preloaded with `node --require`: counts the file-system calls of a process that change something below one directory,
 * and does what the plan in MAILCHUTE_CRASH says at the N-th of them. It knows nothing of the product.
 *
 *   role     "main", "worker" (a process that a supervisor started) or "thread" (worker threads); others are left alone
 *   root     only calls on paths below it count
 *   at       the number of the call, from 1; 0 = count only
 *   act      "kill" and "stop" (SIGKILL, SIGSTOP to itself) | "torn" (half of a write, then SIGKILL) | "error" | "short"
 *   when     "before" or "after" the call (kill, stop)
 *   code     of the error that is thrown instead of doing it
 *   once     true: only the first process that gets there is struck; those that are started in its place are left alone
 *   until    "error" and "short" go on for ever, until this file appears; without it they happen once
 *   hasReads true: calls that only read count too
 *   from, to patterns: counting begins at the first call that one matches ("rename a/b.json") and ends with that of the other
 *   only     a pattern: calls that it does not match are left alone
 *   report   a file that gets one line of JSON at the fault (with `only` at each) and one at the end
 */
"use strict";
const fs = require("node:fs");
const { syncBuiltinESMExports } = require("node:module");
const { isMainThread } = require("node:worker_threads");

const plan = JSON.parse(process.env.MAILCHUTE_CRASH || "null");
const role = !isMainThread ? "thread" : process.env.MAILCHUTE_WORKER_BOOT ? "worker" : "main";
if (plan !== null && plan.role === role) install();

function install() {
  const original = { ...fs };
  const paths = new Map();
  const until = plan.until;
  let count = 0;
  let faults = 0;
  let depth = 0;
  /** The names of the calls, when they are only counted. */
  const calls = [];
  const from = plan.from === undefined ? undefined : new RegExp(plan.from);
  const to = plan.to === undefined ? undefined : new RegExp(plan.to);
  const only = plan.only === undefined ? undefined : new RegExp(plan.only);
  let isWithin = from === undefined;
  let isBeyond = false;

  const report = (entry) => {
    if (plan.report === undefined) return;
    const fd = original.openSync(plan.report, "a");
    original.writeSync(fd, `${JSON.stringify({ role, pid: process.pid, count, ...entry })}\n`);
    original.closeSync(fd);
  };
  process.once("exit", () => {
    const { userCPUTime, systemCPUTime } = process.resourceUsage();
    report({ ended: true, calls, faults, cpuMs: Math.round((userCPUTime + systemCPUTime) / 1000) });
  });

  const textOf = (path) =>
    Buffer.isBuffer(path) ? path.toString("latin1") : path instanceof URL ? path.pathname : path;
  const isBelow = (path) => {
    const text = typeof path === "number" ? paths.get(path) : textOf(path);
    return typeof text === "string" && (text === plan.root || text.startsWith(`${plan.root}/`));
  };
  const die = (what) => {
    report({ fault: plan.act, what });
    process.kill(process.pid, plan.act === "stop" ? "SIGSTOP" : "SIGKILL");
    if (plan.act === "stop") return;
    // The signal is on its way: nothing more may happen here.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
  };
  const failure = (what, path) => {
    faults += 1;
    if (faults === 1 || only !== undefined) report({ fault: plan.code, what });
    return Object.assign(new Error(`${plan.code}: made up, ${what}`), {
      code: plan.code,
      errno: -5,
      syscall: what.split(" ")[0],
      path: textOf(path),
    });
  };
  /** What is to be done about this call: undefined = nothing. */
  const decide = (name, path, isWrite) => {
    if (depth > 0 || !isBelow(path) || isBeyond) return undefined;
    isWithin ||= from.test(label(name, path));
    if (!isWithin) return undefined;
    if (to?.test(label(name, path))) isBeyond = true;
    if (only?.test(label(name, path)) === false) return undefined;
    count += 1;
    if (plan.at === 0) calls.push(name.replace(/Sync$/, ""));
    if (plan.at === 0 || count < plan.at) return undefined;
    const isFirst = count === plan.at;
    if (plan.once === true && (!isFirst || hasStruck())) return undefined;
    if (plan.act === "error" || plan.act === "short") {
      if (plan.act === "short" && !isWrite) return undefined;
      if (until === undefined ? faults > 0 || (plan.act === "error" && !isFirst) : isHealed())
        return undefined;
      return plan.act;
    }
    if (!isFirst || (plan.act === "torn" && !isWrite)) return undefined;
    return plan.act === "torn" ? "torn" : plan.when;
  };
  const hasStruck = () =>
    original.existsSync(plan.report) &&
    original.readFileSync(plan.report, "utf8").includes('"fault"');
  let healed = false;
  const isHealed = () => {
    healed ||= original.existsSync(until);
    return healed;
  };
  const label = (name, path) =>
    `${name.replace(/Sync$/, "")} ${String(typeof path === "number" ? paths.get(path) : textOf(path)).slice(plan.root.length + 1)}`;

  const nested = (call) => {
    depth += 1;
    try {
      return call();
    } finally {
      depth -= 1;
    }
  };

  /** @param options pathAt: the argument that says where; isOuter: its inner calls are not counted; on: whether it counts */
  const wrapSync = (name, options = {}) => {
    const call = original[name];
    if (call === undefined) return;
    const { pathAt = 0, isOuter = false, on = () => true, isWrite = false } = options;
    fs[name] = function wrapped(...args) {
      const run = () => {
        const result = isOuter ? nested(() => call.apply(fs, args)) : call.apply(fs, args);
        if (name === "openSync") paths.set(result, textOf(args[0]));
        return result;
      };
      if (!on(args)) return run();
      const path = args[pathAt];
      const what = decide(name, path, isWrite);
      if (what === undefined) return run();
      const shown = label(name, path);
      if (what === "before") {
        die(`before ${shown}`);
        return run();
      }
      if (what === "error") throw failure(shown, path);
      if (what === "short" || what === "torn") {
        const half = halve(args);
        const written = half === undefined ? run() : call.apply(fs, half);
        if (what === "torn") die(`within ${shown}`);
        faults += 1;
        if (faults === 1) report({ fault: "short", what: shown });
        return written;
      }
      const result = run();
      die(`after ${shown}`);
      return result;
    };
  };
  /** The arguments of writeSync for half of what they say. */
  const halve = ([fd, data, offset, length, position]) => {
    if (typeof data === "string") {
      const bytes = Buffer.from(data, "utf8");
      return [
        fd,
        bytes,
        0,
        Math.floor(bytes.length / 2),
        typeof offset === "number" ? offset : null,
      ];
    }
    const from = typeof offset === "number" ? offset : 0;
    const whole = typeof length === "number" ? length : data.byteLength - from;
    return [fd, data, from, Math.floor(whole / 2), position ?? null];
  };
  const { O_WRONLY, O_RDWR, O_CREAT, O_TRUNC } = fs.constants;
  const isChangingOpen = (flags) =>
    typeof flags === "string"
      ? !/^rs?$/.test(flags)
      : typeof flags === "number" && (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) !== 0;
  const counts = (flags) => plan.hasReads === true || isChangingOpen(flags);

  wrapSync("openSync", { on: (args) => counts(args[1]) });
  for (const name of ["writeSync", "writevSync"]) wrapSync(name, { isWrite: name === "writeSync" });
  for (const name of ["linkSync", "symlinkSync"]) wrapSync(name, { pathAt: 1 });
  for (const name of [
    "renameSync",
    "unlinkSync",
    "utimesSync",
    "futimesSync",
    "mkdirSync",
    "rmdirSync",
    "ftruncateSync",
    "truncateSync",
    "fsyncSync",
    "fdatasyncSync",
    "chmodSync",
    "fchmodSync",
    "chownSync",
    "fchownSync",
  ])
    wrapSync(name);
  for (const name of ["rmSync", "writeFileSync", "appendFileSync"])
    wrapSync(name, { isOuter: true });
  wrapSync("copyFileSync", { pathAt: 1, isOuter: true });
  if (plan.hasReads === true)
    for (const name of ["readdirSync", "opendirSync", "readSync", "readFileSync"])
      wrapSync(name, { isOuter: true });

  const wrapPromise = (owner, name, options = {}) => {
    const call = owner[name];
    if (call === undefined) return;
    const { pathOf = (args) => args[0], on = () => true, finish = (result) => result } = options;
    owner[name] = async function wrapped(...args) {
      const run = async () => finish(await call.apply(this, args), args);
      if (!on(args)) return run();
      const path = pathOf(args);
      const what = decide(name, path, false);
      if (what === "before") die(`before ${label(name, path)}`);
      if (what === "error") throw failure(label(name, path), path);
      const result = await run();
      if (what === "after") die(`after ${label(name, path)}`);
      return result;
    };
  };
  const { promises } = fs;
  wrapPromise(promises, "open", {
    on: (args) => counts(args[1] ?? "r"),
    finish: (handle, args) => {
      const pathOf = () => args[0];
      for (const name of ["sync", "datasync", "truncate", "utimes", "chmod"])
        wrapPromise(handle, name, { pathOf });
      for (const name of ["write", "writeFile", "appendFile"])
        wrapPromise(handle, name, { pathOf });
      return handle;
    },
  });
  for (const name of [
    "rename",
    "unlink",
    "utimes",
    "mkdir",
    "rmdir",
    "rm",
    "writeFile",
    "appendFile",
  ])
    wrapPromise(promises, name);
  for (const name of ["link", "symlink", "copyFile"])
    wrapPromise(promises, name, { pathOf: (args) => args[1] });

  const wrapCallback = (name, options = {}) => {
    const call = original[name];
    const { pathAt = 0, on = () => true } = options;
    fs[name] = function wrapped(...args) {
      const done = args.at(-1);
      if (typeof done !== "function" || !on(args)) return call.apply(fs, args);
      const path = args[pathAt];
      const what = decide(name, path, false);
      if (what === "before") die(`before ${label(name, path)}`);
      if (what === "error") {
        const error = failure(label(name, path), path);
        process.nextTick(() => done(error));
        return undefined;
      }
      args[args.length - 1] = (error, ...rest) => {
        if (name === "open" && !error) paths.set(rest[0], textOf(args[0]));
        if (what === "after") die(`after ${label(name, path)}`);
        done(error, ...rest);
      };
      return call.apply(fs, args);
    };
  };
  wrapCallback("open", { on: (args) => counts(typeof args[1] === "function" ? "r" : args[1]) });
  for (const name of [
    "write",
    "rename",
    "unlink",
    "utimes",
    "mkdir",
    "rmdir",
    "rm",
    "fsync",
    "fdatasync",
    "ftruncate",
    "writeFile",
    "appendFile",
  ])
    wrapCallback(name);
  for (const name of ["link", "symlink", "copyFile"]) wrapCallback(name, { pathAt: 1 });

  syncBuiltinESMExports();
}
