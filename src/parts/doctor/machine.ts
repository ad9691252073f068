/** Checks of the machine: Node, disk, file system, file events, tools. */
import fs from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { bytesText } from "../../core/bytes-text.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import type { StateTree } from "../../core/state-tree.ts";
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
    ...checkFileSystem(place),
    ...checkSpace(place),
    ...checkEvents(place),
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

/** What /proc/mounts says about the file system a path lies on. */
export function findMount(
  path: string,
  mounts: string,
): { type: string; options: string[]; at: string } | undefined {
  let best: { type: string; options: string[]; at: string } | undefined;
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

function checkFileSystem(place: string): CheckResult[] {
  const name = "file system";
  let mounts: string;
  try {
    mounts = fs.readFileSync("/proc/mounts", "utf8");
  } catch {
    return [
      warned(
        name,
        "cannot be told: there is no /proc/mounts",
        "use a local file system with a journal",
      ),
    ];
  }
  const mount = findMount(fs.realpathSync(place), mounts);
  if (mount === undefined)
    return [warned(name, "not found in /proc/mounts", "use a local file system with a journal")];
  const shown = `${mount.type} at ${mount.at}`;
  if (mount.options.includes("ro"))
    return [failing(name, `${shown} is mounted read-only`, "remount it, or move the state tree")];
  if (NETWORK.test(mount.type)) {
    return [
      warned(
        name,
        `${shown} is a network or user-space file system: atomic moves and file events may not hold`,
        "use a local disk",
      ),
    ];
  }
  if (mount.type === "tmpfs" || mount.type === "ramfs") {
    return [
      warned(
        name,
        `${shown} lies in memory: everything is lost on reboot`,
        "move the state tree to a disk if it must last",
      ),
    ];
  }
  if (
    mount.type === "ext2" ||
    mount.type === "vfat" ||
    mount.type === "exfat" ||
    mount.options.includes("noload")
  ) {
    return [
      warned(
        name,
        `${shown} has no journal: a power cut may lose a file that is being moved`,
        "use ext4 with a journal, XFS, Btrfs or ZFS",
      ),
    ];
  }
  if (mount.type === "ext4") return [ok(name, `${shown}${journalText(mount.at, mounts)}`)];
  if (mount.type === "overlay") {
    return [
      warned(
        name,
        `${shown}: a container's own layer is lost with the container`,
        "put the state tree on a volume",
      ),
    ];
  }
  return [ok(name, shown)];
}

/** ext4 may have been made without a journal; its thread is the only trace that needs no rights. */
function journalText(at: string, mounts: string): string {
  const device =
    mounts
      .split("\n")
      .find((line) => line.split(" ")[1] === at)
      ?.split(" ")[0] ?? "";
  const short = device.replace(/^\/dev\//, "");
  try {
    if (short !== "" && fs.existsSync(`/proc/fs/jbd2/${short}-8`)) return " with a journal";
  } catch {
    // Then it cannot be told.
  }
  return "; whether it has a journal cannot be told from here (as root: tune2fs -l shows has_journal)";
}

function checkSpace(place: string): CheckResult[] {
  const stats = fs.statfsSync(place);
  const free = stats.bavail * stats.bsize;
  const shown = `${bytesText(free)} free`;
  const results: CheckResult[] = [];
  if (free < FREE_FAIL_BYTES)
    results.push(failing("disk space", shown, "make room: nothing can be accepted or settled"));
  else if (free < FREE_WARN_BYTES)
    results.push(
      warned("disk space", shown, "make room; mailchute clean removes what is past its retention"),
    );
  else results.push(ok("disk space", shown));
  // Some file systems have no fixed number of inodes and say 0 of 0.
  if (stats.files > 0 && stats.ffree < INODES_WARN)
    results.push(
      warned("inodes", `${stats.ffree} free`, "each task needs a few: remove small files"),
    );
  return results;
}

function checkEvents(place: string): CheckResult[] {
  const name = "file events";
  try {
    fs.watch(place, { persistent: false }).close();
  } catch (error) {
    const code = systemCode(error);
    const what =
      code === "ENOSPC" || code === "EMFILE"
        ? "no inotify watches or instances are left"
        : messageOf(error);
    return [
      warned(
        name,
        `${what}: new files are found by polling`,
        "raise fs.inotify.max_user_watches and max_user_instances with sysctl",
      ),
    ];
  }
  const instances = readNumber("/proc/sys/fs/inotify/max_user_instances");
  const watches = readNumber("/proc/sys/fs/inotify/max_user_watches");
  if (instances === undefined || watches === undefined) return [ok(name, "can be watched")];
  const shown = `inotify allows ${instances} instances, ${watches} watches`;
  if (instances < INOTIFY_INSTANCES_MIN || watches < INOTIFY_WATCHES_MIN) {
    return [
      warned(
        name,
        `${shown}: few, when other programs watch files too`,
        "raise fs.inotify.max_user_instances and max_user_watches with sysctl",
      ),
    ];
  }
  return [ok(name, shown)];
}

function checkJq(env: NodeJS.ProcessEnv): CheckResult {
  const found = (env["PATH"] ?? "").split(delimiter).find((dir) => {
    try {
      fs.accessSync(join(dir, "jq"), fs.constants.X_OK);
      return dir !== "";
    } catch {
      return false;
    }
  });
  if (found !== undefined) return ok("jq", join(found, "jq"));
  return warned(
    "jq",
    "not found; mailchute does without it, the recipes of docs/tasks.md do not",
    "install jq if you want them",
  );
}

function nearestExisting(path: string): string {
  let at = path;
  while (!fs.existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

function readNumber(path: string): number | undefined {
  try {
    return Number(fs.readFileSync(path, "utf8").trim());
  } catch {
    return undefined;
  }
}
