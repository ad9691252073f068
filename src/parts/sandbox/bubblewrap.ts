/** The command line of bubblewrap that builds the walls. Pure. */
import type { Mount } from "../../agents/walls.ts";

/** Where a program with a network of its own finds the way out of it. */
export const PROXY_PORT = 3128;

const SIGN_DIR = "/run/mailchute";
const BUILT = "built";

/** What a program behind walls sees. All paths are absolute and without links. */
export interface Room {
  /** Has the folder that it sees as /tmp, and one in which a folder `built` appears when the walls stand: see `foldersIn`. */
  temporary: string;
  /** What lies below /tmp or /run, and stays to be read. */
  shown: readonly string[];
  writable: readonly string[];
  /** The state tree; it may lie in a writable folder, or hold some. */
  stateDir: string;
  /** Folders that it sees empty, and files that it sees as /dev/null. */
  hiddenFolders: readonly string[];
  hiddenFiles: readonly string[];
  /** Writable places in the state tree. */
  ownPlaces: readonly string[];
  /** What lies in a writable folder, and can only be read. */
  guarded: readonly string[];
  mounts: readonly Mount[];
  hasNetwork: boolean;
}

/** `/run`: what services of the machine listen on lies there. */
const BASE =
  "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try " +
  // A program that root starts would keep the rights of root otherwise.
  "--cap-drop ALL --ro-bind / / --dev /dev --proc /proc --tmpfs /run";

/** @returns what comes before the program and its arguments. The order counts: a later mount covers an earlier one */
export function bubblewrapArgs(room: Room): string[] {
  const both = (flag: string, paths: readonly string[]): string[] =>
    paths.flatMap((path) => [flag, path, path]);
  return [
    ...BASE.split(" "),
    ...(room.hasNetwork ? [] : ["--unshare-net"]),
    "--bind",
    foldersIn(room.temporary).tmp,
    "/tmp",
    ...both("--ro-bind-try", room.shown),
    ...both("--bind-try", room.writable),
    ...both("--ro-bind-try", room.guarded),
    ...both("--ro-bind", [room.stateDir]),
    ...room.hiddenFolders.flatMap((path) => ["--tmpfs", path]),
    ...both("--bind-try", room.ownPlaces),
    ...room.mounts.flatMap(({ from, to, isReadOnly }) => [
      isReadOnly === true ? "--ro-bind" : "--bind",
      from,
      to,
    ]),
    ...room.hiddenFiles.flatMap((path) => ["--ro-bind", "/dev/null", path]),
    "--bind",
    foldersIn(room.temporary).walls,
    SIGN_DIR,
    "--dir",
    `${SIGN_DIR}/${BUILT}`,
    "--remount-ro",
    SIGN_DIR,
    "--",
  ];
}

export function foldersIn(temporary: string): { tmp: string; walls: string; built: string } {
  const walls = `${temporary}/walls`;
  return { tmp: `${temporary}/tmp`, walls, built: `${walls}/${BUILT}` };
}
