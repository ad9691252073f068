/** What a person does on the pages of a real browser: each button, its question, its effect; what changes is seen at once; the plan. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { QuestionStore } from "../../../../src/questions/question-store.ts";
import { newPool, type Pool } from "../../../support/pool.ts";
import { openWeb } from "../open-web.ts";
import { until } from "./browser.ts";
import { opened, said } from "./person.ts";
import type { Tab } from "./playwright.ts";

const CONFIG = "workers: 2\ndurability: process\ngrace_ms: 500\nretry: {max_attempts: 1}\n";
/** Half of the changes are seen within this time (ms): a look each second would take longer. */
const SEEN_MS = 200;

async function started(): Promise<Pool> {
  const pool = newPool({ config: CONFIG });
  await pool.start();
  return pool;
}

it("a failed task is put back by a button, and runs again", async () => {
  const pool = await started();
  const go = join(pool.dir, "go");
  pool.drop("bad", { exec: ["test", "-e", go] });
  await pool.error("bad");
  const tab = await opened(await openWeb(pool.state), "/tasks/bad");
  fs.writeFileSync(go, "");
  await tab.getByRole("button", { name: "Retry" }).click();
  await said(tab, "retry bad");
  await tab.locator("dd").getByText("done").first().waitFor();
  await pool.result("bad");
});

it("a run is cancelled only after a yes", async () => {
  const pool = await started();
  pool.drop("long", { exec: ["sleep", "600"] });
  const tab = await opened(await openWeb(pool.state), "/tasks/long");
  await tab.locator("dd").getByText("running").first().waitFor();
  const cancel = tab.getByRole("button", { name: "Cancel…" });
  await cancel.click();
  const dialog = tab.getByRole("dialog");
  await dialog.getByText(/^End the run of long/).waitFor();
  // No has the focus.
  await tab.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  expect(pool.errors()).toEqual([]);
  await cancel.click();
  await dialog.waitFor();
  // Soon after the question it cannot be clicked yet: the click waits for it.
  await tab.getByRole("button", { name: /^Yes, / }).click();
  await said(tab, "cancel long");
  await tab.locator("dd").getByText("failed").first().waitFor();
  expect((await pool.error("long")).kind).toBe("cancelled");
});

it("the pool is paused and goes on", async () => {
  const pool = await started();
  const tab = await opened(await openWeb(pool.state), "/");
  // The buttons for slots go on from what is shown.
  await tab.getByText("0 of 2 busy").waitFor();
  await tab.getByRole("button", { name: "Pause" }).click();
  await said(tab, "pause");
  await tab.getByRole("button", { name: "Resume" }).click();
  await said(tab, "resume");
  await tab.getByRole("button", { name: "Pause" }).waitFor();
  await tab.getByRole("button", { name: "Add a slot" }).click();
  await said(tab, "set slots to 3");
  await tab.getByText("0 of 3 busy").waitFor();
});

it("a question is answered with one click, and leaves the page", async () => {
  const pool = newPool({ config: CONFIG });
  const store = new QuestionStore(pool.state);
  const more = {
    who: "",
    agents: ["*"],
    expects: "limit",
    asked_at_ms: 1,
    ends_at_ms: null,
  } as const;
  store.ask({ id: "q.1", question: "May it?", context: "", ...more });
  const tab = await opened(await openWeb(pool.state), "/questions");
  await tab.getByRole("button", { name: "yes" }).click();
  await said(tab, "answer q.1");
  await tab.getByText("No question waits for an answer.").waitFor();
  expect(store.answerOf("q.1")).toBe("yes");
});

it("with --read-only there is no button", async () => {
  const pool = newPool({ config: CONFIG });
  const web = await openWeb(pool.state, undefined, undefined, true);
  const tab = await opened(web, "/");
  await tab.getByRole("heading", { name: "Overview" }).waitFor();
  expect(await tab.getByRole("button").count()).toBe(0);
});

it("what is dropped is seen within 200 ms", async () => {
  const pool = newPool({ config: CONFIG });
  const tab = await opened(await openWeb(pool.state), "/tasks");
  await tab.getByText("no task is waiting").waitFor();
  await tab.evaluate(`window.seen = {};
    new MutationObserver(() => {
      for (const one of document.querySelectorAll("tbody a")) window.seen[one.querySelector("small")?.textContent] ??= Date.now();
    }).observe(document.body, { childList: true, subtree: true, characterData: true })`);
  const took: number[] = [];
  for (let n = 0; n < 9; n++) {
    const droppedMs = Date.now();
    pool.drop(`new-${n}`, { exec: ["true"] });
    await tab.getByRole("link", { name: `new-${n}` }).waitFor();
    const seen = await tab.evaluate<Record<string, number>>("window.seen");
    took.push((seen[`new-${n}`] ?? Number.POSITIVE_INFINITY) - droppedMs);
  }
  const [, , , , middle] = took.toSorted((a, b) => a - b);
  expect(middle, `of ${took.join(" ")}`).toBeLessThanOrEqual(SEEN_MS);
});

function savePlan(pool: Pool, count: number, doneCount: number): void {
  const nodes = Array.from({ length: count }, (_, n) => ({
    id: `node-${n}`,
    title: `Step ${n}`,
    status: n < doneCount ? "done" : "open",
    exec: ["true"],
    dependencies: n < 50 ? [] : [`node-${n - 50}`, `node-${n - 50 + ((n * 7) % 40)}`],
  }));
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), JSON.stringify({ nodes }));
}

async function placeOf(tab: Tab): Promise<string | null> {
  return await tab.locator(".graph svg > g").getAttribute("transform");
}

async function openedPlan(pool: Pool): Promise<Tab> {
  const tab = await opened(await openWeb(pool.state), "/plan");
  await until(tab, "document.querySelector('.graph svg > g')?.hasAttribute('transform') === true");
  return tab;
}

it("a plan of 1,000 nodes is moved, made larger, and a node of it opened", async () => {
  const pool = newPool({ config: CONFIG });
  savePlan(pool, 1000, 10);
  const tab = await openedPlan(pool);
  expect(await tab.locator(".graph svg a").count()).toBe(1000);
  const whole = await placeOf(tab);
  await tab.getByRole("button", { name: "Larger" }).click();
  const larger = await placeOf(tab);
  expect(larger).not.toBe(whole);
  await tab.locator(".graph svg").scrollIntoViewIfNeeded();
  const [x, y] = await tab.evaluate<[number, number]>(
    "(({ left, top, width, height }) => [left + width / 2, top + height / 2])(document.querySelector('.graph svg').getBoundingClientRect())",
  );
  await tab.mouse.move(x, y);
  await tab.mouse.down();
  await tab.mouse.move(x - 80, y - 20);
  await tab.mouse.up();
  expect(await placeOf(tab)).not.toBe(larger);
  // It was a move, and no click on the node that is there.
  expect(new URL(tab.url()).search).toBe("");
  // By keyboard, too.
  await tab.evaluate("document.querySelectorAll('.graph svg a')[70].focus()");
  const isSeen = await tab.evaluate<boolean>(
    `(([box, seen]) => box.left >= seen.left && box.right <= seen.right && box.top >= seen.top && box.bottom <= seen.bottom)(
      [".graph svg a:focus", ".graph svg"].map((one) => document.querySelector(one).getBoundingClientRect()))`,
  );
  expect(isSeen).toBe(true);
  await tab.keyboard.press("Enter");
  await until(tab, "location.search === '?node=node-70'");
  await tab.getByText("Step 70").first().waitFor();
});

it("a plan is followed, and the drawing stays where a person has moved it", async () => {
  const pool = newPool({ config: CONFIG });
  savePlan(pool, 60, 10);
  const tab = await openedPlan(pool);
  await tab.getByRole("button", { name: "Larger" }).click();
  const place = await placeOf(tab);
  savePlan(pool, 60, 11);
  await until(tab, "document.querySelectorAll('.box-good').length === 11");
  expect(await placeOf(tab)).toBe(place);
});
