/**
 * What the tests of programs found, by path and version: `programs/<hash of the path>.json` in the user's state directory. If the
 * file is missing or broken, mailchute tries the program out again.
 */
import { createHash } from "node:crypto";
import {
  having,
  type Is,
  isNumber,
  isText,
  listOf,
  type Of,
  oneOf,
  shape,
} from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import { USER_STATE_DEPTH, userStateDir } from "../../host/user-state.ts";
import { lastLine, runToItsEnd } from "./ask-once.ts";
import type { Ability } from "./bench.ts";

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
  const found = knownPrograms(env).read(nameOf(program));
  return found?.program === program && found.version === version ? found.abilities : undefined;
}

/** @throws a system error when it cannot be written */
export function rememberAbilities(
  env: NodeJS.ProcessEnv,
  program: string,
  version: string,
  abilities: Ability[],
): void {
  const known = { program, version, probed_at_ms: Date.now(), abilities };
  knownPrograms(env).replace(nameOf(program), { v: 1, ...known });
}

function nameOf(program: string): string {
  return createHash("sha256").update(program).digest("hex").slice(0, HASH_LENGTH);
}

const known = shape({
  v: oneOf(1),
  program: isText,
  version: isText,
  probed_at_ms: isNumber,
  abilities: listOf(having({ name: isText }) as Is<Ability>),
});
const knownPrograms = (env: NodeJS.ProcessEnv): Documents<Of<typeof known>> =>
  new Documents(userStateDir(env), "programs", known, { depth: USER_STATE_DEPTH });
