/** Builds a mailchute that is broken on purpose: a copy of the built one, with one line of it changed. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));

interface Change {
  file: string;
  from: string;
  to: string;
}

const CHANGES = {
  /** It lands without its check. */
  unchecked: {
    file: "dist/worker/land.cjs",
    from: "const red = await this.check(order, worktree);",
    to: "const red = undefined;",
  },
} as const satisfies Record<string, Change>;

/** @returns its launcher. The copy is in a directory of its own, two folders above it */
export function breakBuild(name: keyof typeof CHANGES): string {
  const { file, from, to } = CHANGES[name];
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-broken-"));
  for (const part of ["bin", "dist", "templates", "package.json"])
    fs.cpSync(join(ROOT, part), join(dir, part), { recursive: true });
  fs.symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  const text = fs.readFileSync(join(dir, file), "utf8");
  if (!text.includes(from)) throw new Error(`${file} has no line ${from}`);
  fs.writeFileSync(join(dir, file), text.replace(from, to));
  return join(dir, "bin", "mailchute.js");
}
