/** Runs a verb of the command line in a separate process, as a user's program would, and collects its output. */
import { pathInPackage } from "../../host/package.ts";
import { spawn } from "../../host/spawn.ts";

export interface Said {
  /** The exit code; null when the process was ended by a signal, or could not start. */
  code: number | null;
  stdout: string;
  stderr: string;
  /** True if a stream was longer than the kept part. */
  isCut: boolean;
}

export interface Kept {
  bytesMax: number;
  /** Which end of a longer output is kept. */
  end: "first" | "last";
}

/** No verb takes longer (ms): `wait` gets a time limit. */
const LIMIT_MS = 120_000;
/** The width of tables: without it, they would fit a narrow terminal. */
const COLUMNS = "200";

/** Never rejects. @param env the environment of the verb @param signal ends the verb @param kept which part of each stream is kept */
export async function runVerb(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  kept: Kept,
): Promise<Said> {
  return await new Promise((resolve) => {
    const [out, err] = [new KeptOutput(kept), new KeptOutput(kept)];
    const end = (code: number | null, more = ""): void => {
      const [stdout, stderr] = [out.text(), `${err.text()}${more}`];
      resolve({ code, stdout, stderr, isCut: out.isCut || err.isCut });
    };
    try {
      const child = spawn(process.execPath, [pathInPackage("bin/mailchute.js"), ...argv], {
        env: { ...env, COLUMNS },
        stdio: ["ignore", "pipe", "pipe"],
        signal,
        timeout: LIMIT_MS,
      });
      child.stdout.on("data", (chunk: Buffer) => out.add(chunk));
      child.stderr.on("data", (chunk: Buffer) => err.add(chunk));
      child.on("error", (error) => end(null, error.message));
      child.on("close", (code) => end(code));
    } catch (error) {
      // An argument has a NUL character, or is too long.
      end(null, error instanceof Error ? error.message : String(error));
    }
  });
}

/** Keeps the first or last part of a stream in bounded memory. */
class KeptOutput {
  private readonly parts: Buffer[] = [];
  private partsBytes = 0;
  private bytes = 0;

  constructor(private readonly kept: Kept) {}

  get isCut(): boolean {
    return this.bytes > this.kept.bytesMax;
  }

  add(chunk: Buffer): void {
    const { bytesMax, end } = this.kept;
    this.bytes += chunk.length;
    if (end === "first" && this.partsBytes >= bytesMax) return;
    this.parts.push(chunk);
    this.partsBytes += chunk.length;
    if (end === "first") return;
    for (let first = this.parts[0]; first !== undefined; first = this.parts[0]) {
      if (this.partsBytes - first.length < bytesMax) return;
      this.parts.shift();
      this.partsBytes -= first.length;
    }
  }

  /** The kept text, with a note if it was cut. */
  text(): string {
    const { bytesMax, end } = this.kept;
    const all = Buffer.concat(this.parts);
    if (!this.isCut) return all.toString();
    const note = `(cut: the ${end} ${bytesMax} of ${this.bytes} bytes)`;
    return end === "first"
      ? `${all.subarray(0, bytesMax).toString()}\n${note}\n`
      : `${note}\n${all.subarray(-bytesMax).toString()}`;
  }
}
