/** Finds the browser and the packages that drive it. They do not come with `npm ci`: `npm run test:web` installs the packages. */
import fs from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { areInstalled } from "../../../support/install-packages.ts";

export const PACKAGES = { "playwright-core": "1.65.1", "axe-core": "4.14.1" };

export const CACHE =
  process.env["MAILCHUTE_BROWSER_CACHE"] ??
  fileURLToPath(new URL("../../../../node_modules/.cache/mailchute-browser", import.meta.url));

/** The path of Debian's Chromium; undefined when it is not installed. */
export function findChromium(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.map((dir) => join(dir, "chromium")).find((path) => fs.existsSync(path));
}

/** Both the browser and the packages are here. */
export const HAS_BROWSER = findChromium() !== undefined && areInstalled(CACHE, PACKAGES);

export const fromCache = createRequire(join(CACHE, "package.json"));
