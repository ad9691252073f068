/**
 * Installs the real programs, in the exact versions that these checks are about, into a folder that is kept:
 * `$MAILCHUTE_AGENTS_CACHE`, or one below node_modules. Vitest runs it once, before the checks.
 */
import { execFileSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages, type Packages } from "../../support/install-packages.ts";

/** True with `npm run test:agents -- --real`: all programs, and long series. */
export const IS_WHOLE = process.env["MAILCHUTE_AGENTS"] === "all";

const PACKAGES = {
  claude: { "@anthropic-ai/claude-code": "2.1.332" },
  codex: { "@openai/codex": "0.171.0" },
  opencode: { "opencode-ai": "1.18.33" },
};
/** These need the newer Node that comes with them. */
const MORE_PACKAGES = {
  qwen: { "@qwen-code/qwen-code": "0.24.4" },
  gemini: { "@google/gemini-cli": "0.61.0" },
  copilot: { "@github/copilot": "1.0.102" },
  cline: { cline: "3.0.65" },
};
const NODE = { node: "22.23.3" };

export type ProgramName = keyof typeof PACKAGES | keyof typeof MORE_PACKAGES;

const installed: Partial<Record<ProgramName, Packages>> = {
  ...PACKAGES,
  ...(IS_WHOLE ? MORE_PACKAGES : {}),
};
export const PROGRAM_NAMES = Object.keys(installed) as ProgramName[];

const CACHE =
  process.env["MAILCHUTE_AGENTS_CACHE"] ??
  fileURLToPath(new URL("../../../node_modules/.cache/mailchute-agents", import.meta.url));

export const programPath = (name: ProgramName): string => join(CACHE, "node_modules", ".bin", name);

/** PATH of a program, with the Node that it needs. */
export const pathOf = (name: ProgramName): string =>
  [
    ...(name in MORE_PACKAGES ? [join(CACHE, "node_modules", "node", "bin")] : []),
    process.env["PATH"] ?? "",
  ].join(delimiter);

export const versionOf = (name: ProgramName): string => Object.values(installed[name] ?? {}).join();

export default function install(): void {
  installPackages(CACHE, Object.assign({}, ...Object.values(installed), IS_WHOLE ? NODE : {}));
  // claude's program is put in place by a script of its package, which npm can be told not to run.
  for (const name of PROGRAM_NAMES)
    execFileSync(programPath(name), ["--version"], {
      stdio: "inherit",
      env: { ...process.env, PATH: pathOf(name) },
    });
}
