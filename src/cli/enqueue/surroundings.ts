/** The environment that a task gets: from a file, or from the caller, without variables that look like secrets. */
import { messageOf } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { readInput } from "../../host/regular-file.ts";
import { ErrUsage } from "../shell/command-spec.ts";

/** Names of variables that may hold a secret. */
const SECRET = /TOKEN|SECRET|PASSW|CREDENTIAL|(?:^|_)(?:API_?)?KEY$/i;
/** Variables that name sockets and sessions, which are gone when the task runs, or that belong to the calling shell. */
const OF_NOW =
  /^(?:SSH_.*|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DBUS_.*|XDG_(?:RUNTIME_DIR|SESSION_.*)|GPG_AGENT_INFO|TMUX.*|STY|TERM.*|WINDOWID|COLUMNS|LINES|PWD|OLDPWD|SHLVL|_|PS\d|MAILCHUTE_.*|DROVER_.*|UV_THREADPOOL_SIZE)$/;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export interface Inherited {
  env: Record<string, string>;
  /** Names that look like secrets. */
  leftOut: string[];
}

/** Leaves out functions of a shell, and names that no shell can set, without reporting them. */
export function inheritedFrom(ours: NodeJS.ProcessEnv): Inherited {
  const env: Record<string, string> = {};
  const leftOut: string[] = [];
  for (const [name, value] of Object.entries(ours)) {
    if (value === undefined || !NAME.test(name) || OF_NOW.test(name)) continue;
    if (SECRET.test(name)) leftOut.push(name);
    else env[name] = value;
  }
  return { env, leftOut: leftOut.sort() };
}

/**
 * Reads lines `NAME=value`. Blank lines, comments `# …`, `export` before a name and quotes around a value are allowed.
 * @throws ErrUsage with the number of the bad line
 */
export function readEnvFile(path: string): Record<string, string> {
  let text: string;
  try {
    text = readInput(path, TASK_BYTES_MAX).toString();
  } catch (error) {
    throw new ErrUsage(`--vars: cannot read it: ${messageOf(error)}`);
  }
  const env: Record<string, string> = {};
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*(?:#.*)?$/.test(line)) continue;
    const [, name, value = ""] = /^\s*(?:export\s+)?([^\s=]+)=(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined || !NAME.test(name) || value.includes("\u0000"))
      throw new ErrUsage(`--vars: line ${index + 1} is not NAME=value`);
    const quoted = /^(["'])(.*)\1$/.exec(value);
    env[name] = quoted?.[2] ?? value;
  }
  return env;
}

/** Reads `NAME=file:/path` and `NAME=env:NAME`. The reference itself is checked with the task. */
export function readReferences(pairs: readonly string[]): Record<string, string> | undefined {
  if (pairs.length === 0) return undefined;
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at <= 0)
        throw new ErrUsage(
          `--env-from wants NAME=file:/PATH or NAME=env:NAME, found ${JSON.stringify(pair)}`,
        );
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

/** With an environment up to this size (bytes), Linux surely starts a program. */
const BYTES_MAX = 128 * 1024;

/** @throws ErrUsage */
export function checkSize(env: Readonly<Record<string, string>>): void {
  const bytes = Object.entries(env).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value) + 2,
    0,
  );
  if (bytes > BYTES_MAX)
    throw new ErrUsage(
      `the environment has ${bytes} bytes, more than ${BYTES_MAX}`,
      "give less, or put it into a file that the program reads",
    );
}
