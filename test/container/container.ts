/** A container without an engine: a root of its own that is read-only, a pid namespace, another user. Needs root and Debian's tools. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const START = fileURLToPath(new URL("start.sh", import.meta.url));
export const UID = 1000;

/** Why there can be none here; undefined: there can. */
export function whyNoContainer(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    return "it needs root on Linux, for unshare, mount and chroot";
  const args = [
    "--fork",
    "--pid",
    "--mount",
    "sh",
    "-c",
    "mount -t tmpfs none /mnt && command -v setpriv nsenter",
  ];
  const { status, error } = spawnSync("unshare", args);
  return status === 0
    ? undefined
    : `unshare, mount, setpriv or nsenter cannot be used (${error?.message ?? status})`;
}

export interface ContainerSpec {
  /** Where the packed archive was installed with `npm install --global --prefix`. */
  installed: string;
  /** The folder that becomes /work. */
  work: string;
  isWorkReadOnly?: boolean;
  /** Put before what starts it, such as a program that enters a control group. */
  prefix?: readonly string[];
}

export interface Container {
  /** The first process of it, as it is seen from outside. */
  init(): number;
  /** Pids from outside of all its processes, zombies included, with their state. */
  processes(): { pid: number; state: string }[];
  /** `mailchute ARGUMENTS` in it, as `docker exec` runs it. */
  exec(...args: string[]): { status: number | null; stdout: string; stderr: string };
  stderr(): string;
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** A folder for /work that belongs to the user in the container. */
export function newWork(uid = UID): string {
  const work = join(tempDir(), "work");
  fs.mkdirSync(work);
  fs.chownSync(work, uid, uid);
  return work;
}

export function startContainer(spec: ContainerSpec, ...args: string[]): Container {
  const root = tempDir();
  // Others must be able to enter the folders above what is mounted.
  const words = [
    ...(spec.prefix ?? []),
    "unshare",
    "--fork",
    "--pid",
    "--mount",
    "sh",
    START,
    root,
    spec.installed,
    fs.realpathSync(process.execPath),
    spec.work,
    spec.isWorkReadOnly === true ? "ro" : "rw",
    String(UID),
    ...args,
  ];
  const child = spawn(words[0] ?? "", words.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
  const container = followed(child);
  // With its first process all of them end; only then its folders can go. It has changed its user, so unshare cannot end it.
  onTestFinished(async () => {
    const pid = container.init();
    if (pid > 0) process.kill(pid, "SIGKILL");
    else child.kill("SIGKILL");
    await container.ended;
  });
  return container;
}

function followed(child: ChildProcess): Container {
  let stderr = "";
  child.stdout?.resume();
  child.stderr?.on("data", (bytes: Buffer) => {
    stderr += bytes.toString();
  });
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  const init = (): number => childrenOf(child.pid ?? 0)[0] ?? 0;
  const env = [
    "HOME=/work",
    "MAILCHUTE_STATE=/work/state",
    "PATH=/opt/mailchute/bin:/opt/node:/usr/bin:/bin",
  ];
  return {
    init,
    processes: () => below(init()),
    exec(...args) {
      const enter = [
        "--target",
        String(init()),
        "--pid",
        "--mount",
        "--root",
        "--setuid",
        String(UID),
        "--setgid",
        String(UID),
      ];
      const {
        status,
        stdout,
        stderr: said,
      } = spawnSync(
        "nsenter",
        [...enter, "/usr/bin/env", "-i", "-C", "/work", ...env, "mailchute", ...args],
        { encoding: "utf8" },
      );
      return { status, stdout, stderr: said };
    },
    stderr: () => stderr,
    ended,
  };
}

function below(pid: number): { pid: number; state: string }[] {
  const found = [pid];
  // The list grows while it is read.
  for (const one of found) found.push(...childrenOf(one));
  return found.map((one) => ({ pid: one, state: stateOf(one) }));
}

function childrenOf(pid: number): number[] {
  try {
    return fs.readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      fs
        .readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8")
        .split(" ")
        .filter((word) => word !== "")
        .map(Number),
    );
  } catch {
    return [];
  }
}

function stateOf(pid: number): string {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.charAt(stat.lastIndexOf(")") + 2);
  } catch {
    return "gone";
  }
}

/** Drops a task into the state tree of a container. */
export function drop(work: string, id: string, task: object): void {
  const inbox = join(work, "state", "mailbox", "inbox");
  const staged = join(work, `.${id}`);
  fs.writeFileSync(staged, JSON.stringify(task));
  fs.chownSync(staged, UID, UID);
  fs.renameSync(staged, join(inbox, `${id}.json`));
}

export function record(work: string, tray: "outbox" | "failed", id: string) {
  const name = tray === "outbox" ? `${id}_result.json` : `${id}_error.json`;
  const path = join(work, "state", "mailbox", tray, name);
  return waitFor(
    () => {
      try {
        return JSON.parse(fs.readFileSync(path, "utf8")) as Record<string, unknown>;
      } catch {
        return undefined;
      }
    },
    { what: `the record of ${id}` },
  );
}
