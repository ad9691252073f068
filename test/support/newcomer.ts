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

/**
 * A stand-in for a coding agent that does what its script says: test/fixtures/programs/fake-agent/script.mjs. All of it lies where a
 * program behind walls finds it: in `programs/`, and what it keeps in the home of the program.
 */
function putAgent(dir: string, name: string, script: object): void {
  const programs = join(dir, "programs");
  fs.cpSync(join(ROOT, "test", "fixtures", "programs"), programs, { recursive: true });
  const path = join(programs, `${name}-script.json`);
  fs.writeFileSync(path, JSON.stringify(script));
  const program = join(programs, `fake-${name}.mjs`);
  const env = `FAKE_AGENT='${path}' FAKE_AGENT_STATE='${join(dir, `.${name}`, "fake")}'`;
  putProgram(dir, name, `${env} exec '${process.execPath}' '${program}' "$@"\n`);
}

export const putClaude = (dir: string, script: object): void => putAgent(dir, "claude", script);
export const putCodex = (dir: string, script: object): void => putAgent(dir, "codex", script);

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
  if (fs.existsSync(join(dir, "node_modules"))) return;
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
  const ours = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) =>
        !/^(?:(?:MAILCHUTE|DROVER|GIT|VITEST|npm)_|(?:INIT_CWD|UV_THREADPOOL_SIZE|VITEST)$)/.test(
          name,
        ),
    ),
  );
  // A group of its own: whatever it started ends with the test.
  const child = spawn("bash", ["-euo", "pipefail", "-c", script.replaceAll("/tmp/", `${dir}/`)], {
    cwd: dir,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...ours, ...env, PATH: `${join(dir, "bin")}${delimiter}${process.env["PATH"]}` },
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

/** A block for the shell, and what the page says that one sees after it. */
export interface PageStep {
  script: string;
  seen: string | undefined;
}

/** The blocks for bash of a page, each with the text block that follows it. */
export function stepsOf(page: string): PageStep[] {
  const steps: PageStep[] = [];
  let isAfterScript = false;
  for (const { language, text } of blocksOf(page)) {
    if (language === "bash") steps.push({ script: text, seen: undefined });
    const last = steps.at(-1);
    if (language === "text" && last !== undefined && isAfterScript) last.seen = text;
    isAfterScript = language === "bash";
  }
  return steps;
}

/** What differs from run to run becomes a word for its kind; columns move with it. */
function masked(text: string, dir: string): string {
  return text
    .replaceAll(dir, "/home/me")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z?/g, "TIME")
    .replace(/\d{4}-\d\d-\d\d( \d\d:\d\d)?/g, "DATE")
    .replace(/\b\d\d:\d\d(?::\d\d)?\b/g, "CLOCK")
    .replace(/just now|\b\d+ (?:s|min|h) ago/g, "AGO")
    .replace(/\b\d[\d,.]* (?:µs|ms|s|min|h)(?![\w])/g, "DURATION")
    .replace(/\b\d[\d,.]* (?:B|kB|MB|GB)(?![\w])/g, "SIZE")
    .replace(/\bpid \d+/g, "pid N")
    .replace(/\bc-[0-9a-z]{6,}-[0-9a-z]+/g, "COMMAND")
    .replace(/\b(?=[a-f]*\d)[0-9a-f]{7,40}\b/g, "HASH")
    .replace(/[ \t]+/g, " ")
    .replace(/^ | $/gm, "")
    .replace(/\n+/g, "\n")
    .trim();
}

/** `…` stands for a part of a line; alone on its line for any number of lines. */
function asPattern(seen: string): RegExp {
  const lines = seen.split("\n").map((line) =>
    line === "…"
      ? "(?:.*\n)*?"
      : `${line
          .split("…")
          .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
          .join(".*")}\n`,
  );
  return new RegExp(`^${lines.join("")}$`);
}

/** The folders of a user whose home is this directory. */
export const homeOf = (dir: string): Record<string, string> => ({
  HOME: dir,
  XDG_CONFIG_HOME: join(dir, ".config"),
  XDG_DATA_HOME: join(dir, ".local", "share"),
  XDG_STATE_HOME: join(dir, ".local", "state"),
});

/** Kills what was started with this directory in its environment, and has left its group. */
export function killAllOf(dir: string): void {
  for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    try {
      if (fs.readFileSync(`/proc/${pid}/environ`, "utf8").includes(dir))
        process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended, or is not ours.
    }
}

/**
 * Runs the blocks of a page in one shell, in a fresh home directory, and compares what is seen after each with what the page says.
 * A command may fail only in a block that says so: `exit code 1`.
 */
export async function runPage(dir: string, page: string): Promise<void> {
  const steps = stepsOf(page);
  expect(steps.length).toBeGreaterThan(1);
  onTestFinished(() => killAllOf(dir));
  const script = [
    "exec 2>&1",
    "set +e",
    `trap 'printf "\\n@@failed %s: %s\\n" "$?" "$BASH_COMMAND"' ERR`,
    ...steps.flatMap(({ script: text }, index) => [`printf '\\n@@step ${index}\\n'`, text]),
    "exit 0",
  ].join("\n");
  const output = await runAsNewcomer(dir, script, homeOf(dir));
  const parts = output.split(/\n?@@step \d+\n/).slice(1);
  expect(parts, output).toHaveLength(steps.length);
  for (const [index, { script: text, seen }] of steps.entries()) {
    const part = parts[index] as string;
    const failures = [...part.matchAll(/\n?@@failed (\d+): .*\n/g)];
    for (const [failure, code] of failures)
      expect(text, `${failure}\n${part}`).toContain(`exit code ${code}`);
    if (seen === undefined) continue;
    const found = masked(part.replace(/\n?@@failed .*\n/g, ""), dir);
    const wanted = masked(seen, "/home/me");
    if (!asPattern(wanted).test(`${found}\n`)) expect(found, text).toBe(wanted);
  }
}
