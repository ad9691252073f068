/** Packages that only named scripts need: exact versions in a folder that is kept, so that they do not come with `npm ci`. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";

/** Versions by names. */
export type Packages = Readonly<Record<string, string>>;

/** @param folder the folder around `node_modules` */
export function areInstalled(folder: string, packages: Packages): boolean {
  return Object.entries(packages).every(([name, version]) => {
    const path = join(folder, "node_modules", name, "package.json");
    if (!fs.existsSync(path)) return false;
    return (JSON.parse(fs.readFileSync(path, "utf8")) as { version: string }).version === version;
  });
}

/** Asks npm only when one of them is missing, or has another version. @throws when npm fails */
export function installPackages(folder: string, packages: Packages): void {
  if (areInstalled(folder, packages)) return;
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(join(folder, "package.json"), '{"private":true}\n');
  // npm takes an older version for an older Node when it is not asked for an exact one.
  const wanted = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--save-exact", ...wanted], {
    cwd: folder,
    stdio: "inherit",
  });
}
