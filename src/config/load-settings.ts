/** Reads the settings of a state tree from its files. `decode-settings` interprets them. */
import { join, resolve } from "node:path";
import { ErrInvalidConfig, messageOf, systemCode } from "../core/errors.ts";
import { readRegular } from "../host/regular-file.ts";
import { decodeSettings, type LoadedSettings } from "./decode-settings.ts";

const CONFIG_BYTES_MAX = 1024 * 1024;

export interface LoadOptions {
  stateDir: string;
  env: NodeJS.ProcessEnv;
  /** Values given on the command line, by dotted path; undefined = not given. */
  flags?: Readonly<Record<string, unknown>>;
}

/**
 * A flag overrides the environment, which overrides config.yaml, which overrides the default value.
 * @throws ErrInvalidConfig with the file and line:column, or the variable, or the flag
 */
export function loadSettings({ stateDir, env, flags = {} }: LoadOptions): LoadedSettings {
  const path = join(resolve(stateDir), "config.yaml");
  return decodeSettings({ path, text: readConfig(path), env, flags });
}

/**
 * The text of config.yaml; undefined when there is no file.
 * @throws ErrInvalidConfig when it is not a regular file, too large, not UTF-8, or cannot be read
 */
function readConfig(path: string): string | undefined {
  try {
    const bytes = readRegular(path, { isNamed: true, bytesMax: CONFIG_BYTES_MAX });
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw new ErrInvalidConfig(`cannot read config.yaml: ${messageOf(error)}`, {
      path,
      phase: "read",
      cause: error,
      hint: "check that it is a readable UTF-8 file",
    });
  }
}
