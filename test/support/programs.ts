/** Starts the small programs of `test/fixtures/programs` as real processes, and leaves none behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export interface Program {
  child: ChildProcess;
  /** What it printed so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves when it ended and all its output was read. */
  ended: Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>;
}

export interface StartOptions {
  env?: Record<string, string>;
  /** Leads a process group of its own. */
  detached?: boolean;
}

export function programPath(name: string): string {
  return fileURLToPath(new URL(`../fixtures/programs/${name}`, import.meta.url));
}

/** @param name a file in `test/fixtures/programs`: `.mjs` runs in Node, `.sh` in the shell */
export function startProgram(
  name: string,
  args: readonly string[],
  options: StartOptions = {},
): Program {
  const runner = name.endsWith(".sh") ? "/bin/sh" : process.execPath;
  const child = spawn(runner, [programPath(name), ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...options.env },
    detached: options.detached ?? false,
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => {
    // It ended without reading; how it ended says more.
  });
  const ended = new Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>(
    (resolve, reject) => {
      child.once("error", reject);
      child.once("close", (exitCode, signal) => resolve({ exitCode, signal }));
    },
  );
  ended.catch(() => {
    // Whoever waits for it hears of it.
  });
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  });
  return { child, stdout: () => stdout, stderr: () => stderr, ended };
}
