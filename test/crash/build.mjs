/**
 * Compiles src/ and these tests into a directory of their own, once for each state of the sources, so that hundreds of
 * short processes need not compile anything and nobody's `dist/` changes under them. Prints, or returns, where.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const PARTS = [
  "src",
  "test/crash/cluster",
  "test/crash/every-step",
  "test/crash/mail",
  "test/crash/schedules",
  "test/support",
  "templates",
];

/** @returns {string} the directory that holds src/, test/crash/cluster/, every-step/, mail/ and schedules/ as JavaScript */
export function buildOnce() {
  const hash = createHash("sha256");
  for (const part of PARTS)
    for (const name of fs.readdirSync(join(root, part), { recursive: true }).sort()) {
      const path = join(root, part, name);
      if (/\.(?:ts|md)$/.test(name)) hash.update(`${part}/${name}\0`).update(fs.readFileSync(path));
    }
  const cache = join(root, "node_modules", ".cache", "mailchute-crash");
  const target = join(cache, hash.digest("hex").slice(0, 16));
  if (fs.existsSync(target)) return target;
  fs.mkdirSync(cache, { recursive: true });
  // Older builds go when they are a day old: another run may still be using a younger one.
  for (const name of fs.readdirSync(cache)) {
    const path = join(cache, name);
    if (Date.now() - fs.statSync(path).mtimeMs > 24 * 3600 * 1000)
      fs.rmSync(path, { recursive: true, force: true });
  }
  const staged = fs.mkdtempSync(join(cache, "building-"));
  const tsc = join(root, "node_modules", ".bin", "tsc");
  execFileSync(tsc, ["-p", join(root, "test/crash/tsconfig.json"), "--outDir", staged], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  fs.copyFileSync(join(root, "package.json"), join(staged, "package.json"));
  fs.cpSync(join(root, "templates"), join(staged, "templates"), { recursive: true });
  try {
    fs.renameSync(staged, target);
  } catch (error) {
    // Somebody else was faster.
    if (!fs.existsSync(target)) throw error;
    fs.rmSync(staged, { recursive: true, force: true });
  }
  return target;
}
