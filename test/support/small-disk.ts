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
  process.stderr.write("\nSKIPPED: tests of a full disk need the right to mount a tmpfs (root)\n");
  return false;
}

export interface SmallDisk {
  dir: string;
  /** Leaves this many pages of 4 KiB free. */
  fill(pagesFree: number): void;
  /** Gives the space back. */
  free(): void;
}

/** Mounts one for the running test. @param inodesMax so many files it takes; 0 = as many as there is room for */
export function smallDisk(inodesMax = 0): SmallDisk {
  const dir = tempDir();
  mount(dir, inodesMax);
  onTestFinished(() => unmount(dir));
  const filler = join(dir, "filler");
  return {
    dir,
    fill(pagesFree) {
      const { bavail, bsize } = fs.statfsSync(dir);
      fs.writeFileSync(filler, Buffer.alloc((bavail - pagesFree) * bsize));
    },
    free() {
      fs.rmSync(filler, { force: true });
    },
  };
}
