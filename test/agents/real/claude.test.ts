/** What the real claude does with each answer of the mock API: the facts that mailchute's reading of it rests on. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { isAlive, LONG_TOOL, last, makeBench, type RealRun, toolPid, userFrame } from "./start.ts";

/** In one hour, in whole seconds. */
const inAnHour = (): number => Math.round(Date.now() / 1000) + 3600;

/** After SIGINT there is often a result, and sometimes none: it may end before it has printed it. */
function expectNoResult(run: RealRun, signal: NodeJS.Signals, reason: string): void {
  const told = last(run, "result")?.["terminal_reason"];
  expect(told).toBeOneOf(signal === "SIGINT" ? [undefined, reason] : [undefined]);
}

it("says a text and ends with success", async () => {
  const { api, claude } = await makeBench([{ say: "All done." }]);
  const run = claude("say it");
  expect(await run.ended).toMatchObject({ exitCode: 0 });
  expect(last(run, "result")).toMatchObject({
    subtype: "success",
    is_error: false,
    terminal_reason: "completed",
    num_turns: 1,
    result: "All done.",
  });
  expect(api.requests.filter(({ kind }) => kind === "turn")).toMatchObject([
    { format: "messages", key: "0001", step: 0 },
  ]);
});

it("runs a tool and hands its output to the model", async () => {
  const { api, claude } = await makeBench([{ run: "echo $((6 * 7))" }, { say: "Seen." }]);
  const run = claude("run it");
  expect(await run.ended).toMatchObject({ exitCode: 0 });
  expect(last(run, "result")).toMatchObject({ is_error: false, num_turns: 2 });
  expect(api.requests.at(-1)?.messages.join()).toContain("42");
});

it.each([
  [401, "authentication_error"],
  [429, "rate_limit_error"],
  [529, "overloaded_error"],
])("calls %i a success that is an error", async (status, type) => {
  const { api, claude } = await makeBench([{ status }]);
  const run = claude("go");
  expect(await run.ended).toMatchObject({ exitCode: 1 });
  expect(last(run, "result")).toMatchObject({
    subtype: "success",
    is_error: true,
    terminal_reason: "api_error",
    api_error_status: status,
    api_error_type: type,
  });
  expect(run.lines.filter(({ subtype }) => subtype === "api_retry").length).toBeGreaterThan(0);
  expect(api.requests.filter(({ kind }) => kind === "turn").length).toBeGreaterThan(1);
});

it("tells when the quota of a subscription comes back, and does not try again before", async () => {
  const resetsAt = inAnHour();
  const { api, claude } = await makeBench([{ usageLimit: resetsAt }]);
  const run = claude("go", { isSubscription: true });
  expect(await run.ended).toMatchObject({ exitCode: 1 });
  expect(last(run, "rate_limit_event")).toMatchObject({
    rate_limit_info: { status: "rejected", resetsAt, rateLimitType: "five_hour" },
  });
  expect(last(run, "result")).toMatchObject({
    is_error: true,
    api_error: "usage_limit_reached",
    api_error_status: 429,
  });
  expect(api.requests.filter(({ kind }) => kind === "turn")).toHaveLength(1);
});

it.each([
  ["SIGINT", 0],
  ["SIGTERM", 143],
] as const)(
  "ends on %s while the API hangs, and may do so without a result",
  async (signal, exitCode) => {
    const { api, claude } = await makeBench([{ hang: true }]);
    const run = claude("go", { isOpen: true });
    await waitFor(() => api.requests.length > 0, { what: "the request", timeoutMs: 30_000 });
    run.child.kill(signal);
    expect(await run.ended).toEqual({ exitCode, signal: null });
    // An early SIGINT gives one, a later one gives none.
    expect(last(run, "result")?.["terminal_reason"]).toBeOneOf([undefined, "aborted_streaming"]);
    if (signal === "SIGTERM") expect(last(run, "result")).toBeUndefined();
  },
);

it.each([
  ["SIGINT", 0],
  ["SIGTERM", 143],
] as const)("ends its tool and itself on %s", async (signal, exitCode) => {
  const { claude, dir } = await makeBench([{ run: LONG_TOOL }]);
  const run = claude("go", { isOpen: true });
  const pid = await toolPid(dir);
  run.child.kill(signal);
  expect(await run.ended).toEqual({ exitCode, signal: null });
  expectNoResult(run, signal, "aborted_tools");
  await waitFor(() => !isAlive(pid), { what: "the end of the tool" });
});

it("says that a session is not there, and asks the API nothing", async () => {
  const { api, claude } = await makeBench([]);
  const id = "33333333-3333-4333-8333-333333333333";
  const run = claude("go", { args: ["--resume", id] });
  expect(await run.ended).toEqual({ exitCode: 1, signal: null });
  expect(run.stderr()).toContain(`No conversation found with session ID: ${id}`);
  expect(last(run, "result")).toMatchObject({
    subtype: "error_during_execution",
    is_error: true,
    num_turns: 0,
  });
  expect(api.requests.filter(({ kind }) => kind === "turn")).toHaveLength(0);
});

it("ends a turn while its background task runs, and has another when that ends", async () => {
  const { claude } = await makeBench([
    { run: "echo built; sleep 1", runWith: { run_in_background: true } },
    { say: "It runs." },
    { say: "It is built." },
  ]);
  const run = claude("go");
  expect(await run.ended).toEqual({ exitCode: 0, signal: null });
  expect(run.lines.filter(({ type }) => type === "result")).toMatchObject([
    { result: "It runs." },
    { result: "It is built.", origin: { kind: "task-notification" } },
  ]);
});

it("asks again after a stream that was cut or rubbish", async () => {
  const { api, claude } = await makeBench([
    { say: "Half", cut: true },
    { garbage: true },
    { say: "Whole" },
  ]);
  const run = claude("go", { retries: 5 });
  expect(await run.ended).toMatchObject({ exitCode: 0 });
  expect(last(run, "result")).toMatchObject({ is_error: false, result: "Whole" });
  expect(api.requests.filter(({ kind }) => kind === "turn")).toHaveLength(3);
});

const UNTIL_GO = "echo > began; until test -e go; do sleep 0.1; done; echo went";
const hasBegun = (dir: string): Promise<boolean> =>
  waitFor(() => fs.existsSync(join(dir, "began")), { what: "the tool", timeoutMs: 30_000 });
const statesOf = (run: RealRun, uuid: string): unknown[] =>
  run.lines
    .filter((line) => line.type === "command_lifecycle" && line["command_uuid"] === uuid)
    .map(({ state }) => state);
const send = (run: RealRun, uuid: string): boolean | undefined =>
  run.child.stdin?.write(
    `${JSON.stringify({ ...userFrame("look at X", uuid), priority: "next" })}\n`,
  );

it("reads a message once that is sent twice, and after a resume drops one that had begun a turn", async () => {
  const steps = [{ run: UNTIL_GO }, { say: "One." }, { say: "Two." }];
  const { api, claude, dir } = await makeBench(steps);
  const [prompt, mail] = [crypto.randomUUID(), crypto.randomUUID()];
  const first = claude("go", { isOpen: true, uuid: prompt });
  await hasBegun(dir);
  for (let n = 0; n < 2; n++) send(first, mail);
  await waitFor(() => statesOf(first, mail).includes("queued"), { what: "the message" });
  fs.writeFileSync(join(dir, "go"), "");
  await waitFor(() => last(first, "result"), { what: "the result", timeoutMs: 30_000 });
  first.child.stdin?.end();
  expect(await first.ended).toMatchObject({ exitCode: 0 });
  expect(statesOf(first, mail)).toEqual(["queued", "started", "completed"]);
  const turns = () => api.requests.filter(({ kind }) => kind === "turn");
  expect(turns().at(-1)?.messages.join().split("look at X")).toHaveLength(2);
  const id = String(last(first, "result")?.["session_id"]);
  const second = claude("go", { args: ["--resume", id], uuid: prompt, isOpen: true });
  // It remembers no message that it has read in the middle of a turn.
  send(second, mail);
  second.child.stdin?.end();
  expect(await second.ended).toMatchObject({ exitCode: 0 });
  expect(statesOf(second, prompt)).not.toContain("started");
  expect(statesOf(second, mail)).toContain("started");
  expect(turns()).toHaveLength(3);
});

it("reads after a resume a message that it had taken and not read when it was killed", async () => {
  const { api, claude, dir } = await makeBench([{ run: UNTIL_GO }, { say: "One." }]);
  const uuid = crypto.randomUUID();
  const first = claude("go", { isOpen: true });
  await hasBegun(dir);
  send(first, uuid);
  await waitFor(() => statesOf(first, uuid).includes("queued"), { what: "the message" });
  const id = String(last(first, "system")?.["session_id"]);
  process.kill(-(first.child.pid ?? 0), "SIGKILL");
  await first.ended;
  fs.writeFileSync(join(dir, "go"), "");
  const second = claude("on", { args: ["--resume", id], isOpen: true });
  send(second, uuid);
  second.child.stdin?.end();
  expect(await second.ended).toMatchObject({ exitCode: 0 });
  expect(statesOf(second, uuid)).toEqual(["queued", "started", "completed"]);
  expect(api.requests.at(-1)?.messages.join()).toContain("look at X");
});
