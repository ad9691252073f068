/**
 * Runs the user's git. Its hooks and its file system monitor are off, because a branch or an agent may have brought them. It asks for no
 * password, and sees no variable of another git session. Waits for a lock file of another git, and removes one that a dead git left.
 */
import { spawn } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import { ErrGit, messageOf, systemCode } from "../core/errors.ts";
import { dropLeftLock, type SeenLock } from "./left-locks.ts";
import { type Places, placesOf, watchForPipes } from "./pipe-watch.ts";

export interface GitCall {
  /** Where it runs. */
  cwd: string;
  /** The git directory of a worktree; without it git finds one from `cwd`. With `cwd` it names the worktree, too. */
  gitDir?: string;
  /** Variables in addition to our own environment, such as the lease of the run: recovery finds the programs of a killed worker by it. */
  env?: Readonly<Record<string, string>>;
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

const ALWAYS = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.quotePath=false",
  "gc.auto=0",
  "maintenance.auto=false",
  "submodule.recurse=false",
  // What we save must be on the disk before we remove anything.
  "core.fsync=committed,reference",
];
/** For each call that looks at files: git starts no git in a repository inside, where a run may have written settings. */
export const OWN_FILES = ["--ignore-submodules=dirty"];
/** Variables of git that say where its files are. They do not say what a git session works on, so they are kept. */
const KEPT = /^GIT_(?:EXEC_PATH|TEMPLATE_DIR|CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)|SSL_\w+)$/;
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
    lock = dropLeftLock(said, lock);
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

async function runOnce(
  { cwd, gitDir, env, input, settings = [] }: GitCall,
  args: readonly string[],
): Promise<GitAnswer> {
  const place = gitDir === undefined ? [] : [`--git-dir=${gitDir}`, `--work-tree=${cwd}`];
  const set = [...ALWAYS, ...settings].flatMap((one) => ["-c", one]);
  const child = spawn("git", [...place, ...set, ...args], {
    cwd,
    env: { ...gitEnvironment(process.env), ...env },
    stdio: ["pipe", "pipe", "pipe"],
    // Run without a terminal, so that programs of git, such as ssh, cannot ask questions there.
    detached: true,
    windowsHide: true,
  });
  const out: Buffer[] = [];
  const said: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => said.push(chunk));
  // It may end before it has read everything; its exit code says what happened.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  let pipe: string | undefined;
  const places = (): Places => placesOf(cwd, [gitDir, env?.["GIT_DIR"]]);
  const endWatch = watchForPipes(places, (path) => {
    pipe = path;
    killGroup(child.pid);
  });
  const code = await new Promise<number>((resolve, reject) => {
    child.once("error", (error) => reject(unstartable(error, cwd)));
    child.once("close", (exitCode) => resolve(exitCode ?? -1));
  }).finally(endWatch);
  if (pipe !== undefined)
    throw new ErrGit(`git ${args[0]} would wait for ever: ${pipe} is a pipe or a device`, {
      path: pipe,
      hint: "remove it",
    });
  return { code, out: Buffer.concat(out), said: Buffer.concat(said).toString() };
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has just ended.
  }
}

/** Our environment without the variables of a git session. */
export function gitEnvironment(ours: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(ours).filter(
    ([name]) => name !== "SSH_ASKPASS" && (!name.startsWith("GIT_") || KEPT.test(name)),
  );
  return {
    ...Object.fromEntries(kept),
    LC_ALL: "C",
    LANGUAGE: "",
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_AUTHOR_NAME: "mailchute",
    GIT_AUTHOR_EMAIL: "mailchute@localhost",
    GIT_COMMITTER_NAME: "mailchute",
    GIT_COMMITTER_EMAIL: "mailchute@localhost",
  };
}

function isLocked(said: string): boolean {
  return /\.lock': File exists/.test(said);
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
  const [, lock] = /Unable to create '(.+\.lock)'/.exec(said) ?? [];
  if (lock !== undefined) return `if no git runs in the repository, remove ${lock}`;
  if (/dubious ownership/.test(said))
    return "the repository belongs to another user: `git config --global --add safe.directory DIR` allows it";
  if (/No space left/.test(said)) return "make room on the disk";
  return undefined;
}
