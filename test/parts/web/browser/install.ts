/**
 * Installs what drives a browser, and the checker of accessibility, in exact versions into a folder that is kept:
 * `$MAILCHUTE_BROWSER_CACHE`, or one below node_modules. Vitest runs it once, before `npm run test:web`.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { CACHE, findChromium, isInstalled, PACKAGES } from "./found.ts";

export default function install(): void {
  if (findChromium() === undefined)
    throw new Error("there is no chromium: apt-get install -y chromium");
  const wanted = Object.entries(PACKAGES);
  if (wanted.every(([name, version]) => isInstalled(name, version))) return;
  fs.mkdirSync(CACHE, { recursive: true });
  fs.writeFileSync(join(CACHE, "package.json"), '{"private":true}\n');
  execFileSync(
    "npm",
    ["install", "--no-audit", "--no-fund", "--save-exact"].concat(
      wanted.map(([name, version]) => `${name}@${version}`),
    ),
    { cwd: CACHE, stdio: "inherit" },
  );
}
