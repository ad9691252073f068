/** What the real codex does with each answer of the mock API: the facts that mailchute's reading of it rests on. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { isAlive, LONG_TOOL, last, makeBench, toolPid } from "./start.ts";

it("says a text and completes its turn", async () => {
  const { api, codex } = await makeBench([{ think: "Hm.", say: "All done." }]);
  const run = codex("say it");
  expect(await run.ended).toMatchObject({ exitCode: 0 });
  expect(last(run, "item.completed")).toMatchObject({
    item: { type: "agent_message", text: "All done." },
  });
  expect(last(run, "turn.completed")).toMatchObject({
    usage: { input_tokens: 1000, output_tokens: 30 },
  });
  expect(api.requests).toMatchObject([{ format: "responses", key: "0001", step: 0 }]);
});

it("runs a tool and hands its output to the model", async () => {
  const { api, codex } = await makeBench([{ run: "echo $((6 * 7))" }, { say: "Seen." }]);
  const run = codex("run it");
  expect(await run.ended).toMatchObject({ exitCode: 0 });
  expect(
    run.lines.find(({ type, item }) => type === "item.completed" && isCommand(item)),
  ).toMatchObject({ item: { aggregated_output: "42\n", exit_code: 0, status: "completed" } });
  expect(api.requests.at(-1)?.messages.join()).toContain("42");
});

const isCommand = (item: unknown): boolean =>
  (item as { type?: string } | undefined)?.type === "command_execution";

it.each([401, 429, 529])(
  "fails its turn at %i, and says the status in prose only",
  async (status) => {
    const { codex } = await makeBench([{ status }]);
    const run = codex("go");
    expect(await run.ended).toMatchObject({ exitCode: 1 });
    expect(run.lines.at(-1)).toMatchObject({ type: "turn.failed" });
    expect(JSON.stringify(last(run, "turn.failed"))).toContain(String(status));
  },
);

it("tells of a usage limit in prose, and keeps the time in its rollout file", async () => {
  const resetsAt = Math.round(Date.now() / 1000) + 3600;
  const { api, codex, dir } = await makeBench([{ usageLimit: resetsAt }]);
  const run = codex("go");
  expect(await run.ended).toMatchObject({ exitCode: 1 });
  expect(JSON.stringify(last(run, "turn.failed"))).toContain("usage limit");
  expect(api.requests).toHaveLength(1);
  const sessions = join(dir, "..", "home", ".codex", "sessions");
  const rollouts = fs
    .readdirSync(sessions, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => fs.readFileSync(join(sessions, name), "utf8"));
  expect(rollouts.join("")).toContain(`"resets_at":${resetsAt}`);
});

it("ends on SIGTERM while the API hangs, without an end of its turn", async () => {
  const { api, codex } = await makeBench([{ hang: true }]);
  const run = codex("go");
  await waitFor(() => api.requests.length > 0, { what: "the request", timeoutMs: 30_000 });
  run.child.kill("SIGTERM");
  await run.ended;
  expect(run.lines.at(-1)).toMatchObject({ type: "turn.started" });
});

it("ends its tool on SIGINT, and says nothing", async () => {
  const { codex, dir } = await makeBench([{ run: LONG_TOOL }]);
  const run = codex("go");
  const pid = await toolPid(dir);
  await waitFor(() => last(run, "item.started"), { what: "the line of the tool call" });
  run.child.kill("SIGINT");
  expect(await run.ended).toEqual({ exitCode: 1, signal: null });
  expect(run.lines.at(-1)).toMatchObject({ type: "item.started" });
  await waitFor(() => !isAlive(pid), { what: "the end of the tool" });
});

it("leaves the processes of its tool behind on SIGTERM", async () => {
  const { codex, dir } = await makeBench([{ run: LONG_TOOL }]);
  const run = codex("go");
  const pid = await toolPid(dir);
  await waitFor(() => last(run, "item.started"), { what: "the line of the tool call" });
  run.child.kill("SIGTERM");
  expect(await run.ended).toEqual({ exitCode: null, signal: "SIGTERM" });
  expect(run.lines.at(-1)).toMatchObject({ type: "item.started" });
  expect(isAlive(pid)).toBe(true);
});

it("sums tokens over a thread that is resumed", async () => {
  const { codex } = await makeBench([{ usage: { input: 100 } }]);
  const first = codex("go");
  await first.ended;
  const id = String(last(first, "thread.started")?.["thread_id"]);
  const second = codex("on", { resume: id });
  expect(await second.ended).toEqual({ exitCode: 0, signal: null });
  expect(last(second, "thread.started")).toMatchObject({ thread_id: id });
  expect(last(second, "turn.completed")).toMatchObject({ usage: { input_tokens: 200 } });
});

it("says that a thread is not there on stderr only", async () => {
  const { codex } = await makeBench([]);
  const id = "01a20f9d-d40b-7d23-904a-000000000000";
  const run = codex("go", { resume: id });
  expect(await run.ended).toEqual({ exitCode: 1, signal: null });
  expect(run.lines).toEqual([]);
  expect(run.stderr()).toContain(`no rollout found for thread id ${id}`);
});

it("begins a new thread when the id to resume is no UUID", async () => {
  const { codex } = await makeBench([{ say: "new" }]);
  const run = codex("go", { resume: "no-uuid" });
  expect(await run.ended).toEqual({ exitCode: 0, signal: null });
  expect(last(run, "thread.started")?.["thread_id"]).not.toBe("no-uuid");
});

it("asks again after a stream that was cut or rubbish", async () => {
  const { api, codex } = await makeBench([
    { say: "Half", cut: true },
    { garbage: true },
    { say: "Whole" },
  ]);
  const run = codex("go", { retries: 5 });
  expect(await run.ended).toMatchObject({ exitCode: 0 });
  expect(api.requests).toHaveLength(3);
});
