/** A disk whose power can be cut: a small image, mounted by loop. Needs root, a loop device and mkfs. Linux only. */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { hasDebianPackage } from "../../support/debian-package.ts";

const run = promisify(execFile);

export type FileSystem = "ext4" | "xfs";

interface Kind {
  /** The Debian package that brings mkfs and the checker. */
  package: string;
  bytes: number;
  mkfs: readonly string[];
  /** Says with exit code 0 that the unmounted file system is in order; changes nothing. */
  check: readonly string[];
}

const KINDS: Record<FileSystem, Kind> = {
  ext4: {
    package: "e2fsprogs",
    bytes: 64 * 1024 * 1024,
    mkfs: ["mkfs.ext4", "-q", "-F", "-O", "has_journal"],
    check: ["e2fsck", "-f", "-n"],
  },
  xfs: {
    package: "xfsprogs",
    bytes: 320 * 1024 * 1024,
    mkfs: ["mkfs.xfs", "-q", "-f"],
    check: ["xfs_repair", "-n"],
  },
};

/**
 * Waits for orders. "cut" is the shutdown ioctl, EXT4_IOC_SHUTDOWN = XFS_IOC_GOINGDOWN = _IOR('X', 125, __u32), with flag 2:
 * the log is not flushed, and from then on nothing gets onto the disk. "sync" is syncfs.
 */
const CUTTER = `
import ctypes, fcntl, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
for line in sys.stdin:
    fd = os.open(sys.argv[1], os.O_RDONLY)
    try:
        if line.strip() == "cut":
            fcntl.ioctl(fd, 0x8004587D, struct.pack("I", 2))
        elif libc.syncfs(fd) != 0:
            raise OSError(ctypes.get_errno(), "syncfs")
        print("done", flush=True)
    except OSError as error:
        print(error, flush=True)
    finally:
        os.close(fd)
`;

const PYTHONS = ["/usr/bin/python3", "python3"];

function findPython(): string | undefined {
  return PYTHONS.find((python) => {
    try {
      execFileSync(python, ["-c", "import ctypes, fcntl"], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  });
}

/** Why power cannot be cut here, in words; undefined when it can. */
export function explainNoPowerCuts(kinds: readonly FileSystem[]): string | undefined {
  if (process.platform !== "linux") return "the shutdown ioctl is known on Linux only";
  if (process.getuid?.() !== 0) return "mounting needs root";
  if (findPython() === undefined) return "python3 is missing: it sends the shutdown ioctl";
  for (const kind of kinds)
    for (const [program = ""] of [KINDS[kind].mkfs, KINDS[kind].check])
      if (!hasDebianPackage(KINDS[kind].package, program))
        return `${program} is missing: apt-get install ${KINDS[kind].package}`;
  if (!fs.existsSync("/dev/loop-control")) return "there are no loop devices";
  return undefined;
}

/** A loaded machine takes seconds to end a killed process. */
const UNMOUNT_MS_MAX = 30_000;

/** The processes that hold a file below `dir` open or work in it: pid and command line. */
function usersOf(dir: string): string[] {
  const isBelow = (path: string): boolean => {
    try {
      return fs.readlinkSync(path).startsWith(dir);
    } catch {
      return false;
    }
  };
  const holds = (pid: string): boolean => {
    try {
      const open = fs.readdirSync(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`);
      return [`/proc/${pid}/cwd`, ...open].some(isBelow);
    } catch {
      return false;
    }
  };
  const pids = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name) && holds(name));
  return pids.map((pid) => `${pid} ${fs.readFileSync(`/proc/${pid}/cmdline`, "utf8")}`);
}

/** Disks that are mounted: none may outlive us. */
const mounted = new Set<PowerDisk>();
process.once("exit", () => {
  for (const disk of mounted) disk.closeNow();
});

export class PowerDisk {
  readonly kind: FileSystem;
  /** Where it is mounted. */
  readonly dir: string;
  private readonly home: string;
  private readonly image: string;
  private readonly cutter: ChildProcess;
  private readonly answers: AsyncIterator<string>;

  private constructor(kind: FileSystem, home: string, python: string) {
    this.kind = kind;
    this.home = home;
    this.image = join(home, "image");
    this.dir = join(home, "disk");
    this.cutter = spawn(python, ["-u", "-c", CUTTER, this.dir], {
      cwd: "/",
      stdio: ["pipe", "pipe", "inherit"],
    });
    if (this.cutter.stdout === null) throw new Error("the cutter has no stdout");
    this.answers = createInterface({ input: this.cutter.stdout })[Symbol.asyncIterator]();
  }

  /** Makes a fresh one. @throws what mkfs or mount say */
  static async make(kind: FileSystem): Promise<PowerDisk> {
    const python = findPython();
    if (python === undefined) throw new Error("python3 is missing");
    // The image need not be durable: the disk's power is cut, not the machine's.
    const base = fs.existsSync("/dev/shm") ? "/dev/shm" : os.tmpdir();
    const disk = new PowerDisk(kind, fs.mkdtempSync(join(base, "mailchute-power-")), python);
    mounted.add(disk);
    fs.mkdirSync(disk.dir, { mode: 0o700 });
    fs.writeFileSync(disk.image, "");
    fs.truncateSync(disk.image, KINDS[kind].bytes);
    const [program = "", ...args] = KINDS[kind].mkfs;
    await run(program, [...args, disk.image]);
    await disk.mount();
    return disk;
  }

  private async mount(): Promise<void> {
    await run("mount", ["-o", "loop", "-t", this.kind, this.image, this.dir]);
    fs.chmodSync(this.dir, 0o700);
  }

  private async unmount(): Promise<void> {
    const untilMs = performance.now() + UNMOUNT_MS_MAX;
    for (;;) {
      try {
        await run("umount", [this.dir]);
        return;
      } catch (error) {
        // The last descriptor of a killed process is closed a little later than it is gone.
        if (!/busy/.test(String(error))) throw error;
        if (performance.now() > untilMs)
          throw new Error(`${this.dir} is still used by ${usersOf(this.dir).join("; ")}`);
        await new Promise((resolve) => {
          setTimeout(resolve, 10);
        });
      }
    }
  }

  private async order(what: "cut" | "sync"): Promise<void> {
    this.cutter.stdin?.write(`${what}\n`);
    const { value, done } = await this.answers.next();
    if (done === true || value !== "done") throw new Error(`${what}: ${String(value)}`);
  }

  /** Brings all that was written so far onto the disk. */
  sync(): Promise<void> {
    return this.order("sync");
  }

  /** From now on nothing gets onto the disk; what is not there yet is lost. */
  cut(): Promise<void> {
    return this.order("cut");
  }

  /** Power is back: mounts again, which replays the log. Nobody may have a file open. */
  async restore(): Promise<void> {
    await this.unmount();
    await this.mount();
  }

  /** What the file system's own checker says of it; undefined when it is in order. */
  async findDamage(): Promise<string | undefined> {
    await this.unmount();
    const [program = "", ...args] = KINDS[this.kind].check;
    try {
      await run(program, [...args, this.image]);
      return undefined;
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      return `${program}: ${stdout ?? ""}${stderr ?? String(error)}`;
    } finally {
      await this.mount();
    }
  }

  async close(): Promise<void> {
    this.cutter.kill();
    await this.unmount();
    mounted.delete(this);
    fs.rmSync(this.home, { recursive: true, force: true });
  }

  /** For the last moment of our process. */
  closeNow(): void {
    this.cutter.kill();
    try {
      execFileSync("umount", ["-l", this.dir], { stdio: "ignore" });
    } catch {
      // It was not mounted.
    }
    fs.rmSync(this.image, { force: true });
    try {
      fs.rmdirSync(this.dir);
      fs.rmdirSync(this.home);
    } catch {
      // Better left behind than emptied while it is mounted.
    }
  }
}
