/** Checks of a state tree: trays, who runs it, what lies about, torn records. Reads only. */
import fs from "node:fs";
import { join } from "node:path";
import { describeError } from "../../cli/shell/error-text.ts";
import { messageOf } from "../../core/errors.ts";
import { parseObject } from "../../core/json-object.ts";
import { readInboxName } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { checkStateDir } from "../../mailbox/trays.ts";
import { duration } from "../../text/render.ts";
import { findFiles, readTailLines } from "../../view/scan.ts";
import { takeSnapshot } from "../../view/take-snapshot.ts";
import { type CheckResult, failing, ok, warned } from "./check.ts";

const TRAYS = ["inbox", "processing", "outbox", "failed", ".tmp"];
/** Ignored files in an inbox are worth a word after this long (ms). */
const LEFTOVER_MS = 60 * 60 * 1000;
const FILES_MAX = 10_000;
const NAMES_SHOWN = 3;
/** Journals are read from here to their end, not whole. */
const JOURNAL_TAIL_BYTES = 4 * 1024 * 1024;

/** @param uids of others who may own the tree, as the settings say */
export function checkStateTree(
  tree: StateTree,
  nowMs: number,
  uids: readonly number[],
): CheckResult[] {
  const checks = [
    () => checkTop(tree.dir, uids),
    () => checkTrays("mailbox", tree.mailbox, uids),
    () => checkTrays("control mailbox", tree.control, uids),
    () => checkSupervisor(tree, nowMs),
    () => checkLeftovers(tree, nowMs),
    () => checkJournal("events", tree.events),
    () => checkJournal("leases", tree.leases),
  ];
  return checks.flatMap((check) => {
    try {
      return check();
    } catch (error) {
      return [failing("state tree", messageOf(error), "check that every directory can be read")];
    }
  });
}

/** The directory with the settings and the plan, by the rule of `run` itself. */
function checkTop(dir: string, uids: readonly number[]): CheckResult[] {
  const name = "state directory";
  try {
    checkStateDir(dir, uids);
    return [ok(name, `${dir}: owner and rights are as they should be`)];
  } catch (error) {
    const { message, hint } = describeError(error);
    return [failing(name, message, hint ?? "check its owner and rights")];
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
    if (!stats.isDirectory()) {
      results.push(failing(name, `${path} is not a directory`, "move away what is there"));
      // Rights and owner of something else, perhaps of a link, say nothing.
      continue;
    }
    if ((stats.mode & 0o002) !== 0 && (stats.mode & 0o1000) === 0) {
      results.push(
        failing(
          name,
          `${path} is writable by everybody: anyone could run programs as you`,
          `chmod o-w ${path}`,
        ),
      );
    }
    if (ownUid !== -1 && stats.uid !== ownUid && stats.uid !== 0 && !uids.includes(stats.uid))
      strangers.set(stats.uid, [...(strangers.get(stats.uid) ?? []), path]);
    if (tray !== "") {
      dev ??= stats.dev;
      if (stats.dev !== dev)
        results.push(
          failing(
            name,
            `${path} is on another file system than the other trays`,
            "keep all trays on one file system",
          ),
        );
    }
    try {
      fs.accessSync(path, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK);
    } catch {
      results.push(
        failing(name, `${path} cannot be read and written`, "check its owner and rights"),
      );
    }
  }
  for (const [uid, [first = dir, ...others]] of strangers) {
    const which =
      others.length === 0 ? first : `${first} (and ${others.length} more of its directories)`;
    results.push(
      failing(
        name,
        `${which} belongs to uid ${uid}, who could run programs as you (${ownUid})`,
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

function checkSupervisor(tree: StateTree, nowMs: number): CheckResult[] {
  const snapshot = takeSnapshot(tree, nowMs);
  const { state, document, heartbeat_age_ms: ageMs } = snapshot.supervisor;
  const results: CheckResult[] = [];
  if (state === "dead") {
    results.push(
      warned(
        "supervisor",
        `pid ${document?.pid} died without stopping, ${duration(ageMs ?? 0)} ago or less`,
        "mailchute run: it takes over by itself",
      ),
    );
  } else if (state === "none" || state === "stopped") {
    results.push(ok("supervisor", state === "none" ? "none runs" : "stopped in order"));
  } else {
    results.push(ok("supervisor", `${state}, pid ${document?.pid}`));
  }
  for (const obstacle of snapshot.obstacles) {
    if (state === "dead" && obstacle.what.startsWith("the supervisor")) continue;
    results.push(warned("progress", obstacle.what, obstacle.do));
  }
  return results;
}

function checkLeftovers(tree: StateTree, nowMs: number): CheckResult[] {
  return [tree.mailbox, tree.control].flatMap((mailbox) => {
    const inbox = join(mailbox, "inbox");
    const isLeftover = (file: string): boolean =>
      file !== ".gitkeep" && readInboxName(file).kind === "ignored";
    const { files } = findFiles(inbox, isLeftover, FILES_MAX);
    const old = files.filter((file) => nowMs - file.mtimeMs > LEFTOVER_MS);
    if (old.length === 0) return [];
    const names = old
      .slice(0, NAMES_SHOWN)
      .map((file) => file.name)
      .join(", ");
    const more = old.length > NAMES_SHOWN ? ` and ${old.length - NAMES_SHOWN} more` : "";
    return [
      warned(
        "inbox",
        `ignored for over an hour in ${inbox}: ${names}${more}`,
        "rename to NAME.json what is meant as a task, remove the rest",
      ),
    ];
  });
}

function checkJournal(name: string, path: string): CheckResult[] {
  if (fs.statSync(path, { throwIfNoEntry: false })?.isFile() === false)
    return [
      warned(name, `${path} is no regular file: nothing is recorded`, "move away what is there"),
    ];
  const lines = readTailLines(path, JOURNAL_TAIL_BYTES);
  const whole = lines.filter((line) => line.replaceAll("\0", "").trim() !== "");
  const bad = whole.filter((line) => parseObject(line.replaceAll("\0", "")) === undefined).length;
  if (bad === 0)
    return [
      ok(
        name,
        whole.length === 0 ? "no records yet" : "every record of the journal's end can be read",
      ),
    ];
  return [
    warned(
      name,
      `${bad} of the last ${whole.length} lines of ${path} are torn`,
      `nothing: readers skip them. With jq: jq -R 'fromjson?' ${path}`,
    ),
  ];
}
