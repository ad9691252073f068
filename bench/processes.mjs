/** Starts programs for rows and looks at what they cost. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

/** A program that takes longer hangs (ms). */
const RUN_MS_MAX = 300_000;

/**
 * Runs a program to its end.
 * @returns {Promise<{stdout: string, wallS: number}>}
 * @throws Error with the end of its stderr when it does not exit with 0
 */
export async function runProgram(program, args, options = {}) {
  const from = performance.now();
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: RUN_MS_MAX,
    killSignal: "SIGKILL",
    ...options,
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr = (stderr + text).slice(-2000);
  });
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (...end) => resolve(end));
  });
  if (code !== 0) throw new Error(`${program} ended with ${signal ?? code}: ${stderr.trim()}`);
  return { stdout, wallS: (performance.now() - from) / 1000 };
}

/** Asks again every `everyMs` until the answer is not false, undefined, null, 0 or "". @throws Error after `limitMs` */
export async function until(condition, what, { limitMs = 60_000, everyMs = 1 } = {}) {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    if (performance.now() > deadline) throw new Error(`waited ${limitMs} ms for ${what}`);
    await wait(everyMs);
  }
}

/** Ends a process and waits for it. */
export async function stopProcess(child, signal = "SIGTERM") {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  const hard = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await ended;
  clearTimeout(hard);
}

/** A process and all that it started. */
export function familyOf(pid) {
  const children = [];
  for (const thread of fs.readdirSync(`/proc/${pid}/task`))
    for (const child of fs.readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" "))
      if (child !== "") children.push(...familyOf(Number(child)));
  return [pid, ...children];
}

/** Ends all that this process has started, at once. */
export function killDescendants() {
  try {
    for (const pid of familyOf(process.pid).slice(1).reverse()) process.kill(pid, "SIGKILL");
  } catch {
    // Gone already, or a system without /proc.
  }
}

/** Processor time that a process has had so far, over its threads that live (s). */
export function cpuSecondsOf(pid) {
  let ns = 0;
  for (const thread of fs.readdirSync(`/proc/${pid}/task`))
    ns += Number(fs.readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  return ns / 1e9;
}

/** Memory of a process (MB): `rss` with what it shares, `pss` with its share of that. */
export function memoryMbOf(pid) {
  const text = fs.readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const kb = (field) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1]);
  return { rss: kb("Rss") / 1000, pss: kb("Pss") / 1000 };
}

export function isGone(pid) {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  } catch {
    return true;
  }
}
