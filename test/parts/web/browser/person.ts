/** What a person does with a page: opens it, presses a button, reads what came of it. */
import type { Web } from "../open-web.ts";
import { newProfile } from "./browser.ts";
import type { Place, Tab } from "./playwright.ts";

/** Opens a page of the server by a link to it, and waits until it shows something. */
export async function opened(web: Web, path: string): Promise<Tab> {
  const tab = await (await newProfile()).newTab();
  await tab.goto(web.newLink().replace("/#", `${path}#`));
  await tab.locator("#blocks > *").first().waitFor();
  return tab;
}

export function button(tab: Tab, name: string | RegExp): Place {
  return tab.getByRole("button", { name });
}

/** Waits for the outcome of an action. */
export async function said(tab: Tab, what: string, outcome = ""): Promise<void> {
  const text = new RegExp(`^${what}: (?!sent )${outcome}`);
  await tab.locator("#said").getByText(text).first().waitFor();
}
