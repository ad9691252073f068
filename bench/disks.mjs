/** The file systems that rows run on: an ext4 with a journal in an image of its own, and tmpfs. Leaves nothing behind. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { findProgram, isRoot } from "./machine.mjs";

const GIB = 2 ** 30;
/** A million files of one block each, and their results, have room. */
const IMAGES = {
  ext4: { bytes: 8 * GIB, inodes: 1_500_000 },
  large: { bytes: 16 * GIB, inodes: 3_000_000 },
};
const TMPFS = "/dev/shm";

/**
 * Makes a file system for one row, empty. An image is new each time, so that no row finds what another did to a disk.
 * @param name `ext4`, `large` (ext4 for a million files), `tmpfs`
 * @param imageDir where images lie: the disk that is measured
 * @returns {{dir: string, title: string, close: () => void} | {reason: string}} a place, or why there is none
 */
export function openDisk(name, imageDir) {
  if (name === "tmpfs") return openTmpfs();
  const reason = whyNoImages();
  return reason === undefined ? openImage(IMAGES[name], imageDir) : { reason };
}

function openTmpfs() {
  if (!fs.existsSync(TMPFS)) return { reason: `no ${TMPFS}` };
  const dir = openUp(fs.mkdtempSync(join(TMPFS, "mailchute-bench-")));
  return { dir, title: "tmpfs", close: () => fs.rmSync(dir, { recursive: true, force: true }) };
}

/** For machines where no image can be mounted: whatever lies under the temporary directory. */
export function openPlainDirectory(imageDir) {
  const dir = openUp(fs.mkdtempSync(join(imageDir, "mailchute-bench-")));
  return {
    dir,
    title: `${imageDir} as it is (no image: ${whyNoImages()})`,
    close: () => fs.rmSync(dir, { recursive: true, force: true }),
  };
}

function whyNoImages() {
  if (os.platform() !== "linux") return "loop mounts are Linux's";
  if (!isRoot) return "not root";
  const missing = ["mkfs.ext4", "mount", "umount"].find((name) => findProgram(name) === undefined);
  return missing === undefined ? undefined : `no ${missing}`;
}

function openImage({ bytes, inodes }, imageDir) {
  const base = openUp(fs.mkdtempSync(join(imageDir, "mailchute-bench-")));
  const image = join(base, "image");
  const mountPoint = join(base, "mnt");
  const dir = join(mountPoint, "work");
  try {
    fs.mkdirSync(mountPoint);
    fs.writeFileSync(image, "");
    fs.truncateSync(image, bytes);
    run("mkfs.ext4", ["-q", "-F", "-N", String(inodes), "-O", "has_journal", image]);
    // Inode tables that the kernel zeroes in the background would be measured with the rest.
    run("mount", ["-o", "loop,noinit_itable", image, mountPoint]);
    fs.mkdirSync(dir);
  } catch (error) {
    fs.rmSync(base, { recursive: true, force: true });
    return { reason: `no loop mount: ${String(error.stderr ?? error.message).trim()}` };
  }
  const close = () => {
    try {
      run("umount", [mountPoint]);
    } catch {
      // Something that failed still has a file open there.
      run("umount", ["--lazy", mountPoint]);
    }
    fs.rmSync(base, { recursive: true, force: true });
  };
  return { dir, title: "ext4 with a journal", close };
}

/** PostgreSQL runs as another user and must get through. */
function openUp(dir) {
  fs.chmodSync(dir, 0o755);
  return dir;
}

function run(program, args) {
  execFileSync(findProgram(program) ?? program, args, { stdio: ["ignore", "ignore", "pipe"] });
}
