/** Runs what a page of the documents shows, as a newcomer would: block after block in a fresh directory. */
import { spawn } from "node:child_process";
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

/** Puts `mailchute` and `npx mailchute` into `bin/`, both the built command line. */
function installFor(dir: string): void {
  const launcher = join(ROOT, "bin", "mailchute.js");
  fs.mkdirSync(join(dir, "bin"), { recursive: true });
  for (const [name, shift] of [
    ["npx", "shift\n"],
    ["mailchute", ""],
  ] as const)
    fs.writeFileSync(
      join(dir, "bin", name),
      `#!/bin/sh\n${shift}exec '${process.execPath}' '${launcher}' "$@"\n`,
      { mode: 0o755 },
    );
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
