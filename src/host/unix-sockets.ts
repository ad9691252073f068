/** The sockets on which programs of this machine listen in the file system. */
import fs from "node:fs";
import { readProc } from "./read-proc.ts";

/** Paths without links. Empty where the system does not list them. */
export function openSockets(): string[] {
  const lines = (readProc("/proc/net/unix")?.toString() ?? "").split("\n");
  const paths = lines.flatMap((line) => /^(?:\S+ +){7}(\/.*)$/.exec(line)?.[1] ?? []);
  return [...new Set(paths)].flatMap((path) => {
    try {
      const real = fs.realpathSync(path);
      return fs.statSync(real).isSocket() ? [real] : [];
    } catch {
      // It is gone, or in another container.
      return [];
    }
  });
}
