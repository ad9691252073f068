/** The morning after: what a person asks of the first page, in at most two clicks and without typing; and the page of a task. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../../../support/temp-dir.ts";
import { openWeb, type Web } from "../open-web.ts";
import { newProfile, until } from "./browser.ts";
import { busyPool } from "./busy-pool.ts";
import { opened } from "./person.ts";
import type { Place, Tab } from "./playwright.ts";

const table = (tab: Tab, title: string): Place =>
  tab.locator(`.table:has(caption:has-text("${title}"))`);

async function open(): Promise<Web> {
  const home = tempDir();
  const folder = join(home, "mailchute/accounts");
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const windows = { five_hour: { used_pct: 88, resets_at_ms: Date.now() + 3_600_000 } };
  const gate = { v: 1, account: "bob", status: "open", until_ms: null, window: null, reason: "" };
  const rest = { closed_at_ms: null, closings: 0, probe: null, answers: 1, windows };
  fs.writeFileSync(join(folder, "bob.json"), JSON.stringify({ ...gate, ...rest }));
  const env = { XDG_STATE_HOME: home };
  return openWeb((await busyPool()).state, undefined, undefined, false, env);
}

/** Where the run of the agent writes what it says and does. */
async function streamOfBob(): Promise<string> {
  const { state } = await busyPool();
  const runs = fs.readdirSync(join(state, "runs"), { recursive: true, encoding: "utf8" });
  const found = runs.find((name) => name.includes("fix-login@") && name.endsWith("events.jsonl"));
  return join(state, "runs", found ?? "");
}

/** From the question of a person to the clicks that answer it, and a text that they lead to. */
const ASKED: [question: string, clicks: ((tab: Tab) => Place)[], title: string, text: RegExp][] = [
  [
    "what waits for me",
    [],
    "Needs you",
    /ada has used \$5 of \$5[\s\S]*The discount is taken twice/,
  ],
  ["what failed, and why", [], "Failed, by cause", /connect ECONNREFUSED 127.0.0.1:5432/],
  ["what it cost", [(tab) => tab.getByRole("link", { name: "$5.02" })], "By agent", /ada\s+5.02/],
  [
    "which agent is stuck",
    [(tab) => tab.getByRole("link", { name: "Agents" })],
    "What they do",
    /bob\s+codex\s+The login loses the query string\s+fix-login\s+\S+( min)?\s?\S*( s)?\s+1[2-9] min/,
  ],
  [
    "whether the quota window is used",
    [(tab) => tab.getByRole("link", { name: "Agents" })],
    "Quotas of their accounts",
    /bob\s+five_hour\s+88 %\s+\S+/,
  ],
  [
    "when a schedule runs next",
    [(tab) => tab.getByRole("link", { name: "Schedules" })],
    "Schedules",
    /nightly[\s\S]*02:30:00/,
  ],
];

it.each(ASKED)("the first page answers: %s", async (_question, clicks, title, text) => {
  const longAgo = new Date(Date.now() - 12 * 60_000 - 5000);
  fs.utimesSync(await streamOfBob(), longAgo, longAgo);
  const tab = await opened(await open(), "/");
  expect(clicks.length).toBeLessThanOrEqual(2);
  for (const click of clicks) await click(tab).click();
  const place = table(tab, title).first();
  await place.getByText(/./).first().waitFor();
  expect(await place.innerText()).toMatch(text);
});

it("the first page leads to the output of a task that failed, and to the diff of another, in two clicks", async () => {
  const web = await open();
  const tab = await opened(web, "/");
  await table(tab, "Failed, by cause").getByText("3", { exact: true }).click();
  await tab.getByRole("heading", { name: "Tasks: failed" }).waitFor();
  await tab.locator('td a[href="/tasks/sync-a"]').click();
  await tab.getByRole("heading", { name: "Bring the customers over" }).waitFor();
  const logs = tab.locator("pre");
  expect(await logs.nth(0).innerText()).toBe("400 of 12,000 customers");
  expect(await logs.nth(1).innerText()).toBe("connect ECONNREFUSED 127.0.0.1:5432");
  const other = await opened(web, "/");
  await table(other, "Needs you").getByText("The discount is taken twice").click();
  await other.getByText("6 changed files, +308 −4").waitFor();
});

it("on a phone the first page begins with what needs a person", async () => {
  const web = await open();
  const tab = await (await newProfile({ size: "phone", scheme: "light" })).newTab();
  await tab.goto(web.newLink());
  await table(tab, "Needs you").waitFor();
  const [first, top, height] = await tab.evaluate<[string, number, number]>(`(() => {
    const one = document.querySelector("#blocks > *");
    return [one.querySelector("caption").textContent, one.getBoundingClientRect().top, innerHeight];
  })()`);
  expect(first).toBe("Needs you");
  expect(top).toBeLessThan(height / 3);
});

it("a tool of the conversation is folded, one that failed is open, and both stay as a person left them", async () => {
  const tab = await opened(await open(), "/tasks/fix-login");
  const isOpen = (at: number): Promise<boolean> =>
    tab.evaluate<boolean>(`document.querySelectorAll("pre details")[${at}].open`);
  await tab.getByText("keeps the query string'; exit 1").waitFor();
  expect(await isOpen(0)).toBe(true);
  await tab.locator("pre summary").first().click();
  expect(await isOpen(0)).toBe(false);
  fs.appendFileSync(await streamOfBob(), "a line that is not of its protocol\n");
  await tab.getByText("a line that is not of its protocol").waitFor();
  expect(await isOpen(0)).toBe(false);
});

it("a log is searched, and its long lines are wrapped in each log from then on", async () => {
  const web = await open();
  const tab = await opened(web, "/tasks/build-docs");
  const field = tab.getByLabel("find in it");
  await field.fill("chapter-6");
  await field.press("Enter");
  await until(tab, "location.search.includes('find=chapter-6')");
  await until(tab, "document.querySelector('.ansi-mark')?.textContent === 'chapter-6'");
  const wraps = "document.querySelector('pre')?.classList.contains('wrapped')";
  expect(await tab.evaluate(wraps)).toBe(false);
  await tab.getByLabel("wrap").click();
  expect(await tab.evaluate(wraps)).toBe(true);
  await tab.goto(`http://127.0.0.1:${web.port}/tasks/fix-login`);
  await until(tab, wraps);
});
