/** What a page does while it is open, in a real browser: it follows the files, its buttons act, and it says when it cannot. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool, type Pool } from "../../../support/pool.ts";
import { openWeb, type Web } from "../open-web.ts";
import { newProfile, type Profile, until } from "./browser.ts";
import type { Tab } from "./playwright.ts";

async function signedIn(web: Web): Promise<{ profile: Profile; tab: Tab }> {
  const profile = await newProfile();
  const tab = await profile.newTab();
  await tab.goto(web.newLink());
  await tab.getByRole("heading", { name: "Overview", exact: true }).first().waitFor();
  return { profile, tab };
}

async function go(tab: Tab, web: Web, path: string): Promise<void> {
  await tab.goto(`http://127.0.0.1:${web.port}${path}`);
}

/** As it is in a page: these functions run there. */
interface Window {
  document: { body: { innerText: string } };
}
const shows = (tab: Tab, text: string): Promise<unknown> =>
  tab.waitForFunction(
    (part: string) => (globalThis as unknown as Window).document.body.innerText.includes(part),
    text,
  );
const lacks = (tab: Tab, text: string): Promise<unknown> =>
  tab.waitForFunction(
    (part: string) => !(globalThis as unknown as Window).document.body.innerText.includes(part),
    text,
  );
const button = (tab: Tab, name: string) => tab.getByRole("button", { name, exact: true });

/** The answer can be clicked some time after the question: the click waits for it. */
const sure = (tab: Tab, what: string): Promise<unknown> => button(tab, `Yes, ${what}`).click();

async function failing(...ids: string[]): Promise<Pool> {
  const pool = newPool({ config: "workers: 2\ndurability: process\nretry: {max_attempts: 1}\n" });
  for (const id of ids) pool.drop(id, { exec: ["false"] });
  await pool.run(["run", "--drain"]);
  return pool;
}

it("two tabs follow the files, also after a reload, back and forward", async () => {
  const pool = newPool();
  const web = await openWeb(pool.state);
  const { profile, tab } = await signedIn(web);
  await go(tab, web, "/tasks");
  const other = await profile.newTab();
  await go(other, web, "/tasks");
  await shows(other, "no task is waiting");
  pool.drop("first", { exec: ["true"] });
  await shows(tab, "first");
  await shows(other, "first");
  await tab.getByRole("link", { name: /\bfirst$/ }).click();
  await tab.getByRole("heading", { name: "first", exact: true }).first().waitFor();
  await tab.reload();
  await tab.getByRole("heading", { name: "first", exact: true }).first().waitFor();
  await tab.goBack();
  pool.drop("second", { exec: ["true"] });
  await shows(tab, "second");
  await tab.goForward();
  await tab.getByRole("heading", { name: "first", exact: true }).first().waitFor();
  fs.rmSync(join(pool.inbox, "first.json"));
  await shows(tab, "no tray has a task");
});

it("more tabs than a browser has connections all show their page", async () => {
  const web = await openWeb(newPool().state);
  const { profile } = await signedIn(web);
  for (let n = 0; n < 8; n++) {
    const tab = await profile.newTab();
    await go(tab, web, "/tasks");
    await shows(tab, "no task is waiting");
  }
});

it("a button asks before something is lost: no is the default, and one tab tells the others", async () => {
  const pool = newPool();
  pool.drop("one", { exec: ["sleep", "600"] });
  await pool.start();
  const web = await openWeb(pool.state);
  const { profile, tab } = await signedIn(web);
  await go(tab, web, "/tasks/one");
  const other = await profile.newTab();
  await go(other, web, "/tasks/one");
  await button(tab, "Requeue…").waitFor();
  await button(tab, "Cancel…").click();
  await shows(tab, "End the run of one after ");
  await tab.keyboard.press("Enter");
  await lacks(tab, "End the run of one after ");
  // A click that comes with the question does not answer it.
  const press = (text: string): string =>
    `[...document.querySelectorAll("button")].find((one) => one.textContent === "${text}").click();`;
  const isAsked = await tab.evaluate<boolean>(
    `${press("Cancel…")} ${press("Yes, cancel one")} document.querySelector("dialog")?.open`,
  );
  expect(isAsked).toBe(true);
  await sure(tab, "cancel one");
  await shows(tab, "cancel one: cancelled: one");
  await shows(other, "failed");
  expect((await pool.error("one")).kind).toBe("cancelled");
  await pool.stop();
});

it("a filtered list is retried, and an error says its code and what to do", async () => {
  const pool = await failing("sync-1", "sync-2", "other");
  const web = await openWeb(pool.state);
  const { tab } = await signedIn(web);
  await go(tab, web, "/tasks?state=failed&q=sync");
  await button(tab, "Retry all of these…").click();
  await sure(tab, "retry all that are failed and begin with sync");
  await shows(tab, "retry all that are failed and begin with sync: 2 done");
  await shows(tab, "no task is failed, with such an id");
  expect(fs.readdirSync(pool.inbox).sort()).toEqual(["sync-1.json", "sync-2.json"]);
  await go(tab, web, "/");
  await button(tab, "Pause").click();
  await shows(
    tab,
    "ErrSupervisorGone: no supervisor runs here; the command waits for the next one",
  );
  await shows(tab, "do: start one with `mailchute run`");
});

it("it says that there is no supervisor, when it dies, when the tree is gone, and when the server is", async () => {
  const pool = newPool();
  pool.drop("one", { exec: ["sleep", "600"] });
  const web = await openWeb(pool.state);
  const { tab } = await signedIn(web);
  await shows(tab, "no supervisor");
  await shows(tab, "wait: no supervisor runs");
  await shows(tab, "mailchute run");
  await go(tab, web, "/tasks");
  await shows(tab, "no supervisor");
  const { child } = await pool.start();
  await until(tab, "document.querySelector('#state').textContent === 'live'");
  await shows(tab, "no task is waiting");
  child.kill("SIGKILL");
  await shows(tab, "dead: pid");
  await pool.killAll();
  fs.renameSync(pool.state, `${pool.state}-away`);
  await shows(tab, "is gone");
  fs.renameSync(`${pool.state}-away`, pool.state);
  await shows(tab, "no task is waiting");
  await web.close();
  await shows(tab, "disconnected: mailchute web does not answer");
});

it("with --read-only there is no button that acts", async () => {
  const pool = await failing("bad");
  const web = await openWeb(pool.state, undefined, undefined, true);
  const { tab } = await signedIn(web);
  await shows(tab, "bad");
  expect(await button(tab, "Retry").count()).toBe(0);
  expect(await button(tab, "Pause").count()).toBe(0);
});

it("a text of a task runs nothing", async () => {
  const pool = newPool({ config: "workers: 1\ndurability: process\nretry: {max_attempts: 1}\n" });
  const markup = `</pre><img src=x onerror="window.owned=1"><script>window.owned=1</script>`;
  pool.drop("hostile", {
    title: markup,
    exec: ["sh", "-c", 'echo "$0"; echo "$0" >&2; exit 1', markup],
  });
  await pool.run(["run", "--drain"]);
  const web = await openWeb(pool.state);
  const { tab } = await signedIn(web);
  for (const path of ["/", "/tasks?state=failed", "/tasks/hostile"]) {
    await go(tab, web, path);
    await shows(tab, "onerror=");
    const found = await tab.evaluate<[unknown, number]>(
      "[window.owned ?? null, document.querySelectorAll('main :is(img, iframe, script)').length]",
    );
    expect([path, ...found]).toEqual([path, null, 0]);
  }
});
