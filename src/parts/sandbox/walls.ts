/** Starts programs behind walls: finds what they may see and change, and clears up after them. */
import fs from "node:fs";
import os from "node:os";
import { join, resolve, sep } from "node:path";
import type { ProgramStart } from "../../agents/run-limiter.ts";
import type { Mount, WalledProgram, WalledRun } from "../../agents/walls.ts";
import { messageOf } from "../../core/errors.ts";
import { type AttemptOutcome, deferred, failed } from "../../core/outcome.ts";
import { READ_DENIED, type SandboxWalls } from "../../core/sandbox.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { findBubblewrap } from "../../host/bubblewrap.ts";
import { findProgram } from "../../host/find-program.ts";
import { judgeOwner, ownerSequence } from "../../host/identity.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { pathOfEntry } from "../../host/package.ts";
import { tryStatOf } from "../../host/regular-file.ts";
import { openSockets } from "../../host/unix-sockets.ts";
import { findHome } from "../../host/user-state.ts";
import { bubblewrapArgs, foldersIn, PROXY_PORT } from "./bubblewrap.ts";
import type { Network } from "./network.ts";
import { ownHome } from "./own-homes.ts";

/** Programs that write what they download into the home directory: into a folder of the run. Its own setting wins. */
const CACHES = {
  npm_config_cache: "npm",
  YARN_CACHE_FOLDER: "yarn",
  PIP_CACHE_DIR: "pip",
  UV_CACHE_DIR: "uv",
  CARGO_HOME: "cargo",
  GOCACHE: "go-build",
  GOMODCACHE: "go-mod",
} as const;
/** Where a program finds the way out of a network of its own. */
const ADDRESS = `http://127.0.0.1:${PROXY_PORT}`;
const OWN_HOSTS = "localhost,127.0.0.1,::1";
const PROXIES = Object.fromEntries(
  [
    ["HTTP_PROXY", ADDRESS],
    ["HTTPS_PROXY", ADDRESS],
    ["ALL_PROXY", ADDRESS],
    ["NO_PROXY", OWN_HOSTS],
  ].flatMap(([name = "", value]) => [
    [name, value],
    [name.toLowerCase(), value],
  ]),
);
const ENTRY = "parts/sandbox/entry";
/** What a program behind walls sees in place of these is its own. */
const REPLACED = ["/tmp", "/run", "/dev", "/proc"];
const PREFIX = "mailchute-run-";
const nextOwner = ownerSequence();
let isSwept = false;

/** See `Walls.enter`. */
export async function enterWalls(
  settings: SandboxWalls,
  agent: AgentSettings,
  start: Omit<ProgramStart, "lease">,
  run: WalledRun,
): Promise<WalledProgram | AttemptOutcome> {
  const open = { ...start, leave: async () => undefined };
  // The error of its start names it.
  const program = findProgram(start.argv[0] ?? "", start.env["PATH"], start.cwd);
  if (program === undefined) return open;
  const bubblewrap = findBubblewrap();
  if (bubblewrap.fault !== undefined) {
    if (settings.missing === "open") return open;
    return deferred(`sandbox: this machine has no walls for it: ${bubblewrap.fault}`);
  }
  const fault = explainUnfit(program, start, run);
  if (fault !== undefined)
    return failed("config", "ErrInvalidConfig", `sandbox: ${fault}`, { canRetry: false });
  const git = run.workspace?.git;
  let temporary: string | undefined;
  let network: Network | undefined;
  const leave = async (): Promise<AttemptOutcome | undefined> => {
    network?.close();
    // What was to be hidden may have gone at the same time.
    const isBuilt = temporary !== undefined && fs.existsSync(foldersIn(temporary).built);
    if (temporary !== undefined) fs.rmSync(temporary, { recursive: true, force: true });
    try {
      await git?.leave();
    } catch (error) {
      const message = `its commits cannot be taken over from its sandbox: ${messageOf(error)}`;
      return failed("worktree", "ErrWorktree", message);
    }
    return isBuilt ? undefined : deferred("its sandbox could not be built: see its stderr");
  };
  try {
    temporary = makeTemporary();
    const mounts = (await git?.enter()) ?? [];
    const room = roomOf(settings, agent, { ...start, temporary, mounts }, run);
    network = await networkOf(settings, foldersIn(temporary).tmp);
    const through =
      network === undefined ? [] : [process.execPath, pathOfEntry(ENTRY), network.socket];
    const argv = [bubblewrap.program, ...bubblewrapArgs(room), ...through, ...start.argv];
    return { argv, env: environmentOf(start.env, network), leave };
  } catch (error) {
    await leave();
    return deferred(`its sandbox cannot be made: ${messageOf(error)}`);
  }
}

/** Why this program cannot work behind walls. */
function explainUnfit(
  program: string,
  { cwd, env }: Pick<ProgramStart, "cwd" | "env">,
  { task, workspace }: WalledRun,
): string | undefined {
  if (task.keep_background === true)
    return "keep_background: behind walls no process outlives its program";
  const home = findHome(env);
  if (workspace === undefined && home !== undefined && isIn(home, cwd))
    return `it would work in ${cwd}, which holds your home directory: give it a cwd or a worktree`;
  const [path = program] = realpaths(program);
  if (isReplaced(path) && !isIn(path, workspace?.root ?? cwd))
    return `its program ${program} lies in /tmp, and behind walls it has a /tmp of its own: keep it elsewhere`;
  return undefined;
}

async function networkOf(
  { network }: SandboxWalls,
  temporary: string,
): Promise<Network | undefined> {
  if (typeof network !== "object") return undefined;
  const { openNetwork } = await import("./network.ts");
  return openNetwork(temporary, network.allow);
}

function environmentOf(env: NodeJS.ProcessEnv, network: Network | undefined): NodeJS.ProcessEnv {
  const caches = Object.entries(CACHES).map(([name, dir]) => [name, `/tmp/.cache/${dir}`]);
  return {
    ...Object.fromEntries(caches),
    ...env,
    TMPDIR: "/tmp",
    ...(network === undefined ? {} : PROXIES),
  };
}

function makeTemporary(): string {
  const dir = os.tmpdir();
  if (!isSwept) removeLeft(dir);
  isSwept = true;
  const made = fs.mkdtempSync(join(dir, `${PREFIX}${nextOwner()}-`));
  const { tmp, walls } = foldersIn(made);
  for (const one of [tmp, walls]) makeDirs(one);
  return made;
}

/** Removes what runs of dead workers have left. */
function removeLeft(dir: string): void {
  for (const name of fs.readdirSync(dir)) {
    if (!name.startsWith(PREFIX)) continue;
    const owner = name.slice(PREFIX.length, name.lastIndexOf("-"));
    if (judgeOwner(owner) === "dead") fs.rmSync(join(dir, name), { recursive: true, force: true });
  }
}

interface Start extends Omit<ProgramStart, "lease"> {
  temporary: string;
  mounts: Mount[];
}

function roomOf(
  { write = [], read_deny: denied = [], network = "open" }: SandboxWalls,
  agent: AgentSettings,
  { argv, env, cwd, temporary, mounts }: Start,
  { stateDir, runDir, dropDir, settings, workspace }: WalledRun,
): Parameters<typeof bubblewrapArgs>[0] {
  const home = findHome(env) ?? "/";
  const at = (places: readonly string[]): string[] =>
    places.flatMap((place) => realpaths(place.replace(/^~(?=\/)/, home)));
  const [state = stateDir] = realpaths(stateDir);
  const [root = cwd] = workspace?.root === undefined ? [cwd] : realpaths(workspace.root);
  const own = ownHome(agent, argv[0] ?? "", env, home);
  const ownFolders = at(own.folders);
  // The worktrees of others.
  const others = realpaths(resolve(stateDir, settings.worktrees_dir));
  // A check in a clean place has another home directory than the person.
  const persons = READ_DENIED.map((place) => place.replace("~", findHome(process.env) ?? "/"));
  const hidden = at([...persons, ...READ_DENIED, ...denied]).filter(
    (path) => !ownFolders.includes(path),
  );
  // The keys with which a person opens the pages. A folder that comes later could not be hidden.
  const keys = join(state, "web");
  makeDirs(keys);
  const isFolder = (path: string): boolean => tryStatOf(path)?.isDirectory() === true;
  const shown = [...realpaths("/etc/resolv.conf"), home];
  if (typeof network === "object") shown.push(process.execPath, pathOfEntry(ENTRY));
  // A worktree lies in a folder that is hidden, so it comes after that.
  const isOwn = others.some((dir) => isIn(root, dir)) || isIn(root, state);
  const writable = [...(isOwn ? [] : [root]), ...at(write), ...ownFolders];
  const sockets = openSockets().filter(
    (path) => !isReplaced(path) && !writable.some((dir) => isIn(path, dir)),
  );
  return {
    temporary,
    shown: shown.filter(isReplaced),
    writable,
    guarded: [...(workspace === undefined ? guardedIn(root) : []), ...at(own.obeyed)],
    stateDir: state,
    hiddenFolders: [
      keys,
      ...at(own.scripts),
      ...hidden.filter(isFolder),
      ...others.filter((dir) => !isIn(state, dir)),
    ],
    hiddenFiles: [...new Set([...hidden.filter((path) => !isFolder(path)), ...sockets])],
    ownPlaces: [...(isOwn ? [root] : []), ...realpaths(runDir), ...realpaths(dropDir ?? "")],
    mounts,
    hasNetwork: network === "open",
  };
}

/** In a person's own repository: what that person's git obeys and starts. */
function guardedIn(root: string): string[] {
  const git = join(root, ".git");
  if (tryStatOf(git)?.isDirectory() !== true) return [];
  // Where there is none, the program could make one.
  makeDirs(join(git, "hooks"));
  return [join(git, "hooks"), join(git, "config")];
}

/** The path without links, or nothing when nothing is there. */
function realpaths(path: string): string[] {
  try {
    return path === "" ? [] : [fs.realpathSync(path)];
  } catch {
    return [];
  }
}

function isIn(path: string, dir: string): boolean {
  return path === dir || path.startsWith(dir.endsWith(sep) ? dir : dir + sep);
}

function isReplaced(path: string): boolean {
  return REPLACED.some((dir) => isIn(path, dir));
}
