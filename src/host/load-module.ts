/** Loads code of the user: JavaScript, TypeScript, and packages. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Jiti } from "jiti";
import { systemCode } from "../core/errors.ts";
import { pathOfNothing } from "./package.ts";
import { tryStatOf } from "./regular-file.ts";

const isTypeScript = (path: string): boolean => /\.[cm]?ts$/.test(path);

/**
 * Makes a loader without a cache on disk. By default, jiti keeps a cache in the shared folder for temporary files, where other users
 * could put code into our process.
 */
async function newTypeScriptLoader(): Promise<Jiti> {
  const { createJiti } = await import("jiti");
  return createJiti(import.meta.url, { fsCache: false, esmEvalTempFile: false });
}

/** Makes the loader for this file ready: Node prepares its own with the first import. Runs no code of the user. */
export async function prepareLoader(path: string): Promise<void> {
  if (isTypeScript(path)) (await newTypeScriptLoader()).transform({ source: "", ts: true });
  else await import(pathToFileURL(pathOfNothing()).href);
}

/** The default export of a file. @throws what its code throws */
export async function defaultOf(path: string): Promise<unknown> {
  // The loader would wait for a pipe.
  if (tryStatOf(path)?.isFile() === false) throw new TypeError("it is not a regular file");
  const loaded: unknown = isTypeScript(path)
    ? await (await newTypeScriptLoader()).import(path)
    : await import(pathToFileURL(path).href);
  return (loaded as { default?: unknown }).default;
}

/** The file of a package that is installed in `dir`, or above it. @throws when there is none */
export async function fileOfPackage(name: string, dir: string): Promise<string> {
  const require = createRequire(join(dir, "of.js"));
  try {
    return require.resolve(name);
  } catch (error) {
    // The package has an ES module only.
    const found = require.resolve.paths(name)?.find((one) => tryStatOf(join(one, name)));
    if (systemCode(error) !== "ERR_PACKAGE_PATH_NOT_EXPORTED" || found === undefined) throw error;
    return (await newTypeScriptLoader()).esmResolve(name, { parentURL: join(dir, "of.js") });
  }
}
