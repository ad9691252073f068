/** What a check with `verify_from: target` gets in the place of what runs may have changed: a home of its own, and a PATH without their files. */
import fs from "node:fs";
import { delimiter, isAbsolute, join, resolve, sep } from "node:path";
import { RUN_DIR_DEPTH } from "../../core/state-tree.ts";
import { listDir } from "../../host/list-dir.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { tryStatOf } from "../../host/regular-file.ts";

/** So many programs are named. */
const NAMED_MAX = 5;

/**
 * Variables of the task's own `env` go before these.
 * @param runDir the folder of the landing's run
 * @param places directories in which runs write: programs below them do not count
 */
export function cleanEnvironment(
  env: NodeJS.ProcessEnv,
  runDir: string,
  places: readonly string[],
): Record<string, string> {
  const [home, temp] = ["home", "tmp"].map((name) => join(runDir, name)) as [string, string];
  for (const dir of [home, temp]) {
    fs.rmSync(dir, { recursive: true, force: true });
    makeDirs(dir, RUN_DIR_DEPTH + 1);
  }
  const xdg = Object.keys(env).filter((name) => name.startsWith("XDG_"));
  return {
    ...Object.fromEntries(xdg.map((name) => [name, ""])),
    HOME: home,
    TMPDIR: temp,
    PATH: safeDirs(env["PATH"], places).join(delimiter),
  };
}

function safeDirs(path = "", places: readonly string[]): string[] {
  const roots = places.map((place) => `${resolve(place)}${sep}`);
  return path
    .split(delimiter)
    .filter(
      (dir) => isAbsolute(dir) && !roots.some((root) => `${resolve(dir)}${sep}`.startsWith(root)),
    );
}

/** Programs on PATH that have changed since then: a run may have put one there for the check to find. */
export function programsSince(path: string, sinceMs: number): string[] {
  const found = path.split(delimiter).flatMap((dir) =>
    listDir(dir).flatMap((name) => {
      const at = join(dir, name);
      // The link itself may be new, or what it leads to.
      const times = [fs.lstatSync(at, { throwIfNoEntry: false }), tryStatOf(at)];
      return times.some((stats) => (stats?.ctimeMs ?? 0) >= sinceMs) ? [at] : [];
    }),
  );
  return found.slice(0, NAMED_MAX);
}
