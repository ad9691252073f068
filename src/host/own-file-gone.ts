/** Tells an upgrade below a running process by the error that it makes. */
import { dirname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { pathOfEntry } from "./package.ts";

/** True if this is the error of an import of ours whose file is gone: an upgrade has replaced the program below this process. */
export function isOwnFileGone(error: unknown): boolean {
  // A handler may throw anything.
  if (!(error instanceof Error)) return false;
  const { code, url, requireStack } = error as NodeJS.ErrnoException & Record<string, unknown>;
  const ours = join(dirname(pathOfEntry("any")), sep);
  // An ES module, of the library.
  if (code === "ERR_MODULE_NOT_FOUND") return String(url).startsWith(pathToFileURL(ours).href);
  const importer = Array.isArray(requireStack) ? String(requireStack[0]) : "";
  // Our own files ask for packages, too, which are no paths.
  const isPath = error.message.startsWith("Cannot find module './");
  return code === "MODULE_NOT_FOUND" && isPath && importer.startsWith(ours);
}
