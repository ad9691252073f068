/** Runs the built command line in a child process on a temporary state tree of its own. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { HOST_VARIABLE } from "../../src/host/host-kind.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));

interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

interface RunOptions {
  env?: Record<string, string>;
  input?: string;
  /** Where it is started, seen from `dir`. */
  cwd?: string;
}

export interface Cli {
  /** A temporary directory; the state tree is `state` in it. */
  dir: string;
  inbox: string;
  (args: readonly string[], options?: RunOptions): Promise<CliResult>;
}

/** A command line whose working directory is fresh and goes away with the test. */
export function newCli(): Cli {
  const dir = fs.realpathSync(fs.mkdtempSync(join(os.tmpdir(), "mailchute-cli-")));
  onTestFinished(() => fs.rmSync(dir, { recursive: true, force: true }));
  const run = (args: readonly string[], { env = {}, input = "", cwd = "." }: RunOptions = {}) =>
    new Promise<CliResult>((resolve, reject) => {
      const child = spawn(process.execPath, [LAUNCHER, ...args], {
        cwd: join(dir, cwd),
        env: {
          PATH: process.env["PATH"],
          [HOST_VARIABLE]: process.env[HOST_VARIABLE],
          ...("HOME" in env ? {} : ownFolders(dir)),
          ...env,
        },
      });
      let stdout = "";
      let stderr = "";
      child.stdout.on("data", (chunk: Buffer) => {
        stdout += chunk.toString();
      });
      child.stderr.on("data", (chunk: Buffer) => {
        stderr += chunk.toString();
      });
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, stdout, stderr }));
      child.stdin.on("error", () => {});
      child.stdin.end(input);
    });
  return Object.assign(run, { dir, inbox: join(dir, "state", "mailbox", "inbox") });
}

/** Where a user's mail and other state are kept: not in the folders of the person who runs the tests. */
export function ownFolders(dir: string): Record<string, string> {
  return { XDG_STATE_HOME: join(dir, "xdg"), XDG_DATA_HOME: join(dir, "xdg") };
}

/** Puts a file into the state tree, with the directories above it. */
export function put(cli: Cli, path: string, content: string | object): string {
  const full = join(cli.dir, "state", path);
  fs.mkdirSync(join(full, ".."), { recursive: true, mode: 0o700 });
  fs.writeFileSync(full, typeof content === "string" ? content : JSON.stringify(content));
  return full;
}
