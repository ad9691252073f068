/** Checks of the machine: Node, disk, file system, file events, tools. */
import fs from "node:fs";
import { dirname } from "node:path";
import { bytesText } from "../../core/bytes-text.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { findProgram } from "../../host/find-program.ts";
import { readProc } from "../../host/read-proc.ts";
import { type CheckResult, failing, ok, warned } from "./check.ts";

const NODE_MIN = [20, 19] as const;
const FREE_WARN_BYTES = 512 * 1024 * 1024;
const FREE_FAIL_BYTES = 16 * 1024 * 1024;
const INODES_WARN = 10_000;
const INOTIFY_INSTANCES_MIN = 64;
const INOTIFY_WATCHES_MIN = 1024;
const NETWORK = /^(?:nfs4?|cifs|smb3?|9p|vboxsf|fuse\..*|afs|glusterfs|ceph|lustre)$/;

export function checkMachine(tree: StateTree, env: NodeJS.ProcessEnv): CheckResult[] {
  const place = nearestExisting(tree.mailbox);
  return [
    checkNode(),
    checkFileSystem(place),
    ...checkSpace(place),
    checkEvents(place),
    checkJq(env),
  ];
}

function checkNode(): CheckResult {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isGood = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
  const found = `Node ${process.versions.node}`;
  return isGood
    ? ok("node", found)
    : failing("node", `${found} is too old`, `install Node ${NODE_MIN.join(".")} or newer`);
}

interface Mount {
  type: string;
  options: string[];
  at: string;
}

/** The mount in /proc/mounts that holds a path. */
export function findMount(path: string, mounts: string): Mount | undefined {
  let best: Mount | undefined;
  for (const line of mounts.split("\n")) {
    const [, rawAt, type, options] = line.split(" ");
    if (rawAt === undefined || type === undefined || options === undefined) continue;
    const at = rawAt.replace(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const isAbove = path === at || path.startsWith(at.endsWith("/") ? at : `${at}/`);
    if (isAbove && (best === undefined || at.length >= best.at.length))
      best = { type, options: options.split(","), at };
  }
  return best;
}

/** Kinds of file systems that a state tree should not lie on, with the reason and what to do. The first that fits counts. */
const DOUBTFUL: readonly {
  fits: (mount: Mount) => boolean;
  why: string;
  todo: string;
}[] = [
  {
    fits: ({ type }) => NETWORK.test(type),
    why: " is a network or user-space file system: atomic moves and file events may not hold",
    todo: "use a local disk",
  },
  {
    fits: ({ type }) => type === "tmpfs" || type === "ramfs",
    why: " lies in memory: everything is lost on reboot",
    todo: "move the state tree to a disk if it must last",
  },
  {
    fits: ({ type, options }) =>
      ["ext2", "vfat", "exfat"].includes(type) || options.includes("noload"),
    why: " has no journal: a power cut may lose a file that is being moved",
    todo: "use ext4 with a journal, XFS, Btrfs or ZFS",
  },
  {
    fits: ({ type }) => type === "overlay",
    why: ": a container's own layer is lost with the container",
    todo: "put the state tree on a volume",
  },
];

function checkFileSystem(place: string): CheckResult {
  const name = "file system";
  const advice = "use a local file system with a journal";
  const mounts = tryReadProc("/proc/mounts");
  if (mounts === undefined) return warned(name, "cannot be told: there is no /proc/mounts", advice);
  const mount = findMount(fs.realpathSync(place), mounts);
  if (mount === undefined) return warned(name, "not found in /proc/mounts", advice);
  const shown = `${mount.type} at ${mount.at}`;
  if (mount.options.includes("ro"))
    return failing(name, `${shown} is mounted read-only`, "remount it, or move the state tree");
  const doubt = DOUBTFUL.find(({ fits }) => fits(mount));
  if (doubt !== undefined) return warned(name, shown + doubt.why, doubt.todo);
  return ok(name, mount.type === "ext4" ? `${shown}${journalText(mount.at, mounts)}` : shown);
}

/** ext4 may have been made without a journal. The folder of its journal thread is the only trace that a user may read. */
function journalText(at: string, mounts: string): string {
  const line = mounts.split("\n").find((one) => one.split(" ")[1] === at);
  const short = line?.split(" ")[0]?.replace(/^\/dev\//, "") ?? "";
  try {
    if (short !== "" && fs.existsSync(`/proc/fs/jbd2/${short}-8`)) return " with a journal";
  } catch {
    // Then it is not known.
  }
  return "; whether it has a journal cannot be told from here (as root: tune2fs -l shows has_journal)";
}

function checkSpace(place: string): CheckResult[] {
  const { bavail, bsize, files, ffree } = fs.statfsSync(place);
  const free = bavail * bsize;
  const shown = `${bytesText(free)} free`;
  const space =
    free < FREE_FAIL_BYTES
      ? failing("disk space", shown, "make room: nothing can be accepted or settled")
      : free < FREE_WARN_BYTES
        ? warned(
            "disk space",
            shown,
            "make room; mailchute clean removes what is past its retention",
          )
        : ok("disk space", shown);
  // Some file systems have no fixed number of inodes and say 0 of 0.
  if (files === 0 || ffree >= INODES_WARN) return [space];
  return [space, warned("inodes", `${ffree} free`, "each task needs a few: remove small files")];
}

function checkEvents(place: string): CheckResult {
  const name = "file events";
  try {
    fs.watch(place, { persistent: false }).close();
  } catch (error) {
    const isFull = ["ENOSPC", "EMFILE"].includes(systemCode(error) ?? "");
    const what = isFull ? "no inotify watches or instances are left" : messageOf(error);
    return warned(
      name,
      `${what}: new files are found by polling`,
      "raise fs.inotify.max_user_watches and max_user_instances with sysctl",
    );
  }
  const instances = readNumber("/proc/sys/fs/inotify/max_user_instances");
  const watches = readNumber("/proc/sys/fs/inotify/max_user_watches");
  if (instances === undefined || watches === undefined) return ok(name, "can be watched");
  const shown = `inotify allows ${instances} instances, ${watches} watches`;
  if (instances >= INOTIFY_INSTANCES_MIN && watches >= INOTIFY_WATCHES_MIN) return ok(name, shown);
  return warned(
    name,
    `${shown}: few, when other programs watch files too`,
    "raise fs.inotify.max_user_instances and max_user_watches with sysctl",
  );
}

function checkJq(env: NodeJS.ProcessEnv): CheckResult {
  const found = findProgram("jq", env["PATH"], "/");
  if (found !== undefined) return ok("jq", found);
  return warned(
    "jq",
    "not found; mailchute does not need it, but the recipes of docs/events.md do",
    "install jq if you want them",
  );
}

function nearestExisting(path: string): string {
  let at = path;
  while (!fs.existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

function readNumber(path: string): number | undefined {
  const text = tryReadProc(path);
  return text === undefined ? undefined : Number(text.trim());
}

/** Undefined also when no descriptor is left to read the file. */
function tryReadProc(path: string): string | undefined {
  try {
    return readProc(path)?.toString();
  } catch {
    return undefined;
  }
}
