/**
 * Pictures of pages. `MAILCHUTE_WEB_IMAGES=1 npm run test:web` puts those of the documents into `docs/images`, and
 * `MAILCHUTE_WEB_LOOKS=FOLDER` those of all pages into a folder.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { Look } from "./browser.ts";
import type { Tab } from "./playwright.ts";

const FOLDER = fileURLToPath(new URL("../../../../docs/images", import.meta.url));
const BYTES_MAX = 150_000;
/** Pages that the documents show in these looks; all others are shown in light colours on a desk. */
const DARK = new Set(["overview"]);

/** @param image name of the picture; undefined: the documents show none of this page */
export async function takeImage(tab: Tab, image: string | undefined, look: Look): Promise<void> {
  const { MAILCHUTE_WEB_LOOKS: folder, MAILCHUTE_WEB_IMAGES: isAsked } = process.env;
  if (folder !== undefined) {
    const page = new URL(tab.url());
    const name = `${page.pathname}${page.search}`.replace(/\W+/g, "-").slice(1) || "overview";
    const file = join(folder, `${name}-${look.size}-${look.scheme}.png`);
    fs.writeFileSync(file, await tab.screenshot({ fullPage: true }));
  }
  if (image === undefined || look.size !== "desk") return;
  const isDark = look.scheme === "dark";
  if (isDark && !DARK.has(image)) return;
  const bytes = await tab.screenshot({});
  expect(bytes.length, `bytes of the picture of ${tab.url()}`).toBeLessThanOrEqual(BYTES_MAX);
  if (isAsked !== "1") return;
  if (!fs.existsSync(FOLDER)) fs.mkdirSync(FOLDER);
  fs.writeFileSync(join(FOLDER, `web-${image}${isDark ? "-dark" : ""}.png`), bytes);
}
