/** A few pages in a real browser, where there is one: `npm run test:web` installs it and looks at all pages. */
import { describe, expect, it } from "vitest";
import { newPool } from "../../support/pool.ts";
import { newProfile, until } from "./browser/browser.ts";
import { HAS_BROWSER } from "./browser/found.ts";
import { openWeb } from "./open-web.ts";

if (!HAS_BROWSER)
  console.log(
    "skipped, because there is no browser: apt-get install -y chromium; npm run test:web",
  );

describe.skipIf(!HAS_BROWSER)("in a browser", () => {
  it("a link opens the overview; a click opens a task, and markup in its words stays text", async () => {
    const pool = newPool({ config: "workers: 1\ndurability: process\nretry: {max_attempts: 1}\n" });
    const markup = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
    const print = ["sh", "-c", 'echo "$0"; echo last line; echo disk full >&2; exit 1', markup];
    pool.drop("bad", { title: markup, exec: print });
    await pool.run(["run", "--drain"]);
    const web = await openWeb(pool.state);
    const tab = await (await newProfile()).newTab();
    await tab.goto(web.newLink());
    await tab.getByText("disk full").first().waitFor();
    expect(await tab.getByRole("heading", { name: "Overview" }).count()).toBe(1);
    expect(tab.url()).toBe(`http://127.0.0.1:${web.port}/`);
    await tab.getByRole("link", { name: "bad" }).first().click();
    await tab.getByRole("link", { name: /^output/ }).click();
    await until(tab, "document.querySelector('pre')?.textContent.endsWith('last line')");
    expect(await tab.evaluate("document.title")).toMatch(/ · mailchute$/);
    expect(await tab.locator("main img, main script").count()).toBe(0);
    expect(await tab.locator("pre").first().innerText()).toBe(`${markup}\nlast line`);
  });

  it("without a link it says what to open, and shows nothing of the pool", async () => {
    const pool = newPool();
    pool.drop("secret-name", { exec: ["true"] });
    const web = await openWeb(pool.state);
    const tab = await (await newProfile()).newTab();
    await tab.goto(`http://127.0.0.1:${web.port}/tasks`);
    await tab.getByText("open the link that `mailchute web` prints").waitFor();
    expect(await tab.locator("body").innerText()).not.toContain("secret-name");
  });

  it("a link that was used is told so, and the browser that used it goes on", async () => {
    const web = await openWeb(newPool().state);
    const link = web.newLink();
    const one = await newProfile();
    await (await one.newTab()).goto(link);
    const tab = await one.newTab();
    await tab.goto(link);
    await tab.getByRole("heading", { name: "Overview" }).waitFor();
    const other = await (await newProfile()).newTab();
    await other.goto(link);
    await other.getByText("this link was used before, or is older than a minute").waitFor();
  });
});
