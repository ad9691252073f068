/** The buttons that no other test here clicks: slots, a run that is put back, whole causes, other answers, nodes of the plan, and the end of a long action. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { QuestionStore } from "../../../../src/questions/question-store.ts";
import { newPool, type Pool } from "../../../support/pool.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { openWeb } from "../open-web.ts";
import { until } from "./browser.ts";
import { button, opened, said } from "./person.ts";

const CONFIG = "workers: 2\ndurability: process\ngrace_ms: 500\nretry: {max_attempts: 1}\n";

async function failed(count: number): Promise<Pool> {
  const pool = newPool({ config: CONFIG });
  for (let n = 1; n <= count; n++) pool.drop(`sync-${n}`, { exec: ["false"] });
  await pool.run(["run", "--drain"]);
  return pool;
}

function filesIn(inbox: string): string[] {
  return fs.readdirSync(inbox).filter((name) => name.endsWith(".json"));
}

it("slots are taken away one by one, until there is none", async () => {
  const pool = newPool({ config: CONFIG });
  await pool.start();
  const tab = await opened(await openWeb(pool.state), "/");
  await tab.getByText("0 of 2 busy").waitFor();
  await button(tab, "Remove a slot").click();
  await said(tab, "set slots to 1", "workers: 1$");
  await tab.getByText("0 of 1 busy").waitFor();
  await button(tab, "Remove a slot").click();
  await said(tab, "set slots to 0", "workers: 0$");
  await tab.getByText("0 of 0 busy").waitFor();
  expect(await button(tab, "Remove a slot").count()).toBe(0);
  await button(tab, "Add a slot").click();
  await tab.getByText("0 of 1 busy").waitFor();
});

it("a run is put back after a yes, and runs again without having used up an attempt", async () => {
  const pool = newPool({ config: CONFIG });
  await pool.start();
  const twice = join(pool.dir, "twice");
  pool.drop("long", {
    exec: ["sh", "-c", `test -e ${twice} && exit 0; touch ${twice}; sleep 600`],
  });
  const tab = await opened(await openWeb(pool.state), "/tasks/long");
  await tab.locator("dd").getByText("running").first().waitFor();
  await button(tab, "Requeue…").click();
  await tab
    .getByText(/^Stop the run of long after .* and requeue the task\? It uses up no attempt\.$/)
    .waitFor();
  await button(tab, "No").click();
  await tab.getByRole("dialog").waitFor({ state: "detached" });
  await tab.locator("dd").getByText("running").first().waitFor();
  // A program that had not begun would begin twice.
  await waitFor(() => fs.existsSync(twice), { what: "the program" });
  await button(tab, "Requeue…").click();
  await button(tab, "Yes, requeue long").click();
  await said(tab, "requeue long");
  await tab.locator("dd").getByText("done").first().waitFor();
  expect((await pool.result("long")).attempts).toBe(1);
});

it("a task that waits is cancelled after a yes", async () => {
  const pool = newPool({ config: CONFIG });
  await pool.start();
  pool.drop("child", { exec: ["true"], metadata: { dependencies: ["none"] } });
  const tab = await opened(await openWeb(pool.state), "/tasks/child");
  await button(tab, "Cancel…").click();
  await tab.getByText("End child for good?").waitFor();
  await button(tab, "Yes, cancel child").click();
  await said(tab, "cancel child", "cancelled: child");
  await tab.locator("dd").getByText("failed").first().waitFor();
  expect((await pool.error("child")).kind).toBe("cancelled");
});

it("all tasks of a cause are put back from the overview", async () => {
  const pool = await failed(3);
  const tab = await opened(await openWeb(pool.state), "/");
  await button(tab, "Retry").click();
  await said(tab, "retry 3 tasks", "3 tasks retried$");
  await tab.getByText("nothing has failed").waitFor();
  expect(filesIn(pool.inbox)).toHaveLength(3);
});

it("a question is answered with no, or with words of a person, which leave their field", async () => {
  const pool = newPool({ config: CONFIG });
  const store = new QuestionStore(pool.state);
  const more = { who: "ada", agents: [], asked_at_ms: 1, ends_at_ms: null };
  store.ask({ id: "limit", question: "May it?", context: "", expects: "limit", ...more });
  store.ask({ id: "name", question: "Which?", context: "", expects: "text", ...more });
  const tab = await opened(await openWeb(pool.state), "/questions");
  await button(tab, "no").click();
  await said(tab, "answer limit", "answered$");
  await tab.getByRole("heading", { name: "May it?" }).waitFor({ state: "detached" });
  // An empty answer is none.
  const field = tab.getByRole("textbox", { name: "answer" });
  await button(tab, "Answer").click();
  expect(store.answerOf("name")).toBeUndefined();
  await field.fill("--blue, please");
  await field.press("Enter");
  await said(tab, "answer name", "answered$");
  await tab.getByText("No question waits for an answer.").waitFor();
  expect([store.answerOf("limit"), store.answerOf("name")]).toEqual(["no", "--blue, please"]);
});

it("a node of the plan is answered, retried and cancelled on its page", async () => {
  const pool = newPool({ config: CONFIG });
  const go = join(pool.dir, "go");
  const nodes = [
    { id: "ask", title: "Which colour?", status: "needs_human", exec: ["true"] },
    { id: "bad", title: "Paint", exec: ["test", "-e", go] },
    { id: "long", title: "Dry", exec: ["sleep", "600"] },
  ];
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), JSON.stringify({ nodes }));
  await pool.start();
  await pool.error("bad");
  const web = await openWeb(pool.state);
  const tab = await opened(web, "/plan?node=ask");
  await tab.getByRole("textbox", { name: "answer" }).fill("blue");
  await button(tab, "Answer").click();
  await said(tab, "answer ask", "answered$");
  await tab.locator("dd").getByText("✓ done").first().waitFor();
  await tab.goto(`http://127.0.0.1:${web.port}/plan?node=bad`);
  await tab.locator("dd").getByText("✗ failed").first().waitFor();
  fs.writeFileSync(go, "");
  await button(tab, "Retry").click();
  await said(tab, "retry bad");
  await tab.locator("dd").getByText("✓ done").first().waitFor();
  await tab.goto(`http://127.0.0.1:${web.port}/plan?node=long`);
  await tab.locator("dd").getByText("▶ in_progress").first().waitFor();
  await button(tab, "Cancel…").click();
  await button(tab, "Yes, cancel long").click();
  await said(tab, "cancel long");
  await tab.locator("dd").getByText("✗ failed").first().waitFor();
});

it("an action on a long list is stopped in the middle, and its button keeps the focus", async () => {
  const pool = await failed(49);
  const tab = await opened(await openWeb(pool.state), "/tasks?state=failed");
  let goOn = (): void => undefined;
  let asked = 0;
  await tab.route("**/api/act", async (request) => {
    asked++;
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    await request.continue();
  });
  await button(tab, "Retry all of these…").click();
  await button(tab, /^Yes, /).click();
  const stop = button(tab, "stop");
  await stop.waitFor();
  await tab.evaluate("document.querySelector('#said button').focus()");
  goOn();
  await said(tab, "retry all that are failed", "20 done …$");
  await until(tab, "document.activeElement.textContent === 'stop'");
  await stop.click();
  goOn();
  await said(tab, "retry all that are failed", "40 done, stopped$");
  expect([asked, await stop.count()]).toEqual([2, 0]);
  expect(filesIn(pool.inbox)).toHaveLength(40);
});

it("a log has its colours, is followed at its end, and stays where a person has scrolled to", async () => {
  const pool = newPool({ config: CONFIG });
  await pool.start();
  const [more, end] = [join(pool.dir, "more"), join(pool.dir, "end")];
  const script = `seq 150; until test -e ${more}; do sleep 0.02; done; printf '\\033[31mred\\033[0m\\n'
    until test -e ${end}; do sleep 0.02; done; echo the last line`;
  pool.drop("long", { exec: ["sh", "-c", script] });
  const tab = await opened(await openWeb(pool.state), "/tasks/long");
  await until(tab, "document.querySelector('pre')?.textContent.includes('150') === true");
  const isAtEnd =
    "((p) => p.scrollHeight - p.scrollTop - p.clientHeight < 4)(document.querySelector('pre'))";
  await until(tab, isAtEnd);
  fs.writeFileSync(more, "");
  await until(tab, "document.querySelector('pre .ansi-red')?.textContent === 'red'");
  await until(tab, isAtEnd);
  await tab.evaluate("document.querySelector('pre').scrollTo(0, 40)");
  await tab.getByRole("link", { name: /^output/ }).focus();
  fs.writeFileSync(end, "");
  await tab.getByRole("heading", { name: /which has grown: scroll to it$/ }).waitFor();
  await tab.locator("dd").getByText("done").first().waitFor();
  // Its buttons are gone, and with them a block above the log.
  await until(tab, "document.activeElement.textContent.startsWith('output')");
  const [top, text] = await tab.evaluate<[number, string]>(
    "((p) => [p.scrollTop, p.textContent])(document.querySelector('pre'))",
  );
  expect(top).toBe(40);
  expect(text).not.toContain("the last line");
  await tab.evaluate("((p) => p.scrollTo(0, p.scrollHeight))(document.querySelector('pre'))");
  await until(tab, "document.querySelector('pre').textContent.endsWith('the last line')");
  await until(tab, isAtEnd);
  expect(await tab.getByRole("heading", { name: /has grown/ }).count()).toBe(0);
});
