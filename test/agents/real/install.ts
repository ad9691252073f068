/**
 * Installs the real programs, in the exact versions that these checks are about, into a folder that is kept:
 * `$MAILCHUTE_AGENTS_CACHE`, or one below node_modules. Vitest runs it once, before the checks.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages } from "../../support/install-packages.ts";

const PACKAGES = {
  "@anthropic-ai/claude-code": "2.1.330",
  "@openai/codex": "0.169.0",
  "opencode-ai": "1.18.33",
};
const PROGRAMS = ["claude", "codex", "opencode"] as const;

const CACHE =
  process.env["MAILCHUTE_AGENTS_CACHE"] ??
  fileURLToPath(new URL("../../../node_modules/.cache/mailchute-agents", import.meta.url));

export const programPath = (name: (typeof PROGRAMS)[number]): string =>
  join(CACHE, "node_modules", ".bin", name);

export default function install(): void {
  installPackages(CACHE, PACKAGES);
  // claude's program is put in place by a script of its package, which npm can be told not to run.
  for (const name of PROGRAMS) execFileSync(programPath(name), ["--version"], { stdio: "inherit" });
}
