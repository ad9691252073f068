/** What the buttons of the pages change, over real HTTP and with a real pool: the same as the verbs of the command line. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Act, Page } from "../../../src/parts/web/page.ts";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { acting, openWeb, type Web } from "./open-web.ts";

const FAILING = "workers: 2\ndurability: process\nretry: {max_attempts: 1}\n";

/** The buttons of a page, also those in tables. */
function actsOn(page: Page): Act[] {
  const acts: Act[] = [];
  JSON.stringify(page, (key, value: unknown) => {
    if (key === "acts") acts.push(...(value as Act[]));
    return value;
  });
  return acts;
}

/** Presses the button with this text, as the script of the page does. */
async function press(web: Web, path: string, text: string, typed?: string) {
  const act = actsOn(await web.page(path)).find((one) => one.text === text);
  if (act === undefined) throw new Error(`${path} has no button ${text}`);
  const { verb, ids, number, all, words, field } = act;
  return await web.act({ verb, ids, number, all, text: field === undefined ? words : typed });
}

async function failed(ids: readonly string[]): Promise<Pool> {
  const pool = newPool({ config: FAILING });
  for (const id of ids) pool.drop(id, { exec: ["false"] });
  await pool.run(["run", "--drain"]);
  return pool;
}

it("retry puts a failed task back, and says why it cannot be put back twice", async () => {
  const pool = await failed(["bad"]);
  const web = await openWeb(pool.state);
  expect(await press(web, "/tasks/bad", "Retry")).toEqual({
    status: 200,
    value: { said: "1 task retried" },
  });
  expect(fs.existsSync(join(pool.inbox, "bad.json"))).toBe(true);
  const again = await web.act({ verb: "retry", ids: ["bad"] });
  expect(again.status).toBe(409);
  expect(again.value.error).toMatchObject({ code: "ErrTaskExists" });
  const none = await web.act({ verb: "retry", ids: ["none"] });
  expect(none.value.error).toMatchObject({ code: "ErrTaskNotFound" });
});

it("a command says its effect; without a supervisor it waits for one", async () => {
  const pool = newPool();
  const web = await openWeb(pool.state);
  const alone = await press(web, "/", "Pause");
  expect(alone.status).toBe(409);
  expect(alone.value.error).toMatchObject({
    code: "ErrSupervisorGone",
    message: "no supervisor runs here; the command waits for the next one",
  });
  await pool.start();
  const has = (text: string) => async (): Promise<boolean> =>
    actsOn(await web.page("/")).some((one) => one.text === text);
  await waitFor(has("Resume"), { what: "the pause" });
  expect((await press(web, "/", "Resume")).value.said).toContain("paused: false");
  await waitFor(has("Pause"), { what: "its end" });
  expect((await web.act({ verb: "workers", number: 3 })).value.said).toBe("workers: 3");
  await pool.stop();
});

it("a running task is put back, and cancelled", async () => {
  const pool = newPool();
  await pool.start();
  pool.drop("slow", { exec: ["sleep", "600"] });
  const web = await openWeb(pool.state);
  const runs = async (): Promise<boolean> =>
    actsOn(await web.page("/tasks/slow")).some((one) => one.text === "Requeue…");
  await waitFor(runs, { what: "its run" });
  expect((await press(web, "/tasks/slow", "Requeue…")).status).toBe(200);
  await waitFor(runs, { what: "its next run" });
  expect((await press(web, "/tasks/slow", "Cancel…")).status).toBe(200);
  expect(await pool.error("slow")).toMatchObject({ kind: "cancelled" });
  await pool.stop();
});

it("all tasks of a filtered list are retried, some at a time", async () => {
  const ids = Array.from({ length: 45 }, (_, n) => `sync-${n}`);
  const pool = await failed([...ids, "other"]);
  const web = await openWeb(pool.state);
  const act = actsOn(await web.page("/tasks?state=failed&q=sync-")).find((one) => one.all);
  expect(act?.ask).toBe("Retry all that are failed and begin with sync-?");
  let [done, after, requests] = [0, undefined as string | undefined, 0];
  do {
    const all = { ...act?.all, ...(after === undefined ? {} : { after }) };
    const { status, value } = await web.act({ verb: "retry", all });
    expect([status, value.refused]).toEqual([200, []]);
    done += value.done ?? 0;
    after = value.next;
    requests++;
  } while (after !== undefined);
  expect([done, requests]).toEqual([45, 3]);
  expect(fs.readdirSync(pool.inbox).sort()).toEqual(ids.map((id) => `${id}.json`).sort());
  expect(fs.existsSync(join(pool.failed, "other_error.json"))).toBe(true);
});

it("a list tells which of its tasks were refused", async () => {
  const pool = await failed(["a", "b", "c"]);
  fs.writeFileSync(join(pool.inbox, "b.json"), '{"exec":["true"]}');
  const web = await openWeb(pool.state);
  const { value } = await web.act({ verb: "retry", all: { state: "failed", q: "" } });
  expect(value).toMatchObject({ done: 2, refused: [{ id: "b" }] });
});

it("a question is answered with one click, and a second answer is refused", async () => {
  const pool = newPool();
  const store = new QuestionStore(pool.state);
  const asked = { context: "", who: "ada", agents: [], asked_at_ms: 1, ends_at_ms: null };
  store.ask({ ...asked, id: "limit", question: "More?", expects: "limit" });
  store.ask({ ...asked, id: "name", question: "Which?", expects: "text" });
  const web = await openWeb(pool.state);
  expect((await press(web, "/", "yes")).value).toEqual({ said: "answered" });
  expect(store.answerOf("limit")).toBe("yes");
  const typed = await web.act({ verb: "answer", ids: ["name"], text: "--json" });
  expect(typed.status).toBe(200);
  expect(store.answerOf("name")).toBe("--json");
  const late = await web.act({ verb: "answer", ids: ["limit"], text: "no" });
  expect(late.status).toBe(409);
  expect(store.answerOf("limit")).toBe("yes");
});

it("land and reject say that a task has left no work", async () => {
  const pool = await failed(["bad"]);
  const web = await openWeb(pool.state);
  for (const body of [
    { verb: "land", ids: ["bad"] },
    { verb: "reject", ids: ["bad"], text: "no" },
  ])
    expect((await web.act(body)).value.error).toMatchObject({ code: "ErrTaskNotFound" });
});

it("a tree that is gone is not made again by an action", async () => {
  const pool = newPool();
  const web = await openWeb(pool.state);
  fs.rmSync(pool.state, { recursive: true });
  for (const body of [
    { verb: "pause" },
    { verb: "retry", ids: ["a"] },
    { verb: "cancel", all: { state: "waiting", q: "" } },
  ])
    expect((await web.act(body)).value.error).toMatchObject({ code: "ErrNoState" });
  expect(fs.existsSync(pool.state)).toBe(false);
});

const WRONG: unknown[] = [
  "",
  "{",
  "null",
  "[]",
  '"retry"',
  { verb: "stop" },
  { verb: "__proto__" },
  { verb: "retry" },
  { verb: "retry", ids: [] },
  { verb: "retry", ids: [""] },
  { verb: "retry", ids: ["a\u0000"] },
  { verb: "retry", ids: "a" },
  { verb: "retry", ids: ["a"], options: { completed: true } },
  { verb: "retry", ids: Array.from({ length: 101 }, (_, n) => `t${n}`) },
  { verb: "answer", ids: ["a"] },
  { verb: "answer", ids: ["a"], text: " " },
  { verb: "answer", ids: ["a", "b"], text: "yes" },
  { verb: "answer", all: { state: "failed", q: "" }, text: "yes" },
  { verb: "workers", number: 1.5 },
  { verb: "workers", number: -1 },
  { verb: "cancel", all: { state: "anything", q: "" } },
  { verb: "land", ids: ["a"], text: "x" },
];

it("a request for something else is refused before anything is done", async () => {
  const web = await openWeb(newPool().state);
  for (const body of WRONG) {
    const { status, value } = await web.act(body);
    expect([body, status, value.error]).toEqual([body, 400, expect.any(String)]);
  }
});

it("an action needs a session, our origin, POST, JSON and a small body", async () => {
  const pool = newPool();
  pool.drop("one", { exec: ["true"] });
  const web = await openWeb(pool.state);
  const session = await web.signIn();
  const good = acting(web.port, session, { verb: "cancel", ids: ["one"] });
  const { origin, ...withoutOrigin } = good.headers;
  expect(origin).toBeDefined();
  const refused = [
    [401, acting(web.port, {}, { verb: "pause" })],
    [401, { ...good, headers: { ...good.headers, cookie: "mailchute=1" } }],
    [401, { ...good, headers: { ...good.headers, "x-mailchute-key": "wrong" } }],
    [403, { ...good, headers: withoutOrigin }],
    [403, { ...good, headers: { ...good.headers, origin: "http://evil.example" } }],
    [403, { ...good, headers: { ...good.headers, origin: "null" } }],
    [403, { ...good, headers: { ...good.headers, "sec-fetch-site": "same-site" } }],
    [421, { ...good, headers: { ...good.headers, host: "evil.example" } }],
    [415, { ...good, headers: { ...good.headers, "content-type": "text/plain" } }],
    [405, { ...good, method: "GET" }],
    [405, { ...good, method: "PUT" }],
    [405, { ...good, path: "/api/page?path=/" }],
    [413, { ...good, body: JSON.stringify({ verb: "pause", more: "x".repeat(70_000) }) }],
  ] as const;
  for (const [status, request] of refused)
    expect([status, (await web.ask(request)).status]).toEqual([status, status]);
  const query = "/api/act?verb=cancel&ids=one";
  expect((await web.ask({ path: query, headers: session })).status).toBe(405);
  expect(fs.readdirSync(pool.inbox)).toEqual(["one.json"]);
  expect(fs.existsSync(join(pool.state, "control", "inbox"))).toBe(false);
});

it("with --read-only there is no button, and no action", async () => {
  const pool = await failed(["bad"]);
  new QuestionStore(pool.state).ask({
    id: "limit",
    question: "More?",
    context: "",
    who: "ada",
    agents: [],
    expects: "limit",
    asked_at_ms: 1,
    ends_at_ms: null,
  });
  const web = await openWeb(pool.state, undefined, undefined, true);
  for (const path of ["/", "/tasks?state=failed", "/tasks/bad"])
    expect(actsOn(await web.page(path))).toEqual([]);
  const { status, value } = await web.act({ verb: "retry", ids: ["bad"] });
  expect([status, value.error]).toEqual([403, expect.stringContaining("--read-only")]);
});

it("inside the run of an agent nothing can be changed", async () => {
  const pool = await failed(["bad"]);
  const env = { MAILCHUTE_DROP: pool.dir, MAILCHUTE_STATE: pool.state };
  const web = await openWeb(pool.state, undefined, undefined, false, env);
  const { value } = await web.act({ verb: "retry", ids: ["bad"] });
  expect(value.error).toMatchObject({ code: "ErrInsideRun" });
});
