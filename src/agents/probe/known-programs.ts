/**
 * What the tests of programs found, by path and version: `programs/<hash of the path>.json` in the user's state directory. If the
 * file is missing or broken, mailchute tries the program out again.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { readDocument, replaceDocument } from "../../host/documents.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { USER_STATE_DEPTH, userStateDir } from "../../host/user-state.ts";
import { lastLine, runToItsEnd } from "./ask-once.ts";
import type { Ability } from "./bench.ts";

interface KnownProgram {
  v: 1;
  program: string;
  version: string;
  probed_at_ms: number;
  abilities: Ability[];
}

const VERSION_MS_MAX = 10_000;
const HASH_LENGTH = 16;

/** @returns the version, or why it cannot be read */
export async function askVersion(
  path: string,
  env: NodeJS.ProcessEnv,
): Promise<{ version: string } | { fault: string }> {
  const argv = [path, "--version"];
  const output = await runToItsEnd({ argv, cwd: "/", env, input: "", limitMs: VERSION_MS_MAX });
  const [version] = /\d+\.\d+\.\d+[\w.+-]*/.exec(output.stdout) ?? [];
  if (version !== undefined) return { version };
  const said = lastLine(output.stdout) ?? lastLine(output.stderr) ?? "nothing";
  return { fault: output.fault ?? `to --version it says ${said}` };
}

export function recallAbilities(
  env: NodeJS.ProcessEnv,
  program: string,
  version: string,
): Ability[] | undefined {
  const found = readDocument<KnownProgram>(pathOf(env, program));
  const isIt = found?.v === 1 && found.program === program && found.version === version;
  return isIt && Array.isArray(found.abilities) ? found.abilities : undefined;
}

/** @throws a system error when it cannot be written */
export function rememberAbilities(
  env: NodeJS.ProcessEnv,
  program: string,
  version: string,
  abilities: Ability[],
): void {
  makeDirs(join(userStateDir(env), "programs"), USER_STATE_DEPTH);
  const known: KnownProgram = { v: 1, program, version, probed_at_ms: Date.now(), abilities };
  replaceDocument(pathOf(env, program), known);
}

function pathOf(env: NodeJS.ProcessEnv, program: string): string {
  const hash = createHash("sha256").update(program).digest("hex").slice(0, HASH_LENGTH);
  return join(userStateDir(env), "programs", `${hash}.json`);
}
