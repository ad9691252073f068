/**
 * The only door to the user's git. It starts no program that a run could have named: it obeys the settings of the person, and those of the
 * repository as they stood before the runs (`kept-settings.ts`); hooks, monitors, pagers, editors and signatures are off. It asks for no
 * password, sees no variable but those that it needs, and ends after a time. Waits for a lock file of another git, and removes one that a
 * dead git left.
 */
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { ErrGit, messageOf, systemCode } from "../core/errors.ts";
import { readEnd } from "../host/regular-file.ts";
import { spawn } from "../host/spawn.ts";
import { findHome } from "../host/user-state.ts";
import { dropLeftLock, hintForLock, isLocked, type SeenLock } from "./left-locks.ts";
import { behind } from "./own-common-dir.ts";
import { type Places, placesOf, watchForPipes } from "./pipe-watch.ts";

export interface GitCall {
  /** Where it runs. */
  cwd: string;
  /** The git directory of a worktree; without it git finds one from `cwd`. With `cwd` it names the worktree, too. */
  gitDir?: string;
  /**
   * Variables in addition to our own environment: `GIT_COMMON_DIR`, whose settings git obeys; the lease of the run, by which recovery
   * finds the programs of a killed worker.
   */
  env?: Readonly<Record<string, string>>;
  /** True: git reads the settings of the repository as they stand now. Only for commands that start no program, whatever these say. */
  isPlain?: boolean;
  /** It is killed after this time (ms). Default: `LIMIT_MS`. */
  limitMs?: number;
  input?: string | Buffer;
  /** Exit codes besides 0 that are no errors. */
  answers?: readonly number[];
  /** Settings for this call, as `name=value`. */
  settings?: readonly string[];
}

export interface GitAnswer {
  code: number;
  /** Bytes: paths need not be UTF-8. */
  out: Buffer;
  /** What it prints on stderr. */
  said: string;
}

/** Settings that also the person's own file cannot change. */
const ALWAYS = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.alternateRefsCommand=",
  "core.quotePath=false",
  "gc.auto=0",
  "maintenance.auto=false",
  "submodule.recurse=false",
  "commit.gpgSign=false",
  "log.showSignature=false",
  "merge.verifySignatures=false",
  "protocol.ext.allow=never",
  "core.askPass=",
  // What we save must be on the disk before we remove anything.
  "core.fsync=committed,reference",
];
/** Commands that start no program, whatever the settings of the repository say. */
const PLAIN = /^(?:check-ref-format|config|rev-parse|symbolic-ref|worktree list)\b/;
/** Each of these may show a change by a program that settings name. */
const SHOWS = new Set(["diff", "diff-files", "diff-index", "diff-tree", "log", "show"]);
/** A look at files goes into no repository inside, where a run may have written settings. */
const LOOKS = new Set(["diff", "diff-files", "diff-index", "status"]);
/** Variables that git, or a filter such as git-lfs, needs. All others, which may be secrets, stay with us. */
const PASSED =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|TZ|LANG|TMPDIR|TMP|TEMP|LD_LIBRARY_PATH|XDG_(?:CONFIG|CACHE|DATA)_HOME|XDG_RUNTIME_DIR|DBUS_SESSION_BUS_ADDRESS|SSH_AUTH_SOCK|(?:https?|no|all)_proxy|(?:HTTPS?|NO|ALL)_PROXY|(?:NIX_)?SSL_CERT_(?:FILE|DIR)|CURL_CA_BUNDLE|GIT_(?:EXEC_PATH|TEMPLATE_DIR|CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)|SSL_\w+))$/;
/** Long enough for the checkout of a large repository. */
const LIMIT_MS = 30 * 60_000;
const CONFIG_BYTES_MAX = 1 << 16;
/** How long it waits for a lock file of another git (ms). */
const LOCK_WAIT_MS = 10_000;
const PAUSE_MS = { first: 20, max: 400 } as const;
/** How much of the end of stderr goes into a message (characters). */
const SAID_MAX = 600;

/** @throws ErrGit when it cannot be started, or ends with another exit code */
export async function askGit(call: GitCall, ...args: readonly string[]): Promise<GitAnswer> {
  const deadline = performance.now() + LOCK_WAIT_MS;
  let lock: SeenLock | undefined;
  for (let pauseMs: number = PAUSE_MS.first; ; pauseMs = Math.min(PAUSE_MS.max, pauseMs * 2)) {
    const { code, out, said } = await runOnce(call, args);
    if (code === 0 || call.answers?.includes(code) === true) return { code, out, said };
    if (!isLocked(said) || performance.now() > deadline)
      throw explainFailure(call, args, code, said);
    lock = dropLeftLock(said, gitDirsOf(call), lock);
    await wait(pauseMs * (0.5 + Math.random()));
  }
}

/** The text that git prints, without the line end. @throws ErrGit */
export async function gitText(call: GitCall, ...args: readonly string[]): Promise<string> {
  return (await askGit(call, ...args)).out.toString().replace(/\n$/, "");
}

/** The lines that git prints. @throws ErrGit */
export async function gitLines(call: GitCall, ...args: readonly string[]): Promise<string[]> {
  const text = await gitText(call, ...args);
  return text === "" ? [] : text.split("\n");
}

/** The values that git prints with `-z`. @throws ErrGit */
export async function gitList(call: GitCall, ...args: readonly string[]): Promise<string[]> {
  return splitNul((await askGit(call, ...args)).out.toString());
}

export function splitNul(text: string): string[] {
  return text.split("\0").filter((part) => part !== "");
}

/** Whether the error says that a disk is full. For a file of a worktree, git only says that it cannot write the file. */
export function isDiskFull(error: unknown): boolean {
  return /No space left|quota exceeded|\bENOSPC\b|\bEDQUOT\b|unable to write|write error/i.test(
    messageOf(error),
  );
}

/** The gits that run now. */
const running = new Map<ChildProcess, GitCall>();

/** Ends the calls with this variable, such as those of a run that is stopped; they fail. */
export function endCalls(name: string, value: string): void {
  for (const [child, { env }] of running) if (env?.[name] === value) kill(child);
}

async function runOnce(call: GitCall, args: readonly string[]): Promise<GitAnswer> {
  const { cwd, gitDir, env = {}, input, settings = [], limitMs = LIMIT_MS } = call;
  requireSafe(call, args);
  const place = gitDir === undefined ? [] : [`--git-dir=${gitDir}`, `--work-tree=${cwd}`];
  const set = [...ALWAYS, ...sparseSettings(call), ...settings].flatMap((one) => ["-c", one]);
  const child = spawn("git", [...place, ...set, ...plainly(args)], {
    cwd,
    env: { ...gitEnvironment(process.env), ...(call.isPlain ? withoutOwn(env) : env) },
    stdio: ["pipe", "pipe", "pipe"],
    // Run without a terminal, so that programs of git, such as ssh, cannot ask questions there.
    detached: true,
    windowsHide: true,
  });
  running.set(child, call);
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    kill(child);
  }, limitMs);
  const out: Buffer[] = [];
  const said: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => said.push(chunk));
  // It may end before it has read everything; its exit code says what happened.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  let pipe: string | undefined;
  const places = (): Places => placesOf(cwd, [gitDir, env["GIT_DIR"]]);
  const endWatch = watchForPipes(places, (path) => {
    pipe = path;
    kill(child);
  });
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once("error", (error) => reject(unstartable(error, cwd)));
      child.once("close", (exitCode) => resolve(exitCode ?? -1));
    });
    if (pipe !== undefined) throw wouldWait(args, pipe);
    if (isLate) throw tooLong(call, args, limitMs);
    const own = env["GIT_COMMON_DIR"];
    const text = Buffer.concat(said).toString();
    // People, and we ourselves, look for a lock in the repository.
    return {
      code,
      out: Buffer.concat(out),
      said: code === 0 || own === undefined ? text : text.replaceAll(own, behind(own)),
    };
  } finally {
    endWatch();
    clearTimeout(limit);
    running.delete(child);
  }
}

/** A call without our settings is a fault of ours: it would start programs that a run has named. */
function requireSafe({ env, gitDir, isPlain }: GitCall, args: readonly string[]): void {
  const isNamed = gitDir !== undefined || env?.["GIT_DIR"] !== undefined;
  if (isPlain ? PLAIN.test(args.slice(0, 2).join(" ")) : isNamed && env?.["GIT_COMMON_DIR"]) return;
  throw new Error(`git ${args[0]} needs the settings that are kept (openRepository)`);
}

function withoutOwn(env: Readonly<Record<string, string>>): Record<string, string> {
  const { GIT_COMMON_DIR: _, ...others } = env;
  return others;
}

/** Without external programs, and without a look into repositories inside. */
function plainly([command = "", ...rest]: readonly string[]): string[] {
  return [
    command,
    ...(SHOWS.has(command) ? ["--no-ext-diff", "--no-textconv"] : []),
    ...(LOOKS.has(command) ? ["--ignore-submodules=dirty"] : []),
    ...rest,
  ];
}

/** Of the settings of one worktree, only those of a sparse checkout count: they name no program. */
function sparseSettings({ cwd, gitDir, env }: GitCall): string[] {
  const dir = gitDir ?? env?.["GIT_DIR"] ?? cwd;
  const text = readEnd(join(dir, "config.worktree"), CONFIG_BYTES_MAX);
  return [...text.matchAll(/^\s*(sparseCheckout(?:Cone)?)\s*=\s*"?(true|false)"?\s*$/gim)].map(
    ([, name, value]) => `core.${name}=${value}`,
  );
}

function kill(child: ChildProcess): void {
  const { pid } = child;
  try {
    // With the programs that it has started.
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** Of our environment, the variables that git needs. */
function gitEnvironment(ours: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const passed = Object.entries(ours).filter(([name]) => PASSED.test(name));
  return {
    ...Object.fromEntries(passed),
    // Without it git would not find the settings of the person.
    HOME: findHome(ours),
    LC_ALL: "C",
    LANGUAGE: "",
    GIT_PAGER: "cat",
    GIT_EDITOR: "true",
    GIT_SEQUENCE_EDITOR: "true",
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
    // A run could have named other contents for a commit, or other parents: what is kept and lands is what the commits really hold.
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_GRAFT_FILE: "/dev/null/none",
    GIT_AUTHOR_NAME: "mailchute",
    GIT_AUTHOR_EMAIL: "mailchute@localhost",
    GIT_COMMITTER_NAME: "mailchute",
    GIT_COMMITTER_EMAIL: "mailchute@localhost",
  };
}

/** The common one of the repository, and that of the worktree. */
function gitDirsOf({ gitDir, env = {} }: GitCall): string[] {
  const own = env["GIT_COMMON_DIR"];
  return [own === undefined ? undefined : behind(own), gitDir, env["GIT_DIR"]].filter(
    (dir) => dir !== undefined,
  );
}

function wouldWait(args: readonly string[], pipe: string): ErrGit {
  return new ErrGit(`git ${args[0]} would wait for ever: ${pipe} is a pipe or a device`, {
    path: pipe,
    hint: "remove it",
  });
}

function tooLong({ cwd }: GitCall, args: readonly string[], limitMs: number): ErrGit {
  return new ErrGit(`git ${args[0]} did not end within ${Math.round(limitMs / 1000)} s`, {
    path: cwd,
    hint: "see what holds it up there: a slow filter, a disk or a network",
  });
}

function unstartable(error: Error, cwd: string): ErrGit {
  const isMissing = systemCode(error) === "ENOENT";
  return new ErrGit(`git cannot be started: ${systemCode(error)}`, {
    path: cwd,
    cause: error,
    ...(isMissing
      ? { hint: "install git, put it on PATH, and check that the directory is there" }
      : {}),
  });
}

function explainFailure(
  { cwd }: GitCall,
  args: readonly string[],
  code: number,
  said: string,
): ErrGit {
  const words = endOf(said);
  const end = code === -1 ? "was killed" : `ended with exit code ${code}`;
  const hint = hintFor(words);
  return new ErrGit(`git ${args[0]} ${end}: ${words}`, {
    path: cwd,
    ...(hint === undefined ? {} : { hint }),
  });
}

/** The end of the output, short enough for a message. */
export function endOf(said: string): string {
  return said.trim().slice(-SAID_MAX);
}

function hintFor(said: string): string | undefined {
  const ofLock = hintForLock(said);
  if (ofLock !== undefined) return ofLock;
  if (/dubious ownership/.test(said))
    return "the repository belongs to another user: `git config --global --add safe.directory DIR` allows it";
  if (/No space left/.test(said)) return "make room on the disk";
  return undefined;
}
