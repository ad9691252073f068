/**
 * Installs what drives a browser, and the checker of accessibility, into a folder that is kept: `$MAILCHUTE_BROWSER_CACHE`, or one below
 * node_modules. Vitest runs it once, before `npm run test:web`.
 */
import { installPackages } from "../../../support/install-packages.ts";
import { CACHE, findChromium, PACKAGES } from "./found.ts";

export default function install(): void {
  if (findChromium() === undefined)
    throw new Error("there is no chromium: apt-get install -y chromium");
  installPackages(CACHE, PACKAGES);
}
