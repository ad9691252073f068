/**
 * Installs the real programs, in the exact versions that these checks are about, into a folder that is kept:
 * `$MAILCHUTE_AGENTS_CACHE`, or one below node_modules. Vitest runs it once, before the checks.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** npm takes an older claude on Node 20 when it is not asked for an exact version. */
const PACKAGES = { "@anthropic-ai/claude-code": "2.1.330", "@openai/codex": "0.169.0" };

const CACHE =
  process.env["MAILCHUTE_AGENTS_CACHE"] ??
  fileURLToPath(new URL("../../../node_modules/.cache/mailchute-agents", import.meta.url));

export const programPath = (name: "claude" | "codex"): string =>
  join(CACHE, "node_modules", ".bin", name);

export default function install(): void {
  const missing = Object.entries(PACKAGES).filter(([name, version]) => installed(name) !== version);
  if (missing.length > 0) {
    fs.mkdirSync(CACHE, { recursive: true });
    fs.writeFileSync(join(CACHE, "package.json"), '{"private":true}\n');
    const wanted = Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`);
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "--save-exact", ...wanted], {
      cwd: CACHE,
      stdio: "inherit",
    });
  }
  // claude's program is put in place by a script of its package, which npm can be told not to run.
  for (const name of ["claude", "codex"] as const)
    execFileSync(programPath(name), ["--version"], { stdio: "inherit" });
}

function installed(name: string): string | undefined {
  const path = join(CACHE, "node_modules", name, "package.json");
  if (!fs.existsSync(path)) return undefined;
  return (JSON.parse(fs.readFileSync(path, "utf8")) as { version: string }).version;
}
