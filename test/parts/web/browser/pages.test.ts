/** Each page in a real browser, in both colour schemes and on a phone; moves between pages as people make them. */
import { describe, expect, it } from "vitest";
import { newPool, type Pool } from "../../../support/pool.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { openWeb, type Web } from "../open-web.ts";
import { expectAccessible, expectFits, type Look, newProfile, until } from "./browser.ts";
import { busyPool, PAGES } from "./busy-pool.ts";
import { takeImage } from "./images.ts";
import type { Tab } from "./playwright.ts";

const LOOKS: Look[] = [
  { size: "desk", scheme: "light" },
  { size: "desk", scheme: "dark" },
  { size: "phone", scheme: "light" },
  { size: "phone", scheme: "dark" },
];

async function opened(web: Web, look?: Look): Promise<Tab> {
  const tab = await (await newProfile(look)).newTab();
  await tab.goto(web.newLink());
  await heading(tab, "Overview");
  return tab;
}

async function heading(tab: Tab, name: string): Promise<void> {
  await tab.getByRole("heading", { name, exact: true }).first().waitFor();
}

describe.each(LOOKS)("on a $size, $scheme", (look) => {
  it("each page of a busy pool has no fault for axe-core, and fits", async () => {
    const pool = await busyPool();
    const web = await openWeb(pool.state);
    const tab = await opened(web, look);
    for (const { path, title, image } of PAGES) {
      await tab.goto(`http://127.0.0.1:${web.port}${path}`);
      await heading(tab, title);
      await expectAccessible(tab);
      await expectFits(tab);
      await takeImage(tab, image, look);
    }
  });

  it("each page of an empty pool has no fault either", async () => {
    const web = await openWeb(newPool().state);
    const tab = await opened(web, look);
    for (const { path, isAlways, title } of PAGES) {
      await tab.goto(`http://127.0.0.1:${web.port}${path}`);
      if (isAlways) await heading(tab, title);
      await expectAccessible(tab);
      await expectFits(tab);
    }
  });
});

describe("a person", () => {
  async function pool(): Promise<Pool> {
    const made = newPool({ config: "workers: 1\ndurability: process\nretry: {max_attempts: 1}\n" });
    for (const id of ["one", "two"]) made.drop(id, { exec: ["echo", `words of ${id}`] });
    await made.run(["run", "--drain"]);
    return made;
  }

  it("goes back and on, reloads in the middle, and opens a deep link", async () => {
    const web = await openWeb((await pool()).state);
    const tab = await opened(web);
    const at = `http://127.0.0.1:${web.port}`;
    await tab.getByRole("link", { name: "Tasks" }).click();
    await heading(tab, "Tasks: waiting");
    await tab.getByRole("link", { name: "done" }).click();
    await heading(tab, "Tasks: done");
    expect(tab.url()).toBe(`${at}/tasks?state=done`);
    await tab.getByRole("link", { name: "two" }).first().click();
    await heading(tab, "two");
    await tab.goBack();
    await heading(tab, "Tasks: done");
    await tab.goBack();
    await heading(tab, "Tasks: waiting");
    await tab.goForward();
    await heading(tab, "Tasks: done");
    await tab.reload();
    await heading(tab, "Tasks: done");
    expect(tab.url()).toBe(`${at}/tasks?state=done`);
    await tab.goto(`${at}/tasks/one?file=stdout.log`);
    await tab.getByText("words of one").first().waitFor();
  });

  it("finds a task by a part of its id", async () => {
    const web = await openWeb((await pool()).state);
    const tab = await opened(web);
    await tab.goto(`http://127.0.0.1:${web.port}/tasks?state=done`);
    await heading(tab, "Tasks: done");
    const field = tab.getByLabel(/text in id/);
    await field.fill("tw");
    await field.press("Enter");
    await until(tab, "location.search.includes('find=tw')");
    await until(tab, "document.querySelectorAll('tbody tr').length === 1");
    expect(await tab.locator("tbody").innerText()).toContain("two");
  });

  it("has two tabs, which both follow the pool", async () => {
    const made = await pool();
    const web = await openWeb(made.state);
    const profile = await newProfile();
    const tabs = [await profile.newTab(), await profile.newTab()];
    for (const [n, tab] of tabs.entries()) {
      await tab.goto(n === 0 ? web.newLink() : `http://127.0.0.1:${web.port}/tasks`);
      await heading(tab, n === 0 ? "Overview" : "Tasks: waiting");
    }
    made.drop("three", { exec: ["true"] });
    for (const tab of tabs) await tab.getByRole("link", { name: "three" }).first().waitFor();
  });

  it("is told when the server is gone, and still sees the page", async () => {
    const made = await pool();
    const web = made.spawn(["web", "--port", "0", "--json"]);
    await waitFor(() => web.stdout().endsWith("\n"), { what: "its link" });
    const { link } = JSON.parse(web.stdout()) as { link: string };
    const tab = await (await newProfile()).newTab();
    await tab.goto(link);
    await heading(tab, "Overview");
    web.child.kill("SIGTERM");
    await web.ended;
    await tab.getByText("disconnected: mailchute web does not answer").waitFor();
    await heading(tab, "Overview");
  });
});
