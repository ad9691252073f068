/** Queues of shell commands, and bare `spawn`: each runs `true` so many times, several at once where it can. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { runProgram } from "../processes.mjs";

/** Programs that run at once. */
export const ABREAST = 4;

/** @returns {Promise<{rate: number}>} programs/s */
export async function spawnBare(count) {
  let left = count;
  const from = performance.now();
  const lane = async () => {
    while (left-- > 0)
      await new Promise((resolve, reject) =>
        spawn("true", { stdio: "ignore" }).once("error", reject).once("exit", resolve),
      );
  };
  await Promise.all(Array.from({ length: ABREAST }, lane));
  return { rate: count / ((performance.now() - from) / 1000) };
}

/** task-spooler: from the first submission to the last end. Its server ends with it. */
export async function runTaskSpooler(dir, count) {
  const env = {
    ...process.env,
    TS_SOCKET: join(dir, "tsp.sock"),
    TMPDIR: dir,
    TS_MAXFINISHED: "10",
  };
  await runProgram("tsp", ["-S", String(ABREAST)], { env });
  try {
    return await timeShell(count, "tsp -n true", "tsp -w", env);
  } finally {
    await runProgram("tsp", ["-K"], { env });
  }
}

/** nq: each command is a process that waits for those before it, so one runs at a time. */
export async function runNq(dir, count) {
  const queue = join(dir, "nq");
  fs.mkdirSync(queue);
  return timeShell(count, "nq true", "nq -w", { ...process.env, NQDIR: queue });
}

async function timeShell(count, submit, wait, env) {
  const loop = `i=0; while [ $i -lt ${count} ]; do ${submit} >/dev/null; i=$((i+1)); done; ${wait} >/dev/null`;
  const { wallS } = await runProgram("sh", ["-c", loop], { env });
  return { rate: count / wallS };
}
