/** The pages of the plan, the agents, the questions, the work to review and the machine: what they show, and when they are there. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createAgent } from "../../../src/parts/mail/agents/agents.ts";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { send } from "../../../src/parts/mail/send/send.ts";
import { moveCursor } from "../../../src/parts/mail/store/cursors.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import type { Cell, Page } from "../../../src/parts/web/page.ts";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { blockOf, openWeb } from "./open-web.ts";

const SECRET = "a-value-that-is-not-shown";

function withPlan(pool: Pool, nodes: object[]): void {
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), JSON.stringify({ nodes }));
}

const textOf = (cell: Cell | undefined): string =>
  typeof cell === "object" && "text" in cell ? cell.text : JSON.stringify(cell);

const navOf = (page: Page): string[] =>
  (page as Page & { nav: { text: string }[] }).nav.map(({ text }) => text);

it("a tree without a plan, agents and branches has no links to their pages, and says so there", async () => {
  const web = await openWeb(newPool().state);
  const page = await web.page("/");
  expect(navOf(page)).toEqual(["Overview", "Timeline", "Board", "Tasks", "Machine"]);
  expect(blockOf(await web.page("/plan"), "text").text).toBe("this tree has no plan");
  expect(blockOf(await web.page("/questions"), "text").text).toContain("No question waits");
  expect(blockOf(await web.page("/review"), "table", "Not landed yet").rows).toEqual([]);
  expect((await web.page("/review/none")).title).toBe("Not here");
});

it("the plan has the nodes of `roadmap show`, and one node with what it waits for", async () => {
  const pool = newPool();
  withPlan(pool, [
    { id: "base", title: "The base", status: "done", exec: ["true"] },
    { id: "ask", title: "Which?", status: "needs_human", exec: ["true"] },
    {
      id: "top",
      title: "<b>top</b>",
      exec: ["true"],
      dependencies: ["base", "ask"],
      acceptance: ["it stands"],
    },
  ]);
  const web = await openWeb(pool.state);
  const page = await web.page("/plan?node=top");
  expect(navOf(page)).toEqual([
    "Overview",
    "Timeline",
    "Board",
    "Tasks",
    "Plan",
    "Questions",
    "Machine",
  ]);
  const graph = blockOf(page, "graph");
  expect(graph.nodes.map(({ text, look, is_here: isHere }) => [text, look, isHere])).toEqual([
    ["✓ base", "good", false],
    ["? ask", "other", false],
    ["○ top", "none", true],
  ]);
  expect(graph.edges).toHaveLength(2);
  expect(blockOf(page, "table", "It waits for").rows).toEqual([
    [{ text: "base", to: "/plan?node=base" }, "done"],
    [{ text: "ask", to: "/plan?node=ask" }, "needs_human"],
  ]);
  const { rows } = blockOf(page, "table", "Nodes");
  expect(rows.map(([, status]) => status)).toEqual(["? needs_human", "○ open", "✓ done"]);
  const { stdout } = await pool.run(["roadmap", "show", "--json"]);
  expect((JSON.parse(stdout) as { nodes: unknown[] }).nodes).toHaveLength(rows.length);
  const questions = await web.page("/questions");
  expect(blockOf(questions, "heading").text).toBe("Which?");
  expect(blockOf(questions, "acts").acts[0]).toMatchObject({ verb: "answer", ids: ["ask"] });
});

it("a broken plan is said in the words of the command", async () => {
  const pool = newPool();
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), "nodes: [{id: a, dependencies: [a]}]\n");
  const web = await openWeb(pool.state);
  const page = await web.page("/plan");
  expect(page.title).toBe("Not here");
  expect(blockOf(page, "text")).toMatchObject({ is_bad: true });
});

it("a question is answered on its page", async () => {
  const pool = newPool();
  const store = new QuestionStore(pool.state);
  const more = {
    who: "a budget",
    agents: ["*"],
    expects: "limit",
    asked_at_ms: 1,
    ends_at_ms: null,
  } as const;
  store.ask({ id: "q.1", question: "May it?", context: "Because\nit asks.", ...more });
  const web = await openWeb(pool.state);
  const page = await web.page("/questions");
  expect(navOf(page)).toContain("Questions (1)");
  expect(blockOf(page, "log").lines).toEqual(["Because", "it asks."]);
  const [yes] = blockOf(page, "acts").acts;
  const { verb, ids, words } = yes ?? {};
  expect((await web.act({ verb, ids, text: words })).status).toBe(200);
  expect(store.answerOf("q.1")).toBe("yes");
  expect(blockOf(await web.page("/questions"), "text").text).toContain("No question waits");
});

it("what a node asks stands on its page, on that of the questions, and counts in their link", async () => {
  const asks = '<result>{"status":"checkpoint","checkpoint":{"question":"Which colour?"}}</result>';
  const agent = { name: "asker", kind: "exec", program: "sh", args: ["-c", `echo '${asks}'`] };
  const pool = newPool({ config: JSON.stringify({ agents: [agent] }) });
  withPlan(pool, [
    { id: "paint", title: "The wall", agent: "asker", status: "open", prompt: "Paint it." },
    { id: "cover", title: "The cover", status: "needs_human", prompt: "Blue or green?" },
  ]);
  await pool.start();
  const web = await openWeb(pool.state);
  const isAsked = async () => navOf(await web.page("/")).includes("Questions (2)");
  await waitFor(isAsked, { what: "both questions" });
  const { blocks } = await web.page("/questions");
  const texts = blocks.flatMap((block) => ("text" in block ? [block.text] : []));
  expect(texts).toEqual(["Which colour?", "The cover", "Blue or green?"]);
  const node = await web.page("/plan?node=paint");
  expect(JSON.stringify(node)).toContain("It asks: Which colour?");
});

it("the machine has the checks and the settings, and no value of a variable", async () => {
  const agent = { name: "odd", kind: "exec", program: "true", env: { TOKEN: SECRET } };
  const pool = newPool({ config: JSON.stringify({ workers: 7, agents: [agent] }) });
  pool.drop("one", { exec: ["true"], env: { KEY: SECRET } });
  const web = await openWeb(pool.state);
  const page = await web.page("/machine");
  expect(blockOf(page, "table", "Checks").rows.length).toBeGreaterThan(5);
  const { rows } = blockOf(page, "table", "Settings");
  expect(rows).toContainEqual(["workers", "7", "config.yaml"]);
  expect(JSON.stringify(page)).toContain("TOKEN");
  expect(JSON.stringify(page)).not.toContain(SECRET);
  const task = await web.page("/tasks/one?file=file");
  expect(JSON.stringify(task)).toContain("KEY");
  expect(JSON.stringify(task)).not.toContain(SECRET);
});

it("the agents are there when one is a coding agent", async () => {
  const agents = [{ name: "ada", kind: "claude", account: "mine" }];
  const pool = newPool({ config: JSON.stringify({ agents }) });
  const state = join(pool.dir, "xdg");
  for (const dir of ["", "mailchute", "mailchute/accounts"])
    fs.mkdirSync(join(state, dir), { mode: 0o700 });
  const gate = {
    v: 1,
    account: "mine",
    status: "closed",
    until_ms: 5000,
    window: "five_hour",
    reason: "used up",
    closed_at_ms: 1,
    closings: 0,
    probe: null,
    answers: 0,
    windows: { seven_day: { used_pct: 24, resets_at_ms: 9000 } },
  };
  fs.writeFileSync(join(state, "mailchute/accounts/mine.json"), JSON.stringify(gate));
  const web = await openWeb(pool.state, undefined, undefined, false, { XDG_STATE_HOME: state });
  const page = await web.page("/agents");
  expect(navOf(page)).toContain("Agents");
  expect(blockOf(page, "table", "What they do").rows[0]?.slice(0, 3)).toEqual([
    "ada",
    "claude",
    "nothing",
  ]);
  expect(blockOf(page, "table", "Quotas of their accounts").rows).toEqual([
    ["mine", "five_hour", "used up", { at_ms: 5000 }, "used up"],
    ["mine", "seven_day", "24 %", { at_ms: 9000 }, ""],
  ]);
});

it("mail is there by its threads: who has not read it, and what was said in one", async () => {
  const pool = newPool({
    config: JSON.stringify({ data: ".", agents: [{ name: "ada", kind: "claude" }] }),
  });
  const folder = new MailFolder({ dataDir: pool.state, isDurable: false }, OUTSIDE);
  for (const name of ["ada", "bob"]) await createAgent(folder, { name, type: "claude" }, 1);
  const say = (id: string, from: string, to: string, text: string, replyTo?: string): void => {
    const draft = { id, scope: OUTSIDE, from, via: "cli", to: [to], text } as const;
    send(
      { dataDir: pool.state, isDurable: false },
      { ...draft, ...(replyTo === undefined ? {} : { replyTo }) },
      2000,
    );
  };
  say("m1", "human", "ada", "use the old name\nof the <b>cookie</b>\u202e");
  say("m2", "ada", "bob", "is it merged?");
  say("m3", "bob", "ada", "yes", "m2");
  say("m4", "ada", "bob", "good", "m3");
  moveCursor(folder, "bob", 4, { by: "ack", atMs: 3000 });
  const env = { MAILCHUTE_SCOPE: "unknown:main" };
  const web = await openWeb(pool.state, undefined, undefined, false, env);
  const at = { at_ms: 2000 };
  const { rows } = blockOf(await web.page("/agents"), "table", "Mail threads");
  expect(rows).toEqual([
    [{ text: "is it merged?", to: "/agents?thread=m2" }, "ada, bob", "3", "ada: good", at, "read"],
    [
      { text: "use the old name", to: "/agents?thread=m1" },
      "human, ada",
      "1",
      "",
      at,
      "not yet by ada",
    ],
  ]);
  const thread = await web.page("/agents?thread=m2");
  expect(thread.command).toBe("mailchute messages --thread m2");
  const title = "What was said in this thread";
  expect(blockOf(thread, "table", title).rows.map((row) => [row[0], row[3], row[4]])).toEqual([
    ["ada", "is it merged?", "read"],
    ["bob", "yes", "not yet by ada"],
    ["ada", "good", "read"],
  ]);
  const [[, , , text] = []] = blockOf(await web.page("/agents?thread=m1"), "table", title).rows;
  expect(text).toBe("use the old name\nof the <b>cookie</b>\\u{202e}");
  expect(blockOf(await web.page("/agents?thread=none"), "text").text).toContain("no thread");
});

it("the schedules have their next times, the error of a bad file, and how their last tasks ended", async () => {
  const pool = newPool({ config: "durability: process\n" });
  fs.mkdirSync(join(pool.state, "schedules"));
  const yaml = (name: string, text: string): void =>
    fs.writeFileSync(join(pool.state, "schedules", `${name}.yaml`), text);
  yaml("nightly", 'cron: "30 2 * * *"\ntimezone: UTC\ntask: {exec: ["false"], max_attempts: 1}\n');
  yaml("wrong", 'cron: "never"\ntask: {exec: ["true"]}\n');
  expect((await pool.run(["schedule", "run", "nightly"])).code).toBe(0);
  await pool.run(["run", "--drain"]);
  const web = await openWeb(pool.state);
  const page = await web.page("/schedules");
  expect(navOf(page)).toContain("Schedules");
  expect(blockOf(page, "table").rows).toMatchObject([
    [{ to: "/schedules?name=nightly" }, "30 2 * * * (UTC)", {}, "–", "0", "0", "on"],
    [{ text: "wrong" }, "", "–", "–", "0", "0", expect.stringContaining("six fields")],
  ]);
  const one = await web.page("/schedules?name=nightly");
  const times = blockOf(one, "table", "Its next times").rows.flat() as { at_ms: number }[];
  expect(times.map(({ at_ms: ms }) => new Date(ms).toISOString().slice(11, 16))).toEqual(
    Array.from({ length: 5 }, () => "02:30"),
  );
  expect(blockOf(one, "table", "Its last tasks").rows).toMatchObject([
    [
      { text: "nightly", small: expect.stringMatching(/^nightly\./) },
      { look: "bad", word: "failed" },
      {},
      expect.stringContaining("code 1"),
    ],
  ]);
  expect(blockOf(await web.page("/schedules?name=wrong"), "table").rows).toHaveLength(1);
});

it("the costs are those of `cost`, by what was chosen and in the time that was chosen", async () => {
  const pool = newPool({
    config: "agents: [{name: ada, kind: claude}]\nbudgets: {day_usd: 5, day_hard_usd: 8}\n",
  });
  const nowS = Math.floor(Date.now() / 1000);
  const line = (task: string, at: number, usd: number): string =>
    `${JSON.stringify({ at, task_id: task, run: `${task}@s.1`, agent: "ada", account: "a", model: "m", session_id: task, input_tokens: 1000, cached_input_tokens: 10, output_tokens: 20, cost_usd_micro: usd * 1e6, outcome: "completed" })}\n`;
  const file = (at: number): string =>
    join(pool.state, "analytics", `costs.${new Date(at * 1000).toISOString().slice(0, 10)}.jsonl`);
  fs.mkdirSync(join(pool.state, "analytics"), { recursive: true });
  const old = nowS - 3 * 86_400;
  fs.writeFileSync(file(old), line("old", old, 2));
  fs.writeFileSync(file(nowS), line("new", nowS, 1.5));
  const web = await openWeb(pool.state);
  const all = await web.page("/costs?by=task");
  expect(navOf(all)).toContain("Costs");
  expect(blockOf(all, "table").rows.map(([name, usd]) => [name, usd])).toEqual([
    ["all", "3.5000"],
    [{ text: "old", to: "/tasks/old" }, "2.0000"],
    [{ text: "new", to: "/tasks/new" }, "1.5000"],
  ]);
  expect(blockOf(all, "facts").facts).toEqual([
    ["asks a person at", "$5 a day (UTC)"],
    ["stops at", "$8 a day (UTC)"],
  ]);
  const recent = blockOf(await web.page("/costs?by=agent&since=24h"), "table").rows;
  expect(recent.map(([, usd]) => usd)).toEqual(["1.5000", "1.5000"]);
});

it("the timeline has the runs of the pool with their ends, and its table what went wrong first", async () => {
  const pool = newPool({ config: "durability: process\nretry: {max_attempts: 1}\n" });
  pool.drop("bad", { title: "<b>Send</b>", exec: ["false"] });
  await pool.run(["run", "--drain"]);
  pool.drop("good", { exec: ["true"] });
  await pool.run(["run", "--drain"]);
  const page = await (await openWeb(pool.state)).page("/timeline?over=1h");
  const { rows, ticks, legend } = blockOf(page, "timeline");
  expect(rows.map(({ name }) => name)).toEqual(["exec"]);
  const shapes = rows.flatMap((row) => row.shapes);
  expect(shapes.map(({ look }) => look)).toContain("bad");
  expect(ticks.length).toBeGreaterThan(3);
  expect(legend.map(({ text }) => text)).toContain("killed");
  const told = blockOf(page, "table").rows.map(([task, , , , , end]) => [task, end]);
  expect(told).toEqual([
    [
      { text: "<b>Send</b>", to: "/tasks/bad", small: "bad" },
      { look: "bad", word: "failed" },
    ],
    [expect.objectContaining({ to: "/tasks/good" }), { look: "good", word: "done" }],
  ]);
});

it("the timeline of an absurd time shows a month of it, and a tree without schedules has no link to them", async () => {
  const pool = newPool();
  fs.mkdirSync(join(pool.state, "schedules"));
  const page = await (await openWeb(pool.state)).page("/timeline?from=1&to=99999999999999");
  const { from_ms: fromMs, to_ms: toMs } = blockOf(page, "timeline");
  expect(toMs - fromMs).toBe(31 * 86_400_000);
  expect(navOf(page)).not.toContain("Schedules");
});

it("the board has each task in the column of its state, with its title", async () => {
  const pool = newPool();
  pool.drop("good", { exec: ["true"], title: "All is well" });
  pool.drop("bad", { exec: ["false"], title: "It breaks", max_attempts: 1 });
  await pool.run(["run", "--drain"]);
  pool.drop("next", { exec: ["true"], title: "Comes next" });
  const web = await openWeb(pool.state);
  const { blocks } = blockOf(await web.page("/board"), "grid");
  const columns = blocks.map((one) =>
    one.kind === "table" ? [one.title, one.rows.map(([task]) => textOf(task))] : [],
  );
  expect(columns).toEqual([
    ["Waiting 1", ["Comes next"]],
    ["Running 0", []],
    ["Needs you 1", [expect.stringContaining("no supervisor")]],
    ["Landing 0", []],
    ["Done 1", ["All is well"]],
    ["Failed 1", ["It breaks"]],
  ]);
});
