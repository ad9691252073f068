/** Runs a verb of the command line in a process of its own, as a program of the user would, and collects what it says. */
import { spawn } from "node:child_process";
import { pathInPackage } from "../../host/package.ts";

export interface Said {
  isOk: boolean;
  /** What it printed, also on stderr. */
  text: string;
}

const CHARS_MAX = 50_000;
/** No verb takes longer: `wait` is told when to end. */
const LIMIT_MS = 120_000;
/** Tables are made for a terminal, which would be narrow. */
const COLUMNS = "200";

/** Never rejects. @param env of the verb @param signal ends it */
export async function runVerb(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<Said> {
  return await new Promise((resolve) => {
    const parts: Buffer[] = [];
    let chars = 0;
    const end = (isOk: boolean, more = ""): void => {
      const text = `${Buffer.concat(parts).toString()}${more}`.trimEnd();
      resolve({ isOk, text: chars > CHARS_MAX ? `${text}\n(cut: there is more)` : text });
    };
    const take = (chunk: Buffer): void => {
      if (chars <= CHARS_MAX) parts.push(chunk.subarray(0, CHARS_MAX - chars));
      chars += chunk.length;
    };
    try {
      const child = spawn(process.execPath, [pathInPackage("bin/mailchute.js"), ...argv], {
        env: { ...env, COLUMNS },
        stdio: ["ignore", "pipe", "pipe"],
        signal,
        timeout: LIMIT_MS,
      });
      child.stdout.on("data", take);
      child.stderr.on("data", take);
      child.on("error", (error) => end(false, error.message));
      child.on("close", (code) => end(code === 0));
    } catch (error) {
      // A text with a NUL character, or too long for an argument.
      end(false, error instanceof Error ? error.message : String(error));
    }
  });
}
