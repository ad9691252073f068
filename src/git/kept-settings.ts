/**
 * Keeps the settings of each repository as they stood before the runs, so that git obeys these in our calls, and finds out who changed
 * them. A person changes settings when no run is at work; such a change is obeyed from then on. One that came while runs were at work may
 * be theirs: it is obeyed when a person has accepted it. The files lie with the state of the user, where a run in a sandbox cannot write.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { ErrGit, messageOf, systemCode } from "../core/errors.ts";
import { readDocument } from "../host/documents.ts";
import { lockFile } from "../host/file-lock.ts";
import { judgeOwner, ownerSequence } from "../host/identity.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { statOf } from "../host/regular-file.ts";
import { replaceDocument } from "../host/replace-document.ts";
import { USER_STATE_DEPTH, userStateDir } from "../host/user-state.ts";
import { isHarmless, obeyed, type Setting, settingsText } from "./obeyed-settings.ts";
import { linkCommonDir, makeOwnCommonDir } from "./own-common-dir.ts";
import { gitLines } from "./run-git.ts";
import {
  ATTRIBUTES,
  type CurrentSettings,
  changesBetween,
  readSettings,
  type WatchedSettings,
  watchedOf,
} from "./settings-watch.ts";

export interface SettingsChange {
  at_ms: number;
  /** The settings and hooks that are new, gone or different. */
  names: string[];
  /** The tasks whose runs were at work: one of them did it, or a person. */
  runs: string[];
  /** Those of the runs that have not ended yet, as `KeptRun.key`. */
  open: string[];
}

interface KeptRun {
  /** Of the state tree and the task. */
  key: string;
  id: string;
  owner: string;
  since_ms: number;
}

interface Kept {
  v: 1;
  common_dir: string;
  /** The repository that was at this path. */
  inode: number;
  /** False before the first run: then git obeys no program that a setting names. */
  is_trusted: boolean;
  settings: Setting[];
  attributes: string;
  seen: WatchedSettings;
  runs: KeptRun[];
  changes: SettingsChange[];
}

/** A run in a repository. */
export interface RunThere {
  /** Of its task. */
  id: string;
  /** The state tree. */
  tree: string;
}

/** So many changes are kept until a person accepts them. */
const CHANGES_MAX = 100;
/** A run of a process that this machine cannot see counts for this long. */
const UNKNOWN_MS = 86_400_000;
/** A hundred runs may begin at once on a busy machine, and each asks git under the lock (ms). */
const WAIT_MS = 120_000;
const DEPTH = USER_STATE_DEPTH + 2;
/** Only a person can mend these. */
const NOT_OURS: ReadonlySet<string> = new Set(["EACCES", "ENOENT", "ENOTDIR", "EPERM", "EROFS"]);

/**
 * The common directory that git is to use in the place of the repository's own.
 * @throws ErrGit, system errors
 */
export async function keptCommonDir(commonDir: string): Promise<string> {
  const dir = dirOf(commonDir);
  const kept = read(dir, commonDir);
  if (kept === undefined) await withKept(commonDir, () => {});
  else linkCommonDir(ownIn(dir), commonDir);
  return ownIn(dir);
}

/** Call it before git writes the first file for a run. @returns changes that were not known. @throws ErrGit, system errors */
export async function beginRun(commonDir: string, run: RunThere): Promise<SettingsChange[]> {
  await refuseLost(commonDir);
  return withKept(commonDir, (kept, current) => {
    const found = look(kept, current);
    if (!kept.is_trusted) Object.assign(kept, { is_trusted: true, ...obeyedFrom(current) });
    const key = keyOf(run);
    kept.runs = kept.runs.filter((one) => one.key !== key);
    kept.runs.push({ key, id: run.id, owner: ownerSequence()(), since_ms: Date.now() });
    return found;
  });
}

/**
 * The settings that were kept may be gone, as after a change of HOME. If marks in the repository say that a run has changed settings, the
 * ones that stand there now may be its own.
 * @throws ErrGit
 */
async function refuseLost(commonDir: string): Promise<void> {
  if (read(dirOf(commonDir), commonDir)?.is_trusted === true) return;
  const own = await keptCommonDir(commonDir);
  const call = { cwd: commonDir, env: { GIT_DIR: commonDir, GIT_COMMON_DIR: own } };
  const asked = ["for-each-ref", "--format=%(refname)", "refs/mailchute/*/settings-changed"];
  const [mark, ...more] = await gitLines(call, ...asked);
  if (mark === undefined) return;
  const others = more.length === 0 ? "" : ` and ${more.length} more`;
  const list = `git --no-pager -C ${commonDir} config --local --list`;
  throw new ErrGit(
    `a run has changed settings or hooks of ${commonDir} (${mark}${others}), and how they stood before is not known any more`,
    {
      path: commonDir,
      hint: `look at them (${list}), and put back what you do not want; then mailchute land ID --accept-settings, or git update-ref -d ${mark}`,
    },
  );
}

/** What changed while the run was at work, and was not accepted. @returns also changes that were not known before, of any run */
export async function changesDuring(
  commonDir: string,
  run: RunThere,
): Promise<{ own: SettingsChange[]; found: SettingsChange[] }> {
  return withKept(commonDir, (kept, current) => {
    const found = look(kept, current);
    return { own: kept.changes.filter(({ open }) => open.includes(keyOf(run))), found };
  });
}

/**
 * Call it when no process of the run is left. A run that was killed before that begins anew.
 * @param areNoted false when its changes could not be noted: the next run of the task finds them as its own
 * @returns changes that were not known
 */
export async function endRun(
  commonDir: string,
  run: RunThere,
  areNoted = true,
): Promise<SettingsChange[]> {
  const key = keyOf(run);
  return withKept(commonDir, (kept, current) => {
    const found = look(kept, current);
    kept.runs = kept.runs.filter((one) => one.key !== key);
    if (areNoted)
      for (const change of kept.changes) change.open = change.open.filter((one) => one !== key);
    return found;
  });
}

/** A person accepts the settings as they stand now: git obeys them, and no run is blamed for them. @returns the names of what is new */
export async function acceptSettings(commonDir: string): Promise<string[]> {
  return withKept(commonDir, (kept, current) => {
    const names = changesBetween(watchedOf(kept.settings), watchedOf(current.settings));
    const accepted = { is_trusted: true, ...obeyedFrom(current) };
    Object.assign(kept, { ...accepted, seen: current.watched, changes: [] });
    return names;
  });
}

/** Changes that no person has accepted and that a run of this task may have made. Only reads. */
export function changesOf(commonDir: string, isOfTask: (id: string) => boolean): SettingsChange[] {
  const kept = read(dirOf(commonDir), commonDir);
  return kept?.changes.filter(({ runs }) => runs.some(isOfTask)) ?? [];
}

/** The message about a change for people. @param subject the run, if it was the only one */
export function changeText(
  commonDir: string,
  { names, runs }: SettingsChange,
  subject = `task ${runs[0]}`,
): string {
  const what = `settings or hooks of ${commonDir} changed: ${names.join(", ")}`;
  const who =
    runs.length === 1
      ? `${subject}: while it ran, and no other run, ${what}`
      : `while ${runs.slice(0, -1).join(", ")} and ${runs.at(-1)} ran, ${what}; one of these runs did it, or a person`;
  return `${who}. git obeys them in your own tree, but not for mailchute: look at them`;
}

/** Finds what has changed since the last look. */
function look(kept: Kept, current: CurrentSettings): SettingsChange[] {
  const names = changesBetween(kept.seen, current.watched);
  const { runs } = kept;
  kept.seen = current.watched;
  kept.runs = runs.filter(isAtWork);
  kept.settings = [
    ...kept.settings.filter(([name]) => !isHarmless(name)),
    ...current.settings.filter(([name]) => isHarmless(name)),
  ];
  if (names.length === 0) return [];
  if (runs.length === 0) {
    adopt(kept, current, new Set(names));
    return [];
  }
  const change = {
    at_ms: Date.now(),
    names,
    runs: [...new Set(runs.map(({ id }) => id))],
    open: runs.map(({ key }) => key),
  };
  kept.changes = [...kept.changes, change].slice(-CHANGES_MAX);
  return [change];
}

/** Takes these settings as they stand now. */
function adopt(kept: Kept, current: CurrentSettings, names: ReadonlySet<string>): void {
  kept.settings = [
    ...kept.settings.filter(([name]) => !names.has(name)),
    ...current.settings.filter(([name]) => names.has(name)),
  ];
  if (names.has(ATTRIBUTES)) kept.attributes = current.attributes;
}

function obeyedFrom({
  settings,
  attributes,
}: CurrentSettings): Pick<Kept, "settings" | "attributes"> {
  return { settings, attributes };
}

/** The programs of a dead process are ended; what they changed before that is found by the look that drops the run. */
function isAtWork({ owner, since_ms }: KeptRun): boolean {
  const verdict = judgeOwner(owner);
  return verdict === "alive" || (verdict === "unknown" && Date.now() - since_ms < UNKNOWN_MS);
}

/** Calls `act` with the settings as they stand now, while no other process does, and writes what it has changed. */
async function withKept<T>(
  commonDir: string,
  act: (kept: Kept, current: CurrentSettings) => T,
): Promise<T> {
  const dir = dirOf(commonDir);
  makeFolder(dir);
  const release = await lockFile(join(dir, "lock"), WAIT_MS);
  if (release === undefined)
    throw new ErrGit(`other processes have kept ${dir} locked for two minutes`, {
      path: dir,
      hint: "see which one it is",
    });
  try {
    const current = await readSettings(commonDir);
    const kept = read(dir, commonDir) ?? first(commonDir, current);
    const before = JSON.stringify(kept);
    const result = act(kept, current);
    const text = obeyedText(kept);
    // First what git obeys: after a crash in between the next look finds the change again.
    makeOwnCommonDir(ownIn(dir), commonDir, text, kept.attributes);
    if (JSON.stringify(kept) !== before || !fs.existsSync(fileIn(dir)))
      replaceDocument(fileIn(dir), kept, { isDurable: true });
    return result;
  } finally {
    await release();
  }
}

/** @throws ErrGit when this user may not write there */
function makeFolder(dir: string): void {
  try {
    makeDirs(dir, DEPTH);
  } catch (error) {
    if (!NOT_OURS.has(systemCode(error))) throw error;
    throw new ErrGit(`the settings of git cannot be kept in ${dir}: ${messageOf(error)}`, {
      path: dir,
      cause: error as Error,
      hint: "let this user write there, or set XDG_STATE_HOME to a folder that may be written",
    });
  }
}

function obeyedText({ settings, is_trusted, common_dir }: Kept): string {
  const all = obeyed(settings, is_trusted);
  // git-lfs would look for its objects beside our file.
  const lfs: Setting[] = all.some(([name]) => name === "lfs.storage")
    ? []
    : [["lfs.storage", join(common_dir, "lfs")]];
  return settingsText([...all, ...lfs]);
}

function first(commonDir: string, current: CurrentSettings): Kept {
  return {
    v: 1,
    common_dir: commonDir,
    inode: statOf(commonDir)?.ino ?? 0,
    is_trusted: false,
    ...obeyedFrom(current),
    seen: current.watched,
    runs: [],
    changes: [],
  };
}

/** Undefined when nothing is kept, or that of another repository which was at this path. */
function read(dir: string, commonDir: string): Kept | undefined {
  const found = readDocument<Kept>(fileIn(dir));
  const isIts = found?.v === 1 && found.common_dir === commonDir;
  return isIts && found.inode === (statOf(commonDir)?.ino ?? 0) ? found : undefined;
}

function keyOf({ id, tree }: RunThere): string {
  return createHash("sha256").update(`${tree}\0${id}`).digest("hex").slice(0, 16);
}

/** The folder of a repository. */
function dirOf(commonDir: string): string {
  const name = createHash("sha256").update(commonDir).digest("hex").slice(0, 16);
  return join(userStateDir(process.env), "git", name);
}

const ownIn = (dir: string): string => join(dir, "common");
const fileIn = (dir: string): string => join(dir, "kept.json");
