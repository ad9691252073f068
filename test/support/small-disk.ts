/** A file system of 1 MiB of its own, that can be filled for real. Needs root. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { tempDir } from "./temp-dir.ts";

function mount(dir: string, inodesMax: number): void {
  const options = `size=1m,nr_inodes=${inodesMax}`;
  execFileSync("mount", ["-t", "tmpfs", "-o", options, "mailchute-test", dir], { stdio: "pipe" });
}

function unmount(dir: string): void {
  execFileSync("umount", ["-l", dir], { stdio: "pipe" });
}

/** Whether this process may mount; says so on stderr when it may not, because tests are skipped then. */
export function canMount(): boolean {
  if (process.platform === "linux" && process.getuid?.() === 0) {
    const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-mount-"));
    try {
      mount(dir, 0);
      unmount(dir);
      return true;
    } catch {
      // A container without the right to mount.
    } finally {
      fs.rmdirSync(dir);
    }
  }
  process.stderr.write(
    "\nSKIPPED: tests of a full or read-only disk need the right to mount a tmpfs (root)\n",
  );
  return false;
}

export interface SmallDisk {
  dir: string;
  /** Leaves this many pages of 4 KiB free. */
  fill(pagesFree: number): void;
  /** Leaves room for so many files; for a disk that takes only so many. */
  fillFiles(filesFree: number): void;
  /** Gives the space back. */
  free(): void;
  /** From now on nothing can be written, as after a fault of a disk. */
  setReadOnly(): void;
  setWritable(): void;
}

/** Mounts one for the running test. @param inodesMax so many files it takes; 0 = as many as there is room for */
export function smallDisk(inodesMax = 0): SmallDisk {
  const dir = tempDir();
  mount(dir, inodesMax);
  onTestFinished(() => unmount(dir));
  const remount = (how: "ro" | "rw"): void => {
    execFileSync("mount", ["-o", `remount,${how}`, dir], { stdio: "pipe" });
  };
  const filler = join(dir, "filler");
  const names = join(dir, "names");
  return {
    dir,
    fill(pagesFree) {
      for (;;) {
        const { bavail, bsize } = fs.statfsSync(dir);
        try {
          const more = Buffer.alloc(Math.max(0, bavail - pagesFree) * bsize);
          fs.writeFileSync(filler, more, { flag: "a" });
          return;
        } catch (error) {
          // A pool under load has written in between: what is too much is given back.
          if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
          fs.truncateSync(filler, Math.max(0, fs.statSync(filler).size - pagesFree * bsize));
        }
      }
    },
    fillFiles(filesFree) {
      fs.mkdirSync(names);
      for (let n = 0; fs.statfsSync(dir).ffree > filesFree; n++)
        fs.writeFileSync(join(names, String(n)), "");
    },
    free() {
      fs.rmSync(filler, { force: true });
      fs.rmSync(names, { recursive: true, force: true });
    },
    setReadOnly() {
      remount("ro");
      // What the test has made there is removed before it is unmounted.
      onTestFinished(() => remount("rw"));
    },
    setWritable: () => remount("rw"),
  };
}
