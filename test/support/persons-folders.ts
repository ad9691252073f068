/**
 * Guards the folders of the person who runs the tests: no test may make one. Where the person has them, they change for other reasons,
 * so this judges only a machine without them, such as one of CI. `scripts/own-folders.mjs` gives all processes other folders.
 */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";

/** The environment of a person whose home is this directory, which must stay as it is. */
export function personAt(home: string): NodeJS.ProcessEnv {
  const { XDG_DATA_HOME: _data, XDG_STATE_HOME: _state, ...env } = process.env;
  return { ...env, HOME: home };
}

/** An empty home beside the state tree. */
export function homeIn({ dir }: { dir: string }): string {
  const home = join(dir, "home");
  fs.mkdirSync(home, { recursive: true });
  return home;
}

export default function setup(): () => void {
  const { homedir } = os.userInfo();
  const dirs = [".local/share/mailchute", ".local/state/mailchute", ".config/mailchute"];
  const missing = dirs.map((dir) => join(homedir, dir)).filter((dir) => !fs.existsSync(dir));
  return () => {
    const made = missing.filter((dir) => fs.existsSync(dir));
    if (made.length === 0) return;
    const text = `a test has made ${made.join(", ")}: give its processes folders of their own`;
    // Beside other work of this user nobody knows who made it.
    if (process.env["CI"] !== undefined) throw new Error(text);
    process.stderr.write(`${text}\n`);
  };
}
