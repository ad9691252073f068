/** Runs the programs that show processes, on macOS and on Linux. */
import { COMMAND_COLUMNS, TABLE_COLUMNS } from "./ps-text.ts";

const IS_MACOS = process.platform === "darwin";
const PS = "/bin/ps";
const SYSCTL = "/usr/sbin/sysctl";
/** The system makes a new one at each start. Unlike `kern.boottime`, it does not change with the date. */
const BOOT_ID = IS_MACOS ? "kern.bootsessionuuid" : "kernel.random.boot_id";
const OUTPUT_BYTES_MAX = 2 ** 28;
const LIMIT_MS = 20_000;
/** Prints times in UTC and in English, and leaves letters as they are. */
const ENVIRONMENT = { TZ: "UTC0", LC_TIME: "C", LC_CTYPE: IS_MACOS ? "UTF-8" : "C.UTF-8" };

interface Printed {
  text: string;
  /** The pid of the program that printed it, because that program may be in its own list. */
  pid: number;
}

/** @throws Error when it cannot be run now */
export function runTable(): Printed {
  return run(PS, ["-axo", TABLE_COLUMNS]);
}

/** @param isWithVariables true: also prints the variables that this user may see @throws Error like `runTable` */
export function runCommands(isWithVariables: boolean): Printed {
  // "-E" and "e" mean the same.
  const variables = isWithVariables ? (IS_MACOS ? ["-E"] : ["e"]) : [];
  const all = IS_MACOS ? ["-axww"] : ["axww"];
  return run(PS, [...all, ...variables, "-o", COMMAND_COLUMNS]);
}

/** @throws Error like `runTable` */
export function runBootId(): string {
  return run(SYSCTL, ["-n", BOOT_ID]).text;
}

function run(program: string, args: readonly string[]): Printed {
  // Every command loads this file, and an import of that module would take a twentieth of the command's time.
  const { spawnSync } = process.getBuiltinModule("node:child_process");
  const { pid, status, stdout, error } = spawnSync(program, args, {
    env: ENVIRONMENT,
    encoding: "latin1",
    stdio: ["ignore", "pipe", "ignore"],
    maxBuffer: OUTPUT_BYTES_MAX,
    timeout: LIMIT_MS,
    killSignal: "SIGKILL",
  });
  if (error !== undefined) throw error;
  if (status !== 0 || stdout === "")
    throw new Error(`${program} ${args.join(" ")} ended with ${status}`);
  return { text: stdout, pid };
}
