/**
 * Gives each worktree of this user its own range of ports, so that servers of two agents never use the same port. A small file
 * holds each range. The range is free again when the worktree that the file names is gone.
 */
import fs from "node:fs";
import { join } from "node:path";
import { ErrGit } from "../../core/errors.ts";
import { createText } from "../../host/documents.ts";
import { underLock } from "../../host/file-lock.ts";
import { listDir } from "../../host/list-dir.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { tryReadText } from "../../host/regular-file.ts";
import { USER_STATE_DEPTH, userStateDir } from "../../host/user-state.ts";

/** All ranges are below the ports that systems use for outgoing connections. */
const FIRST = 20_000;
const LAST = 31_999;
export const PORTS_EACH = 20;

/** @returns the first port of the range. @throws ErrGit when none is free, or a system error */
export async function takePorts(path: string): Promise<number> {
  const dir = portsDir();
  makeDirs(dir, USER_STATE_DEPTH);
  // If two processes take the same range, `link` gives it to one of them. The lock protects ranges that become free.
  const first = await underLock(join(dir, ".lock"), () => {
    const own = rangesIn(dir).find((one) => one.path === path);
    if (own !== undefined) return own.base;
    for (let base = FIRST; base + PORTS_EACH - 1 <= LAST; base += PORTS_EACH)
      if (take(dir, base, path)) return base;
    return undefined;
  });
  if (first !== undefined) return first;
  throw new ErrGit(`all port ranges are taken (${FIRST} to ${LAST})`, {
    path: dir,
    hint: "remove worktrees that are done with: `mailchute worktrees clean`",
  });
}

export function dropPorts(path: string): void {
  const dir = portsDir();
  for (const one of rangesIn(dir))
    if (one.path === path) fs.rmSync(join(dir, String(one.base)), { force: true });
}

function portsDir(): string {
  return join(userStateDir(process.env), "ports");
}

function rangesIn(dir: string): { base: number; path: string }[] {
  return listDir(dir).flatMap((name) => {
    const path = /^\d+$/.test(name) ? tryReadText(join(dir, name)) : undefined;
    return path === undefined ? [] : [{ base: Number(name), path }];
  });
}

function take(dir: string, base: number, path: string): boolean {
  const file = join(dir, String(base));
  const owner = tryReadText(file);
  if (owner !== undefined && fs.existsSync(owner)) return false;
  if (owner !== undefined) fs.rmSync(file, { force: true });
  // The file is whole from the start, so a crash leaves no range without an owner.
  return createText(file, path);
}
