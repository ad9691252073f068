/**
 * A disk whose device begins to fail under a real file system: a small ext4 image, mounted by loop with errors=remount-ro, whose
 * loop device is cut short. What is read from it or written to it from then on ends with EIO. Needs root, a loop device and e2fsprogs.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { waitFor } from "./wait-for.ts";

const IMAGE_BYTES = 64 * 1024 * 1024;

/**
 * LOOP_GET_STATUS64, then LOOP_SET_STATUS64 with another lo_sizelimit (bytes): the device ends there. It keeps what is beyond, and
 * gives it back to who mounts the image anew.
 */
const CUT_SHORT = `
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR)
status = bytearray(232)
fcntl.ioctl(fd, 0x4C05, status)
struct.pack_into("<Q", status, 32, 4096)
fcntl.ioctl(fd, 0x4C04, status)
`;

const PYTHONS = ["/usr/bin/python3", "python3"];

function findPython(): string | undefined {
  return PYTHONS.find((python) => {
    try {
      execFileSync(python, ["-c", "import fcntl"], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  });
}

/** Why there can be none here; undefined: there can. */
export function whyNoFailingDisk(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "needs Linux and root";
  if (!fs.existsSync("/dev/loop-control")) return "needs loop devices";
  if (findPython() === undefined) return "needs python3";
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-try-"));
  try {
    makeImage(join(dir, "image"));
    mount(join(dir, "image"), dir);
    execFileSync("umount", [dir], { stdio: "pipe" });
    return undefined;
  } catch {
    return "needs mkfs.ext4 and the right to mount";
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

function makeImage(image: string): void {
  fs.writeFileSync(image, "");
  fs.truncateSync(image, IMAGE_BYTES);
  execFileSync("mkfs.ext4", ["-q", "-F", "-O", "has_journal", image], { stdio: "pipe" });
}

function mount(image: string, dir: string): void {
  execFileSync("mount", ["-t", "ext4", "-o", "loop,errors=remount-ro", image, dir], {
    stdio: "pipe",
  });
}

function dirsBelow(dir: string): string[] {
  return (
    fs
      .readdirSync(dir, { withFileTypes: true })
      // The time of a lock says whose it is.
      .filter((entry) => entry.isDirectory() && !entry.name.endsWith(".lock"))
      .flatMap(({ name }) => [join(dir, name), ...dirsBelow(join(dir, name))])
  );
}

export interface FailingDisk {
  dir: string;
  /** From now on its device gives an error for each read and write. */
  fail(): void;
  /** The file system has noticed: it takes no change any more. */
  isReadOnly(): boolean;
  /** Another device with what the broken one held: checked, as after a crash, and mounted. No process may have a file open. */
  mend(): Promise<void>;
}

/** Mounts one for the running test. */
export function failingDisk(): FailingDisk {
  // In memory where that is possible: what fails is the device of the test, not that of the machine.
  const base = fs.existsSync("/dev/shm") ? "/dev/shm" : os.tmpdir();
  const home = fs.mkdtempSync(join(base, "mailchute-failing-"));
  let image = join(home, "image");
  const dir = join(home, "disk");
  fs.mkdirSync(dir);
  makeImage(image);
  mount(image, dir);
  fs.chmodSync(dir, 0o700);
  const mounted = (): string[] =>
    fs
      .readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .find((line) => line.split(" ")[1] === dir)
      ?.split(" ") ?? [];
  const unmount = (): boolean => {
    if (mounted().length === 0) return true;
    try {
      execFileSync("umount", [dir], { stdio: "pipe" });
      return true;
    } catch {
      // The last descriptor of a killed process is closed a little later than it is gone.
      return false;
    }
  };
  onTestFinished(async () => {
    await waitFor(unmount, { what: `the end of all that uses ${dir}` });
    fs.rmSync(home, { recursive: true });
  });
  return {
    dir,
    fail() {
      // What is in the midst of a change stays in memory: so this is seen by fsync before the disk is read-only.
      for (const path of [dir, ...dirsBelow(dir)]) {
        fs.writeFileSync(join(path, ".last"), "");
        fs.rmSync(join(path, ".last"));
      }
      execFileSync(findPython() ?? "python3", ["-c", CUT_SHORT, mounted()[0] ?? ""]);
    },
    isReadOnly: () => /\b(?:ro|emergency_ro)\b/.test(mounted()[3] ?? ""),
    async mend() {
      await waitFor(unmount, { what: `the end of all that uses ${dir}` });
      // A copy: a process behind walls, of any other test, may keep the broken device until it ends.
      const next = `${image}-mended`;
      fs.copyFileSync(image, next);
      image = next;
      // 1: it has mended something.
      execFileSync("sh", ["-c", 'e2fsck -f -p "$0" || test $? -eq 1', image], { stdio: "pipe" });
      mount(image, dir);
    },
  };
}
