/** Names of state trees for `--state NAME`: links in the user's configuration directory. `ln -s` can make them, too. */
import fs from "node:fs";
import os from "node:os";
import { isAbsolute, join } from "node:path";

/** A word without `/`, so that it cannot be taken for a path. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

export function isTreeName(text: string): boolean {
  return NAME.test(text);
}

/** The directory of the links. It need not exist. */
export function treeNamesDir(env: NodeJS.ProcessEnv): string {
  const named = env["XDG_CONFIG_HOME"] ?? "";
  const base = isAbsolute(named) ? named : join(os.homedir(), ".config");
  return join(base, "mailchute", "trees");
}

/** The directory that the link of this name points to. It need not exist. Undefined when there is no such name. */
export function treeOfName(name: string, env: NodeJS.ProcessEnv): string | undefined {
  if (!isTreeName(name)) return undefined;
  const dir = treeNamesDir(env);
  try {
    const target = fs.readlinkSync(join(dir, name));
    return isAbsolute(target) ? target : join(dir, target);
  } catch {
    return undefined;
  }
}

/** All names with their trees, sorted by name. Leaves out files that are no links. @throws system errors */
export function listTreeNames(env: NodeJS.ProcessEnv): { name: string; dir: string }[] {
  let names: string[];
  try {
    names = fs.readdirSync(treeNamesDir(env));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  return names.toSorted().flatMap((name) => {
    const dir = treeOfName(name, env);
    return dir === undefined ? [] : [{ name, dir }];
  });
}
