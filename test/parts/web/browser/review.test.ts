/** A person reviews work in a real browser, with the keys alone: looks at it, comments on a line, sends it back, and lands it. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { waitFor } from "../../../support/wait-for.ts";
import { newPlace, type Place } from "../../worktrees/place.ts";
import { openWeb } from "../open-web.ts";
import { expectAccessible, expectFits, newProfile, until } from "./browser.ts";
import { button, opened, said } from "./person.ts";
import type { Tab } from "./playwright.ts";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async function work(script: string): Promise<Place> {
  const args = ["-ec", script];
  const agent = {
    name: "ada",
    kind: "exec",
    program: "sh",
    args,
    worktree: "auto",
    land: "branch",
  };
  const place = newPlace(`agents: [${JSON.stringify(agent)}]\n`);
  place.repo.commit({ "a.ts": "one\ntwo\nthree\n", "b.ts": "old\n" });
  const more = { prompt: "write it", title: "The cart", cwd: "repo", max_attempts: 1 };
  place.pool.drop("a", { agent: "ada", ...more });
  await (await place.pool.start(["--drain"])).ended;
  await place.pool.result("a");
  return place;
}

const focused = (tab: Tab): Promise<string> =>
  tab.evaluate<string>("document.activeElement.ariaLabel ?? document.activeElement.textContent");

it("keys lead from file to file and from change to change; a comment on a line goes to the agent", async () => {
  const { pool } = await work(
    "grep -q worktree_of $MAILCHUTE_TASK_FILE && exit 0; sed -i 's/two/2/' a.ts; rm b.ts; seq 500 > c.txt",
  );
  const web = await openWeb(pool.state);
  const tab = await opened(web, "/review/a");
  await tab.getByText("3 changed files, +501 −2").waitFor();
  await tab.keyboard.press("j");
  expect(await focused(tab)).toContain("a.ts");
  await tab.keyboard.press("j");
  expect(await focused(tab)).toContain("b.ts");
  await tab.keyboard.press("k");
  await tab.keyboard.press("n");
  expect(await focused(tab)).toBe("comment on old line 2");
  await tab.keyboard.press("ArrowDown");
  expect(await focused(tab)).toBe("comment on line 2");
  await tab.keyboard.press("Enter");
  await tab.keyboard.type("Not a number, and no jump: j k l r.");
  await expectAccessible(tab);
  await button(tab, "Reject with 1 comment…").waitFor();
  // What was typed outlives the page.
  await tab.reload();
  await button(tab, "Reject with 1 comment…").waitFor();
  await tab.keyboard.press("r");
  await tab.keyboard.type("Nearly.");
  await button(tab, "Reject with 1 comment…").click();
  await tab.getByText("Send the work of a back to ada").waitFor();
  await button(tab, "Yes, reject a").click();
  await said(tab, "reject a");
  await until(tab, "document.querySelectorAll('.say').length === 0");
  const sent = JSON.parse(fs.readFileSync(join(pool.inbox, "a.fix-1.json"), "utf8")) as {
    prompt: string;
  };
  expect(sent.prompt).toMatch(
    /^Nearly\.\n\na\.ts:2, at commit [0-9a-f]{12}:\n> 2\nNot a number, and no jump: j k l r\.$/,
  );
  expect(await tab.evaluate("localStorage.getItem('mailchute-draft-a')")).toBe(null);
});

it("the key l asks before it lands; without keys it does nothing", async () => {
  const { pool, repo } = await work("echo new > n.ts");
  const tab = await opened(await openWeb(pool.state), "/review/a");
  await tab.getByText("1 changed file, +1 −0").waitFor();
  const keys = tab.getByLabel(/keys/);
  await keys.click();
  await tab.evaluate("document.activeElement.blur()");
  await tab.keyboard.press("l");
  expect(await tab.getByRole("dialog").count()).toBe(0);
  await keys.click();
  await tab.evaluate("document.activeElement.blur()");
  await tab.keyboard.press("l");
  await tab.getByText("Bring the work of a into mailchute/integration?").waitFor();
  await button(tab, "No").click();
  await tab.keyboard.press("l");
  await button(tab, "Yes, land a").click();
  await said(tab, "land a");
  await (await pool.start(["--drain"])).ended;
  expect(repo.git("show", "mailchute/integration:n.ts")).toBe("new");
  // A busy server makes the next page of an open one late, but the first one at once.
  const isLanded = async (): Promise<boolean> => {
    await tab.reload();
    await tab.locator("dd .pill").waitFor();
    return (await tab.locator("dd .pill").innerText()) === "landed";
  };
  await waitFor(isLanded, { what: "the page of what has landed" });
  expect(await button(tab, /Reject/).count()).toBe(0);
});

it("pictures are shown, lines of a hostile repository stay text, and the page fits a phone", async () => {
  const evil = `<img src=x onerror="document.title='owned'">`;
  const { pool } = await work(
    `echo ${PNG} | base64 -d > logo.png; echo '${evil.replaceAll("'", `'\\''`)}' > '<b>x.html'; printf '%0500d' 7 > long.txt; seq 90 > yarn.lock`,
  );
  const web = await openWeb(pool.state);
  const tab = await (await newProfile({ size: "phone", scheme: "dark" })).newTab();
  await tab.goto(web.newLink().replace("/#", "/review/a#"));
  await until(tab, "document.querySelector('.pictures img')?.naturalWidth === 1");
  expect(await tab.getByText(evil).count()).toBe(1);
  expect(await tab.locator("main img, main b").count()).toBe(1);
  expect(await tab.evaluate("document.title")).toMatch(/^The cart · .+ · mailchute$/);
  await expectAccessible(tab);
  await expectFits(tab);
  await tab.locator("details.file:not([open]) > summary").click();
  await tab.getByRole("link", { name: "show it" }).click();
  await tab.getByText("Only yarn.lock is shown.").waitFor();
  await until(tab, "document.querySelectorAll('.file .add').length === 90");
});
