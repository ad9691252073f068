/** Detects by an error that an upgrade has replaced the files of a running process. */
import { dirname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { pathOfEntry } from "./package.ts";

/** True if this error says that one of our own files cannot be imported, because an upgrade has removed it. */
export function isOwnFileGone(error: unknown): boolean {
  // A handler may throw anything.
  if (!(error instanceof Error)) return false;
  const { code, url, requireStack } = error as NodeJS.ErrnoException & Record<string, unknown>;
  const ours = join(dirname(pathOfEntry("any")), sep);
  // An ES module, of the library.
  if (code === "ERR_MODULE_NOT_FOUND") return String(url).startsWith(pathToFileURL(ours).href);
  const importer = Array.isArray(requireStack) ? String(requireStack[0]) : "";
  // Our own files also import packages, whose names are no paths.
  const isPath = /^Cannot find module '\.\.?\//.test(error.message);
  return code === "MODULE_NOT_FOUND" && isPath && importer.startsWith(ours);
}
