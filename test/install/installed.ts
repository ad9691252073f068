/** The package as others get it: packed, and installed with npm outside of the clone. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type OnEnd, tempDir } from "../support/temp-dir.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const QUIET = ["--no-audit", "--no-fund", "--silent", "--prefer-offline"];

export interface Packed {
  /** Path of the archive. */
  path: string;
  bytes: number;
  unpackedBytes: number;
  files: string[];
}

/** Packs what `npm run build` has made. */
export function pack(onEnd: OnEnd): Packed {
  const dir = tempDir(onEnd);
  const args = ["pack", "--ignore-scripts", "--json", "--pack-destination", dir];
  const text = execFileSync("npm", args, { cwd: ROOT, encoding: "utf8" });
  const [facts] = JSON.parse(text) as {
    filename: string;
    size: number;
    unpackedSize: number;
    files: { path: string }[];
  }[];
  if (facts === undefined) throw new Error(`npm pack said ${text}`);
  const { filename, size, unpackedSize, files } = facts;
  return {
    path: join(dir, filename),
    bytes: size,
    unpackedBytes: unpackedSize,
    files: files.map(({ path }) => path),
  };
}

/** Packs it again as another version, with a file of other content and name in the place of each chunk that is loaded late. */
export function packAs(packed: Packed, version: string, onEnd: OnEnd): string {
  const dir = tempDir(onEnd);
  execFileSync("tar", ["-xzf", packed.path, "-C", dir]);
  const inPackage = (path: string): string => join(dir, "package", path);
  const manifest = JSON.parse(fs.readFileSync(inPackage("package.json"), "utf8")) as object;
  fs.writeFileSync(inPackage("package.json"), JSON.stringify({ ...manifest, version }));
  const hashed = packed.files.filter((path) => /-[\w-]{8}\.[cm]js$/.test(path));
  const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
  const renamed = new Map(
    hashed.map((path) => [nameOf(path), nameOf(path).replace(/-[\w-]{8}\./, "-newnames.")]),
  );
  // Two chunks may differ by their hashes only.
  const taken = new Set<string>();
  for (const [from, to] of renamed) {
    const free = taken.has(to) ? to.replace("newnames", `new${taken.size}`) : to;
    taken.add(free);
    renamed.set(from, free);
  }
  for (const path of packed.files.filter((name) => /^dist\/.*\.[cm]?js$/.test(name))) {
    let code = fs.readFileSync(inPackage(path), "utf8");
    for (const [from, to] of renamed) code = code.replaceAll(from, to);
    fs.writeFileSync(inPackage(path), code);
    const to = renamed.get(nameOf(path));
    if (to !== undefined) fs.renameSync(inPackage(path), inPackage(path.replace(nameOf(path), to)));
  }
  const archive = join(dir, `mailchute-${version}.tgz`);
  execFileSync("tar", ["-czf", archive, "-C", dir, "package"]);
  return archive;
}

/** `npm install --global` below a folder of its own. @returns the path of the command */
export function installGlobally(archive: string, prefix: string): string {
  execFileSync("npm", ["install", "--global", "--prefix", prefix, ...QUIET, archive]);
  return join(prefix, "bin", "mailchute");
}

/** Makes a project that depends on the package. */
export function installInto(project: string, archive: string): void {
  fs.writeFileSync(join(project, "package.json"), '{"private": true, "type": "module"}\n');
  execFileSync("npm", ["install", ...QUIET, archive], { cwd: project });
}
