/** What the real claude does with each answer of the mock API: the facts that mailchute's reading of it rests on. */
import { expect, it } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { last, makeBench } from "./start.ts";

/** In one hour, in whole seconds. */
const inAnHour = (): number => Math.round(Date.now() / 1000) + 3600;

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

it("ends on SIGTERM while the API hangs, without a result", async () => {
  const { api, claude } = await makeBench([{ hang: true }]);
  const run = claude("go");
  await waitFor(() => api.requests.length > 0, { what: "the request", timeoutMs: 30_000 });
  run.child.kill("SIGTERM");
  expect(await run.ended).toMatchObject({ exitCode: 143 });
  expect(last(run, "result")).toBeUndefined();
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
