/** What the real claude does with each answer of the mock API: the facts that mailchute's reading of it rests on. */
import { expect, it } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { isAlive, LONG_TOOL, last, makeBench, type RealRun, toolPid } from "./start.ts";

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
