/** Starts `run` as its own process, which outlives the terminal. Its log is in the state tree, and has a bounded size. */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { StateTree } from "../../core/state-tree.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import {
  NAMED,
  openToAppend,
  readEnd,
  readRegular,
  statOf,
  writeAnew,
} from "../../host/regular-file.ts";
import { spawn } from "../../host/spawn.ts";
import { safe } from "../../text/render.ts";
import { readSupervisor } from "../../view/supervisor.ts";
import type { Context } from "./command-spec.ts";
import { EXIT } from "./exit-codes.ts";
import { shortPath } from "./options.ts";

const LOG = "run.log";
/** A log above this size is copied to `run.log.1` and emptied (bytes). So both together stay below about twice this size. */
const LOG_MAX = 5 * 1024 * 1024;
const LOG_LOOK_MS = 60_000;
const LOOK_MS = 50;
/** Tells the process in the background where its log is. */
const LOG_VARIABLE = "MAILCHUTE_RUN_LOG";
/** How much of the log is shown when the run ends right after its start (characters). */
const SHOWN_MAX = 2000;

/** Waits until the pool runs or its process has ended. @param argv this command line, with `--detach` @returns the exit code */
export async function startDetached(
  ctx: Pick<Context, "cwd" | "env" | "json" | "out">,
  tree: StateTree,
  argv: readonly string[],
): Promise<number> {
  const path = join(tree.dir, LOG);
  makeDirs(tree.dir, Number.POSITIVE_INFINITY);
  boundLog(path);
  const log = openToAppend(path, NAMED);
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
    for (const line of linesSince(path, from)) ctx.out.note(safe(line));
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

/** The last lines of the log since it had this size (bytes), without the name that the process has put before its own notes. */
function linesSince(path: string, from: number): string[] {
  const log = readRegular(path, NAMED);
  // A log that has become shorter was emptied since.
  const text = log
    .subarray(log.length < from ? 0 : from)
    .toString("utf8")
    .trim();
  const lines = text.slice(-SHOWN_MAX).split("\n");
  if (text.length > SHOWN_MAX && lines.length > 1) lines.shift();
  return lines.flatMap((line) => (line === "" ? [] : line.replace(/^mailchute: /, "")));
}

/** Keeps the log of a background process small while it runs. Does nothing in other processes. */
export function watchLog(env: NodeJS.ProcessEnv): void {
  const path = env[LOG_VARIABLE];
  if (path === undefined) return;
  delete env[LOG_VARIABLE];
  setInterval(() => boundLog(path), LOG_LOOK_MS).unref();
}

/** Empties the file and does not replace it, because the streams of the process have it open and append to it. */
function boundLog(path: string): void {
  try {
    if ((statOf(path)?.size ?? 0) <= LOG_MAX) return;
    writeAnew(`${path}.1`, readEnd(path, 4 * LOG_MAX, NAMED));
    const log = openToAppend(path, NAMED);
    fs.ftruncateSync(log);
    fs.closeSync(log);
  } catch {
    // The log does not exist yet, or the disk is full. The next look tries again.
  }
}
