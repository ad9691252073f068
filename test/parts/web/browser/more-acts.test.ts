/** More of what a person does in a real browser: lands and rejects work, acts on whole lists, and does not wait for pages. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { OUTSIDE } from "../../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../../src/parts/mail/send/send.ts";
import { newPool, type Pool } from "../../../support/pool.ts";
import { canMount, smallDisk } from "../../../support/small-disk.ts";
import { timeLimitMs } from "../../../support/time-limit.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { newPlace } from "../../worktrees/place.ts";
import { openWeb } from "../open-web.ts";
import { expectAccessible, expectFits, newProfile, until } from "./browser.ts";
import { button, opened, said } from "./person.ts";

const CONFIG = "workers: 2\ndurability: process\ngrace_ms: 500\nretry: {max_attempts: 1}\n";
/** Leaves a file on a branch of its own, which waits for a person. */
const CODER = {
  name: "coder",
  kind: "exec",
  program: "sh",
  args: [
    "-ec",
    'echo work > "$MAILCHUTE_TASK_ID.txt"; git add -A; git -c user.name=x -c user.email=x@x commit -qm work',
  ],
  worktree: "auto",
  land: "branch",
};
/** From opening a page on this machine until its buttons answer (ms). */
const INTERACTIVE_MS = 1000;

async function failed(count: number): Promise<Pool> {
  const pool = newPool({ config: CONFIG });
  for (let n = 1; n <= count; n++) pool.drop(`sync-${n}`, { exec: ["false"] });
  await pool.run(["run", "--drain"]);
  return pool;
}

it("work is landed with a click, and other work rejected with a word", async () => {
  const { pool, repo } = newPlace(`agents: [${JSON.stringify(CODER)}]\n`);
  for (const id of ["good", "bad"])
    pool.drop(id, { agent: "coder", prompt: "write it", cwd: "repo", max_attempts: 1 });
  await (await pool.start(["--drain"])).ended;
  const tab = await opened(await openWeb(pool.state), "/review");
  await tab.getByRole("link", { name: "good", exact: true }).click();
  await tab.getByText("good.txt").first().waitFor();
  await button(tab, "Approve and land…").click();
  await button(tab, "Yes, land good").click();
  await said(tab, "land good");
  await tab.goBack();
  await tab.getByRole("link", { name: "bad", exact: true }).click();
  await tab.getByText("bad.txt").first().waitFor();
  await tab.getByLabel("what is wrong").fill("say more");
  await button(tab, "Reject…").click();
  await button(tab, "Yes, reject bad").click();
  await said(tab, "reject bad");
  expect(fs.existsSync(join(pool.inbox, "bad.fix-1.json"))).toBe(true);
  await (await pool.start(["--drain"])).ended;
  expect(repo.git("show", "mailchute/integration:good.txt")).toBe("work");
  expect(() => repo.git("show", "mailchute/integration:bad.txt")).toThrow();
  await tab.goBack();
  await tab.getByRole("heading", { name: "Review", exact: true }).first().waitFor();
  await until(tab, "document.body.innerText.includes('landed')");
});

it("a list of more than 50 tasks is retried only after their number is typed, and cancelled only after a yes", async () => {
  const pool = await failed(60);
  const web = await openWeb(pool.state);
  const tab = await opened(web, "/tasks?state=failed");
  await button(tab, "Retry all of these…").click();
  const yes = button(tab, /^Yes, /);
  await yes.click();
  // Without the number the question stays.
  expect(await tab.getByRole("dialog").isVisible()).toBe(true);
  await tab.getByLabel("how many").fill("60");
  await yes.click();
  await said(tab, "retry all that are failed", "60 done$");
  expect(fs.readdirSync(pool.inbox).filter((name) => name.endsWith(".json"))).toHaveLength(60);
  await tab.goto(`http://127.0.0.1:${web.port}/tasks?q=sync-1`);
  await button(tab, "Cancel all of these…").click();
  await yes.click();
  // Commands wait for a supervisor: its end is told by none yet.
  await said(tab, "cancel all that are waiting and begin with sync-1", "11 done$");
  const waits = join(pool.state, "control", "inbox");
  await waitFor(() => fs.readdirSync(waits).length > 0, { what: "the commands" });
});

it("a thread of mail is opened by a click, follows what is said, and has no fault for axe-core", async () => {
  const agents = [{ name: "ada", kind: "claude" }];
  const pool = newPool({ config: JSON.stringify({ data: ".", agents }) });
  const store = { dataDir: pool.state, isDurable: false };
  const say = (id: string, from: string, to: string, text: string, replyTo: string): void => {
    const draft = { id, scope: OUTSIDE, from, via: "run", to: [to], text, replyTo } as const;
    send(store, draft, Date.now());
  };
  say("m1", "lead", "ada", "use the old name\nof the cookie", "m0");
  const env = { MAILCHUTE_SCOPE: "unknown:main" };
  const tab = await opened(await openWeb(pool.state, undefined, undefined, false, env), "/agents");
  await tab.getByRole("link", { name: "use the old name", exact: true }).click();
  await tab.getByText("of the cookie").first().waitFor();
  say("m2", "ada", "lead", "it is done", "m1");
  await tab.getByText("it is done").first().waitFor();
  await expectAccessible(tab);
  await expectFits(tab);
});

/** Presses the first button whose text begins so as soon as it is there, and notes when its question is open. */
function pressSoon(text: string): string {
  return `new MutationObserver((_, self) => {
    const found = [...document.querySelectorAll("button")].find((one) => one.textContent.startsWith(${JSON.stringify(text)}));
    if (found === undefined || window.answered !== undefined) return;
    found.click();
    const isOpen = document.querySelector("dialog")?.open === true;
    if (!isOpen) return;
    window.answered = performance.now();
    self.disconnect();
  }).observe(document, { childList: true, subtree: true });`;
}

it("a page answers to its buttons within a second after it is opened", async () => {
  const pool = await failed(110);
  const nodes = Array.from({ length: 1000 }, (_, n) => ({
    id: `node-${n}`,
    status: n < 10 ? "done" : "open",
    exec: ["true"],
    dependencies: n < 50 ? [] : [`node-${n - 50}`],
  }));
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), JSON.stringify({ nodes }));
  pool.drop("long", { exec: ["sleep", "600"] });
  await pool.start();
  await waitFor(
    () => pool.events().some(({ event, task_id: id }) => event === "started" && id === "long"),
    {
      what: "its run",
    },
  );
  const web = await openWeb(pool.state);
  const at = `http://127.0.0.1:${web.port}`;
  const profile = await newProfile();
  await (await profile.newTab()).goto(web.newLink());
  const timesOf = async (path: string, script: string): Promise<number> => {
    const times: number[] = [];
    for (let round = 0; round < 5; round++) {
      const tab = await profile.newTab();
      await tab.addInitScript(script);
      await tab.goto(at + path);
      await until(tab, "window.answered !== undefined");
      times.push(await tab.evaluate<number>("window.answered"));
      await tab.close();
    }
    const [, , middle = 0] = times.toSorted((a, b) => a - b);
    return Math.round(middle);
  };
  const isDrawn = `new MutationObserver((_, self) => {
    if (document.querySelector(".graph svg > g")?.hasAttribute("transform") !== true) return;
    window.answered = performance.now();
    self.disconnect();
  }).observe(document, { childList: true, subtree: true, attributes: true });`;
  const took = {
    "/tasks?state=failed": await timesOf("/tasks?state=failed", pressSoon("Retry all")),
    "/tasks/long": await timesOf("/tasks/long", pressSoon("Cancel")),
    "/plan": await timesOf("/plan", isDrawn),
  };
  process.stdout.write(`web: until a page answers (ms): ${JSON.stringify(took)}\n`);
  for (const [path, ms] of Object.entries(took))
    expect(ms, path).toBeLessThanOrEqual(timeLimitMs(INTERACTIVE_MS));
  await pool.killAll();
});

describe.skipIf(!canMount())("a read-only disk", () => {
  it("is said on the open page, and what a button cannot do is told with what to do", async () => {
    const disk = smallDisk();
    const pool = newPool({ config: CONFIG, parent: disk.dir });
    pool.drop("bad", { exec: ["false"] });
    await pool.run(["run", "--drain"]);
    const tab = await opened(await openWeb(pool.state), "/tasks/bad");
    disk.setReadOnly();
    await tab
      .getByText(/is read-only: no task can start or end; do: /)
      .first()
      .waitFor();
    await button(tab, "Retry").click();
    await said(tab, "retry bad", "Err.*; do: it is mounted read-only: remount it");
    disk.setWritable();
    await until(tab, "!document.querySelector('#blocks').innerText.includes('is read-only')");
    await button(tab, "Retry").click();
    await said(tab, "retry bad", "1 task retried");
  });
});
