/** Runs what a page of the documents shows, as a newcomer would: block after block in a fresh directory. */
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Block {
  language: string;
  text: string;
}

/** Fenced blocks that name their language. */
export const blocksOf = (text: string): Block[] =>
  [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = "", body = ""]) => ({
    language,
    text: body,
  }));

/** All pages of docs/, as paths from the root. */
export const pagesOfDocs = (): string[] =>
  fs
    .readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`)
    .sort();

/** A block as a part of a shell script. */
export function asShell({ language, text }: Block): string {
  if (language === "python") return `python3 - <<'PYTHON'\n${text}PYTHON\n`;
  if (language === "js") return `cat > example.mjs <<'JS'\n${text}JS\nnode example.mjs\n`;
  return language === "bash" ? text : "";
}

/** A program of this name that stands before all others: what a page needs, and the machine of the tests lacks. */
export function putProgram(dir: string, name: string, script: string): void {
  fs.mkdirSync(join(dir, "bin"), { recursive: true });
  fs.writeFileSync(join(dir, "bin", name), `#!/bin/sh\n${script}`, { mode: 0o755 });
}

/** A stand-in for claude that does what its script says: test/fixtures/programs/fake-agent/script.mjs. */
export function putClaude(dir: string, script: object): void {
  const path = join(dir, "claude-script.json");
  fs.writeFileSync(path, JSON.stringify(script));
  const program = join(ROOT, "test", "fixtures", "programs", "fake-claude.mjs");
  const env = `FAKE_AGENT='${path}' FAKE_AGENT_STATE='${join(dir, "claude-state")}'`;
  putProgram(dir, "claude", `${env} exec '${process.execPath}' '${program}' "$@"\n`);
}

/** A repository with a first commit of these files, and a person who commits. */
export function putRepository(path: string, files: Record<string, string>): void {
  fs.mkdirSync(path, { recursive: true });
  const git = (...args: string[]): void => {
    execFileSync("git", args, { cwd: path, stdio: "ignore" });
  };
  git("init", "-q", "--initial-branch=main");
  git("config", "user.name", "A Person");
  git("config", "user.email", "person@example.invalid");
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(join(path, name), text);
  git("add", ".");
  git("commit", "-qm", "first");
}

/** Puts `mailchute` and `npx mailchute` into `bin/`, both the built command line. */
function installFor(dir: string): void {
  const launcher = `exec '${process.execPath}' '${join(ROOT, "bin", "mailchute.js")}' "$@"\n`;
  putProgram(dir, "mailchute", launcher);
  putProgram(dir, "npx", `shift\n${launcher}`);
  fs.mkdirSync(join(dir, "node_modules"), { recursive: true });
  fs.symlinkSync(ROOT, join(dir, "node_modules", "mailchute"));
}

/**
 * Runs a script in a directory, with `bin/` of that directory first in PATH. `/tmp/` in the script is that directory.
 * @returns its output; it must end with 0
 */
export async function runAsNewcomer(
  dir: string,
  script: string,
  env: Record<string, string> = {},
): Promise<string> {
  installFor(dir);
  // A group of its own: whatever it started ends with the test.
  const child = spawn("bash", ["-euo", "pipefail", "-c", script.replaceAll("/tmp/", `${dir}/`)], {
    cwd: dir,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env, PATH: `${join(dir, "bin")}${delimiter}${process.env["PATH"]}` },
  });
  onTestFinished(() => {
    try {
      process.kill(-(child.pid as number), "SIGKILL");
    } catch {
      // All of it has ended.
    }
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  // Not "close": a supervisor that a failed script left behind holds the pipes.
  const code = await new Promise((done) => child.once("exit", done));
  expect(code, output).toBe(0);
  return output;
}
