/** Starts `run` as a process of its own, which outlives the terminal, with a log in the state tree that does not grow for ever. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { StateTree } from "../../core/state-tree.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { safe } from "../../text/render.ts";
import { readSupervisor } from "../../view/supervisor.ts";
import type { Context } from "./command-spec.ts";
import { EXIT } from "./exit-codes.ts";
import { shortPath } from "./options.ts";

const LOG = "run.log";
/** A log above this is moved to `run.log.1` (bytes), so both together stay below twice of it. */
const LOG_MAX = 5 * 1024 * 1024;
const LOG_LOOK_MS = 60_000;
const LOOK_MS = 50;
/** Set for the process in the background: its log. */
const LOG_VARIABLE = "MAILCHUTE_RUN_LOG";
/** How much of the log is shown when the run has ended at once (characters). */
const SHOWN_MAX = 2000;

/** @param argv the words of this command line, with `--detach`. @returns the exit code, when the pool runs or its process has ended */
export async function startDetached(
  ctx: Pick<Context, "cwd" | "env" | "json" | "out">,
  tree: StateTree,
  argv: readonly string[],
): Promise<number> {
  const path = join(tree.dir, LOG);
  makeDirs(tree.dir, Number.POSITIVE_INFINITY);
  boundLog(path);
  const log = fs.openSync(path, "a", 0o600);
  const from = fs.fstatSync(log).size;
  const words = argv.filter((word) => word !== "--detach" && word !== "--json");
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? "", ...words], {
    cwd: ctx.cwd,
    env: { ...ctx.env, [LOG_VARIABLE]: path },
    detached: true,
    stdio: ["ignore", log, log],
  });
  fs.closeSync(log);
  let ended: number | undefined;
  child.once("exit", (code) => (ended = code ?? EXIT.failed));
  while (ended === undefined) {
    const { state, document } = readSupervisor(tree, Date.now());
    if (state === "running" && document?.pid === child.pid) break;
    await wait(LOOK_MS);
  }
  if (ended !== undefined) {
    const text = fs.readFileSync(path, "utf8").slice(from).slice(-SHOWN_MAX).trim();
    for (const line of text === "" ? [] : text.split("\n")) ctx.out.note(safe(line));
    ctx.out.note(`it has ended (exit code ${ended})`);
    return ended;
  }
  child.unref();
  if (ctx.json) ctx.out.json({ pid: child.pid, log: path });
  else
    ctx.out.line(
      `runs in the background (pid ${child.pid}); \`mailchute stop\` ends it; log: ${safe(shortPath(ctx, path))}`,
    );
  return EXIT.ok;
}

/** Keeps the log of a process in the background small, as long as it runs. Does nothing in other processes. */
export function watchLog(env: NodeJS.ProcessEnv): void {
  const path = env[LOG_VARIABLE];
  if (path === undefined) return;
  delete env[LOG_VARIABLE];
  setInterval(() => boundLog(path), LOG_LOOK_MS).unref();
}

/** The file stays the same one, because the streams of a process hold it open; what is written goes to its end. */
function boundLog(path: string): void {
  try {
    if (fs.statSync(path).size <= LOG_MAX) return;
    fs.copyFileSync(path, `${path}.1`);
    fs.truncateSync(path);
  } catch {
    // It is not there yet, or the disk is full: the next look tries again.
  }
}
