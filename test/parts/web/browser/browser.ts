/** A real browser for tests: Debian's Chromium, driven by playwright-core. What goes wrong in a page fails the test. */
import fs from "node:fs";
import { afterAll, expect, onTestFinished } from "vitest";
import { waitFor } from "../../../support/wait-for.ts";
import { findChromium, fromCache } from "./found.ts";
import type { Browser, Tab } from "./playwright.ts";

export interface Profile {
  /** Opens a tab of this profile, which is where cookies are kept. */
  newTab(): Promise<Tab>;
}

export interface Look {
  size: "desk" | "phone";
  scheme: "light" | "dark";
}

const SIZES = { desk: { width: 1280, height: 800 }, phone: { width: 390, height: 780 } };

let launched: Promise<Browser> | undefined;

afterAll(async () => {
  await (await launched)?.close();
  launched = undefined;
});

function browser(): Promise<Browser> {
  const { chromium } = fromCache("playwright-core") as {
    chromium: { launch(options: object): Promise<Browser> };
  };
  // Chromium does not run as root in its sandbox.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  launched ??= chromium.launch({ executablePath: findChromium(), args });
  return launched;
}

const PLAIN: Look = { size: "desk", scheme: "light" };

export async function newProfile({ size, scheme }: Look = PLAIN): Promise<Profile> {
  const context = await (await browser()).newContext({
    viewport: SIZES[size],
    colorScheme: scheme,
    reducedMotion: "reduce",
    timezoneId: "UTC",
    locale: "en-GB",
  });
  const wrong: string[] = [];
  onTestFinished(async () => {
    await context.close();
    expect(wrong, "errors in the console of a page").toEqual([]);
  });
  return {
    newTab: async () => {
      const tab = await context.newPage();
      tab.on("console", (message) => {
        const told = message as { type(): string; text(): string };
        // A request that is refused, or finds no server, is one, too: some tests ask for that.
        const isOfRequest = told.text().startsWith("Failed to load resource");
        if (told.type() === "error" && !isOfRequest) wrong.push(told.text());
      });
      tab.on("pageerror", (error) => wrong.push(String(error)));
      return tab;
    },
  };
}

interface Violation {
  id: string;
  help: string;
  nodes: { html: string; failureSummary: string }[];
}

/** Fails with what axe-core finds on the page. */
export async function expectAccessible(tab: Tab): Promise<void> {
  await tab.evaluate(fs.readFileSync(fromCache.resolve("axe-core/axe.min.js"), "utf8"));
  const found = await tab.evaluate<{ violations: Violation[] }>("axe.run()");
  const told = found.violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}\n${nodes.map(({ html, failureSummary }) => `  ${html}\n  ${failureSummary}`).join("\n")}`,
  );
  expect(told, tab.url()).toEqual([]);
}

/** Waits until an expression is true in the page. Its own way to wait would need `eval`, which our pages forbid. */
export async function until(tab: Tab, expression: string): Promise<void> {
  await waitFor(() => tab.evaluate<boolean>(expression), { what: expression });
}

/** No part of the page is wider than the window. */
export async function expectFits(tab: Tab): Promise<void> {
  const [has, shows] = await tab.evaluate<[number, number]>(
    "[document.documentElement.scrollWidth, document.documentElement.clientWidth]",
  );
  expect(has, `width of ${tab.url()}`).toBeLessThanOrEqual(shows);
}
