/** The timeline in a real browser: a drag shows less time, a bar leads to its task, and a failure is found in two clicks. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool, type Pool } from "../../../support/pool.ts";
import { openWeb } from "../open-web.ts";
import { expectAccessible, until } from "./browser.ts";
import { opened } from "./person.ts";
import type { Tab } from "./playwright.ts";

async function ended(): Promise<Pool> {
  const pool = newPool({ config: "workers: 2\ndurability: process\nretry: {max_attempts: 1}\n" });
  pool.drop("good", { title: "Count the words", exec: ["sleep", "1"] });
  pool.drop("bad", { title: "Send the letter", exec: ["sh", "-c", "sleep 1; exit 3"] });
  await pool.run(["run", "--drain"]);
  return pool;
}

/** The middle of the first bar with this look, and the ends of the rows. */
async function placesOf(
  tab: Tab,
  look: string,
): Promise<Record<"x" | "y" | "left" | "right", number>> {
  return tab.evaluate(`(() => {
    const bar = document.querySelector(".lane a .look-${look}").getBoundingClientRect();
    const rows = document.querySelector(".lane .bars").getBoundingClientRect();
    const [x, y] = [bar.left + bar.width / 2, bar.top + bar.height / 2];
    return { x, y, left: rows.left, right: rows.right };
  })()`);
}

it("a failed run is a bar that leads to its task, and stands first in the table", async () => {
  const tab = await opened(await openWeb((await ended()).state), "/timeline?over=15m");
  await tab.locator(".lane a .look-bad").waitFor({ state: "attached" });
  expect(await tab.locator("tbody tr").first().innerText()).toMatch(/^Send the letter\s+bad/);
  const { x, y } = await placesOf(tab, "bad");
  await tab.mouse.move(x, y);
  await tab.mouse.down();
  await tab.mouse.up();
  await tab.getByRole("heading", { name: "Send the letter" }).first().waitFor();
  expect(new URL(tab.url()).pathname).toBe("/tasks/bad");
});

it("a drag over the rows shows the time that was chosen, and `zoom out` more again", async () => {
  const tab = await opened(await openWeb((await ended()).state), "/timeline?over=15m");
  await tab.locator(".lane a .look-good").waitFor({ state: "attached" });
  const { y, left, right } = await placesOf(tab, "good");
  const width = right - left;
  await tab.mouse.move(left + width * 0.9, y);
  await tab.mouse.down();
  await tab.mouse.move(left + width * 0.95, y);
  await tab.mouse.move(right - 1, y);
  await tab.mouse.up();
  await until(tab, "location.search.includes('from=')");
  const spanOf = (): number => {
    const { searchParams: of } = new URL(tab.url());
    return Number(of.get("to")) - Number(of.get("from"));
  };
  const chosen = spanOf();
  expect(chosen).toBeGreaterThan(0.08 * 15 * 60_000);
  expect(chosen).toBeLessThan(0.12 * 15 * 60_000);
  await tab.locator(".lane a .look-good").waitFor({ state: "attached" });
  const before = tab.url();
  await tab.getByRole("link", { name: "zoom out" }).click();
  await until(tab, `location.href !== ${JSON.stringify(before)}`);
  expect(spanOf()).toBeCloseTo(2 * chosen, -2);
});

it("a row of bars that are several runs each has a name for a screen reader, too", async () => {
  const pool = newPool();
  const nowMs = Date.now() - 60_000;
  const line = (n: number, event: string, atMs: number): string =>
    `${JSON.stringify({ event, task_id: `t${n}`, submission: `s${n}`, agent_id: "exec", attempt: 1, t: atMs, status: "completed" })}\n`;
  // Two at a time, each too short to be seen alone: the second row has no link.
  const lines = Array.from({ length: 100 }, (_, n) => {
    const atMs = nowMs + Math.floor(n / 2) * 2;
    return [line(n, "assigned", atMs), atMs] as const;
  });
  const text = lines.flatMap(([begin, atMs], n) => {
    const ends =
      n % 2 === 1 ? [line(n - 1, "completed", atMs + 1), line(n, "completed", atMs + 1)] : [];
    return [begin, ...ends];
  });
  fs.mkdirSync(join(pool.state, "analytics"), { recursive: true });
  fs.writeFileSync(join(pool.state, "analytics/supervisor_lifecycle.jsonl"), text.join(""));
  const tab = await opened(await openWeb(pool.state), "/timeline?over=15m");
  await tab.locator(".lane rect.look-good").nth(1).waitFor({ state: "attached" });
  expect(await tab.locator(".lane:not(.axis)").count()).toBe(2);
  await expectAccessible(tab);
});
