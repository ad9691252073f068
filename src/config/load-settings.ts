/** Reads the settings of a state tree from its files. `decode-settings` interprets them. */
import fs from "node:fs";
import { join, resolve } from "node:path";
import { ErrInvalidConfig, messageOf, systemCode } from "../core/errors.ts";
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
    // Without O_NONBLOCK, opening a pipe would wait for ever.
    const fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    try {
      const stats = fs.fstatSync(fd);
      if (!stats.isFile())
        throw new ErrInvalidConfig("cannot read config.yaml: it is not a regular file", {
          path,
          phase: "read",
        });
      if (stats.size > CONFIG_BYTES_MAX) {
        throw new ErrInvalidConfig(
          `config.yaml has ${stats.size} bytes, more than the limit of ${CONFIG_BYTES_MAX}`,
          { path, phase: "read" },
        );
      }
      return new TextDecoder("utf-8", { fatal: true }).decode(fs.readFileSync(fd));
    } finally {
      fs.closeSync(fd);
    }
  } catch (error) {
    if (error instanceof ErrInvalidConfig) throw error;
    if (systemCode(error) === "ENOENT") return undefined;
    throw new ErrInvalidConfig(`cannot read config.yaml: ${messageOf(error)}`, {
      path,
      phase: "read",
      cause: error,
      hint: "check that it is a readable UTF-8 file",
    });
  }
}
