/** Checks a state tree: its trays, its supervisor, ignored files in the inbox, and torn records. Only reads. */
import fs from "node:fs";
import { join } from "node:path";
import { describeError } from "../../cli/shell/error-text.ts";
import { messageOf } from "../../core/errors.ts";
import { parseObject } from "../../core/json-object.ts";
import { isMisnamed, readInboxName } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { NAMED, readEnd, statOf } from "../../host/regular-file.ts";
import { checkStateDir } from "../../mailbox/files/trays.ts";
import { duration } from "../../text/render.ts";
import { findFiles } from "../../view/scan.ts";
import type { Obstacle } from "../../view/snapshot.ts";
import { takeSnapshot } from "../../view/snapshot-reader.ts";
import { type CheckResult, failing, ok, warned } from "./check.ts";

const TRAYS = ["inbox", "processing", "outbox", "failed", ".tmp"];
/** With O_NONBLOCK a pipe in place of a file does not make us wait for a writer. */
/** Ignored files in an inbox are reported when they are older than this (ms). */
const LEFTOVER_MS = 60 * 60 * 1000;
const FILES_MAX = 10_000;
const NAMES_SHOWN = 3;
/** Only the last bytes of a journal are read, at most this many. */
const JOURNAL_TAIL_BYTES = 4 * 1024 * 1024;

/** @param uids other users who may own the tree, from the settings */
export function checkStateTree(
  tree: StateTree,
  nowMs: number,
  uids: readonly number[],
): CheckResult[] {
  const checks = [
    () => [checkTop(tree.dir, uids)],
    () => checkTrays("mailbox", tree.mailbox, uids),
    () => checkTrays("control mailbox", tree.control, uids),
    () => checkSupervisor(tree, nowMs),
    () => checkLeftovers(tree, nowMs),
    () => [checkJournal("events", tree.events)],
    () => [checkJournal("leases", tree.leases)],
  ];
  return checks.flatMap((check) => {
    try {
      return check();
    } catch (error) {
      return [failing("state tree", messageOf(error), "check that every directory can be read")];
    }
  });
}

/** Checks the directory with the settings and the plan, by the same rule as `run`. */
function checkTop(dir: string, uids: readonly number[]): CheckResult {
  const name = "state directory";
  try {
    checkStateDir(dir, uids);
    return ok(name, `${dir}: owner and rights are as they should be`);
  } catch (error) {
    const { message, hint } = describeError(error);
    return failing(name, message, hint ?? "check its owner and rights");
  }
}

function checkTrays(name: string, dir: string, uids: readonly number[]): CheckResult[] {
  const results: CheckResult[] = [];
  const ownUid = process.getuid?.() ?? -1;
  const strangers = new Map<number, string[]>();
  let dev: number | undefined;
  const missing: string[] = [];
  for (const tray of ["", ...TRAYS]) {
    const path = join(dir, tray);
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) {
      missing.push(tray === "" ? dir : tray);
      continue;
    }
    const { uid } = stats;
    if (stats.isDirectory() && ownUid !== -1 && ![ownUid, 0, ...uids].includes(uid))
      strangers.set(uid, [...(strangers.get(uid) ?? []), path]);
    if (tray !== "" && stats.isDirectory()) dev ??= stats.dev;
    const faults = faultsOf(path, stats, tray === "" ? undefined : dev);
    results.push(...faults.map(([message, todo]) => failing(name, message, todo)));
  }
  for (const [uid, [first = dir, ...others]] of strangers) {
    const more = others.length === 0 ? "" : ` (and ${others.length} more of its directories)`;
    results.push(
      failing(
        name,
        `${first}${more} belongs to uid ${uid}, who could run programs as you (${ownUid})`,
        "run mailchute as its owner, give it to yourself with chown -R, or allow that uid in config.yaml (uids)",
      ),
    );
  }
  if (missing.length > 0)
    results.push(
      warned(
        name,
        `missing: ${missing.join(", ")}`,
        "nothing: they are made on demand; mailchute init makes them now",
      ),
    );
  return results.length > 0
    ? results
    : [ok(name, `${dir}: trays, owner, rights and file system are as they should be`)];
}

/** What is wrong with one directory, and what to do. @param dev the file system of the other trays */
function faultsOf(
  path: string,
  stats: fs.Stats,
  dev: number | undefined,
): [message: string, todo: string][] {
  // Rights and owner of anything but a directory, perhaps a link, mean nothing.
  if (!stats.isDirectory()) return [[`${path} is not a directory`, "move away what is there"]];
  const faults: [string, string][] = [];
  if ((stats.mode & 0o002) !== 0 && (stats.mode & 0o1000) === 0)
    faults.push([
      `${path} is writable by every user: any user could run programs as you`,
      `chmod o-w ${path}`,
    ]);
  if (dev !== undefined && stats.dev !== dev)
    faults.push([
      `${path} is on another file system than the other trays`,
      "keep all trays on one file system",
    ]);
  try {
    fs.accessSync(path, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK);
  } catch {
    faults.push([`${path} cannot be read and written`, "check its owner and rights"]);
  }
  return faults;
}

function checkSupervisor(tree: StateTree, nowMs: number): CheckResult[] {
  const { supervisor, obstacles } = takeSnapshot(tree, nowMs);
  const { state, document, heartbeat_age_ms: ageMs } = supervisor;
  const name = "supervisor";
  if (state === "dead") {
    const what = `pid ${document?.pid} died without stopping, ${duration(ageMs ?? 0)} ago or less`;
    // An obstacle about the supervisor would repeat this warning.
    const others = obstacles.filter(({ what: text }) => !text.startsWith("the supervisor"));
    return [warned(name, what, "mailchute run: it takes over by itself"), ...inTheWay(others)];
  }
  const texts: Partial<Record<typeof state, string>> = {
    none: "none runs",
    stopped: "stopped in order",
  };
  return [ok(name, texts[state] ?? `${state}, pid ${document?.pid}`), ...inTheWay(obstacles)];
}

function inTheWay(obstacles: readonly Obstacle[]): CheckResult[] {
  return obstacles.map((one) => warned("progress", one.what, one.do));
}

function checkLeftovers(tree: StateTree, nowMs: number): CheckResult[] {
  return [tree.mailbox, tree.control].flatMap((mailbox) => {
    const inbox = join(mailbox, "inbox");
    // The snapshot names those of the mailbox at once.
    const isTold = (file: string): boolean => mailbox === tree.mailbox && isMisnamed(file);
    const isLeftover = (file: string): boolean =>
      file !== ".gitkeep" && readInboxName(file).kind === "ignored" && !isTold(file);
    const { files } = findFiles(inbox, isLeftover, FILES_MAX);
    const old = files.filter((file) => nowMs - file.mtimeMs > LEFTOVER_MS);
    if (old.length === 0) return [];
    const shown = old.slice(0, NAMES_SHOWN).map((file) => file.name);
    const more = old.length > NAMES_SHOWN ? ` and ${old.length - NAMES_SHOWN} more` : "";
    return [
      warned(
        "inbox",
        `ignored for over an hour in ${inbox}: ${shown.join(", ")}${more}`,
        "rename to NAME.json what is meant as a task, remove the rest",
      ),
    ];
  });
}

function checkJournal(name: string, path: string): CheckResult {
  if (statOf(path)?.isFile() === false)
    return warned(
      name,
      `${path} is not a regular file: nothing is recorded`,
      "move away what is there",
    );
  const lines = readTailLines(path, JOURNAL_TAIL_BYTES)
    .map((line) => line.replaceAll("\0", ""))
    .filter((line) => line.trim() !== "");
  if (lines.length === 0) return ok(name, "no records yet");
  const torn = lines.filter((line) => parseObject(line) === undefined).length;
  if (torn === 0) return ok(name, "every record of the journal's end can be read");
  return warned(
    name,
    `${torn} of the last ${lines.length} lines of ${path} are torn`,
    `nothing: readers skip them. With jq: jq -R 'fromjson?' ${path}`,
  );
}

/** The last whole lines of a regular file, at most `bytesMax` bytes. */
function readTailLines(path: string, bytesMax: number): string[] {
  const end = readEnd(path, bytesMax, NAMED);
  const lines = end.split("\n");
  return Buffer.byteLength(end) < bytesMax ? lines : lines.slice(1);
}
