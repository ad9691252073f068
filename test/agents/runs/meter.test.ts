/** Runs with a meter: what their programs ask of a mock of the services, and what mailchute makes of it. Real pools. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { GateDocument } from "../../../src/agents/accounts/gate-rules.ts";
import type { CostRecord } from "../../../src/agents/cost-records.ts";
import type { Scenario, Step } from "../../../src/agents/mock-api/script.ts";
import { type MockApi, startMockApi } from "../../../src/agents/mock-api/server.ts";
import { costsOf } from "../../../src/core/state-tree.ts";
import { filesOfDays } from "../../../src/journal/daily.ts";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import { newPool, type Pool, readJson } from "../../support/pool.ts";
import { programPath } from "../../support/programs.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newBench } from "./bench.ts";

const USAGE = { input: 700, cachedInput: 200, cacheWrite: 100, output: 50 };
/** What the meter counts for one such answer: input with what came from the cache. */
const INPUT = { messages: 1000, responses: 900 } as const;
const ANSWER: Step = { say: "Done.", usage: USAGE };
const KEY = "sk-secret-of-the-person-0001";

type Api = keyof typeof INPUT;

interface Desk {
  api: MockApi;
  pool: Pool;
  /** Of all its processes. */
  env: Record<string, string>;
  costs: () => CostRecord[];
  requests: () => Record<string, unknown>[];
}

/** A pool with an agent `any` of kind exec that asks the mock, metered. */
async function newDesk(
  scenario: Scenario,
  agent: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
): Promise<Desk> {
  const api = await startMockApi(scenario);
  onTestFinished(() => api.close());
  const env: Record<string, string> = {};
  const pool = newPool({ env });
  env["XDG_STATE_HOME"] = join(pool.dir, "user");
  const any = {
    name: "any",
    kind: "exec",
    program: programPath("ask-model.mjs"),
    args: ["messages", "go"],
    meter: true,
    account: "any",
    env: {
      MODEL_KEY: KEY,
      ANTHROPIC_BASE_URL: api.url,
      OPENAI_BASE_URL: `${api.url}/v1`,
    },
    ...agent,
  };
  fs.writeFileSync(
    join(pool.state, "config.yaml"),
    JSON.stringify({
      workers: 4,
      processes: 2,
      durability: "process",
      settle_ms: 300,
      sweep_ms: 200,
      grace_ms: 500,
      retry: { max_attempts: 1, backoff_ms: 20, backoff_max_ms: 500 },
      prices: { "model-a": { input_usd: 3, cached_input_usd: 1, output_usd: 15 } },
      agents: [any],
      ...more,
    }),
  );
  return {
    api,
    pool,
    env,
    costs: () => costsIn(pool),
    requests: () => requestLogs(pool).flatMap((path) => linesOf<Record<string, unknown>>(path)),
  };
}

function costsIn({ state }: Pool): CostRecord[] {
  return filesOfDays(costsOf({ dir: state })).flatMap((file) => linesOf<CostRecord>(file));
}

/** The files of all runs that say what they asked. */
function requestLogs({ state }: Pool): string[] {
  const runs = join(state, "runs");
  if (!fs.existsSync(runs)) return [];
  return fs
    .readdirSync(runs, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith("requests.jsonl"))
    .map((name) => join(runs, name));
}

function linesOf<T = Record<string, unknown>>(path: string): T[] {
  return fs
    .readFileSync(path, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T);
}

/** Every file below the folder that holds the text. */
function filesWith(dir: string, text: string): string[] {
  return fs
    .readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => fs.readFileSync(path).includes(text));
}

describe("a program of kind exec", () => {
  it.each<Api>(["messages", "responses"])(
    "has the tokens of its answers in the books, to the token, and no key in the tree (%s)",
    async (format) => {
      const { api, pool, costs, requests } = await newDesk([ANSWER], { args: [format, "go", "3"] });
      await pool.start();
      pool.drop("t", { agent: "any", prompt: "go" });
      expect(await pool.result("t")).toMatchObject({ attempts: 1, exit_code: 0 });
      expect(api.requests).toHaveLength(3);
      const [cost, ...others] = costs();
      expect(others).toEqual([]);
      const usd = 3 * (800 * 3 + 200 * 1 + 50 * 15);
      expect(cost).toMatchObject({
        task_id: "t",
        agent: "any",
        account: "any",
        model: format === "messages" ? "model-a" : "model-b",
        input_tokens: 3 * INPUT[format],
        cached_input_tokens: 600,
        output_tokens: 150,
        cost_usd_micro: format === "messages" ? usd : null,
        outcome: "completed",
      });
      expect(requests()).toMatchObject(
        Array.from({ length: 3 }, () => ({
          status: 200,
          input_tokens: INPUT[format],
          output_tokens: 50,
        })),
      );
      // The config that the test wrote has it, and nothing else.
      expect(filesWith(pool.dir, KEY)).toEqual([join(pool.state, "config.yaml")]);
    },
  );

  it("waits without an attempt when its service refuses it for its quota, and its account with it", async () => {
    const resetS = Math.ceil(Date.now() / 1000) + 4;
    const { api, pool, costs } = await newDesk([{ usageLimit: resetS, until: resetS }, ANSWER]);
    await pool.start();
    pool.drop("t", { agent: "any", prompt: "go" });
    pool.drop("u", { agent: "any", prompt: "go" });
    expect(await pool.result("t")).toMatchObject({ attempts: 1 });
    expect(await pool.result("u")).toMatchObject({ attempts: 1 });
    // Each may have been on when the gate closed. None came again before the reset.
    const before = api.requests.filter(({ atMs }) => atMs < resetS * 1000);
    expect(before.length).toBeLessThanOrEqual(2);
    expect(costs().map(({ outcome }) => outcome)).toEqual(["completed", "completed"]);
  });

  it("fails as its own fault when the service finds its request wrong", async () => {
    const { pool } = await newDesk([{ status: 400 }]);
    await pool.start();
    pool.drop("t", { agent: "any", prompt: "go" });
    expect(await pool.error("t")).toMatchObject({ kind: "exit" });
  });

  it("waits when its service cannot be reached", async () => {
    const desk = await newDesk([ANSWER]);
    const { pool } = desk;
    await desk.api.close();
    await pool.start();
    pool.drop("t", { agent: "any", prompt: "go" });
    const isPutOff = (): boolean =>
      pool.events().some((event) => JSON.stringify(event).includes("(1 of 8 runs in a row"));
    await waitFor(isPutOff, { what: "a run that was put off" });
    expect(pool.errors()).toEqual([]);
  });

  it("asks nothing after a hard limit is reached, goes on after the answer, and uses no attempt", async () => {
    const { api, pool, costs } = await newDesk([{ ...ANSWER, delayMs: 100 }], {
      args: ["messages", "go", "20", "2"],
      budget: { tokens: 4000, hard_tokens: 5000 },
    });
    await pool.start();
    pool.drop("t", { agent: "any", prompt: "go" });
    const store = new QuestionStore(pool.state);
    const question = await waitFor(() => store.open(0)[0]?.id, { what: "a question" });
    // 1050 tokens an answer: five reach the limit, and one more is in flight.
    expect(api.requests).toHaveLength(6);
    await waitFor(() => costs().length > 0, { what: "its costs" });
    expect(costs()).toMatchObject([
      { input_tokens: 6000, output_tokens: 300, outcome: "deferred" },
    ]);
    expect(await pool.run(["answer", question, "100000"])).toMatchObject({ code: 0 });
    expect(await pool.result("t")).toMatchObject({ attempts: 1 });
    expect(costs()[1]).toMatchObject({ input_tokens: 20_000, outcome: "completed" });
  });

  it("shares a hard limit of a day with the runs of other worker processes", async () => {
    const { api, pool } = await newDesk(
      [{ ...ANSWER, delayMs: 30 }],
      { args: ["messages", "go", "100"] },
      { budgets: { day_tokens: 20_000, day_hard_tokens: 21_000 } },
    );
    await pool.start();
    for (const id of ["a", "b", "c", "d"]) pool.drop(id, { agent: "any", prompt: "go" });
    const store = new QuestionStore(pool.state);
    await waitFor(() => store.open(0)[0]?.id, { what: "a question" });
    await waitFor(() => (pool.pids().length > 0 && costsIn(pool).length === 4 ? true : undefined), {
      what: "the costs of all four",
    });
    // Twenty reach the limit, and each of the other three may be in flight.
    expect(api.requests.length).toBeGreaterThanOrEqual(20);
    expect(api.requests.length).toBeLessThanOrEqual(23);
    const tokens = costsIn(pool).reduce(
      (sum, one) => sum + one.input_tokens + one.output_tokens,
      0,
    );
    expect(tokens).toBe(api.requests.length * 1050);
  });

  it("has what it used in the books when its worker is killed", async () => {
    const { api, pool, costs } = await newDesk(
      [ANSWER, ANSWER, { hang: true, times: 1 }, ANSWER],
      { args: ["messages", "go", "3"] },
      { retry: { max_attempts: 2, backoff_ms: 20 } },
    );
    await pool.start();
    pool.drop("t", { agent: "any", prompt: "go" });
    await waitFor(() => api.requests.length === 3, { what: "its third request" });
    for (const { pid } of pool.workers()) process.kill(pid, "SIGKILL");
    expect(await pool.result("t")).toMatchObject({ attempts: 2 });
    expect(costs()).toMatchObject([
      { input_tokens: 2000, output_tokens: 100, outcome: "killed" },
      { input_tokens: 3000, output_tokens: 150, outcome: "completed" },
    ]);
  });

  it("reaches a service by the address in its arguments", async () => {
    const { api, pool, costs } = await newDesk([ANSWER]);
    const config = join(pool.state, "config.yaml");
    const text = fs.readFileSync(config, "utf8");
    const script = `const a = process.argv[1]; fetch(a + "/messages", {method: "POST", body: '{"model":"x"}'}).then((r) => r.text())`;
    const write = (meter: unknown): void => {
      const settings = JSON.parse(text);
      Object.assign(settings.agents[0], {
        program: process.execPath,
        args: ["-e", script, `{meter:${api.url}/v1}`],
        meter,
      });
      fs.writeFileSync(config, JSON.stringify(settings));
    };
    write(true);
    await pool.start();
    pool.drop("t", { agent: "any", prompt: "go" });
    await pool.result("t");
    expect(api.requests).toMatchObject([{ path: "/v1/messages" }]);
    expect(costs()).toMatchObject([{ input_tokens: 1000, model: "x" }]);
    await pool.stop();
    // Without the meter it asks the service itself.
    write(false);
    await pool.start();
    pool.drop("u", { agent: "any", prompt: "go" });
    await pool.result("u");
    expect(api.requests).toHaveLength(2);
    expect(costs()).toHaveLength(1);
  });

  it("is answered from a record, without any service", async () => {
    const { api, pool, costs, requests } = await newDesk(
      [ANSWER, { say: "Other.", usage: USAGE }],
      {
        args: ["messages", "go", "2"],
        meter: { record: true },
      },
    );
    await pool.start();
    pool.drop("t", { agent: "any", prompt: "go" });
    await pool.result("t");
    expect(requests()).toMatchObject([
      { request: expect.stringContaining('"go"'), answer: expect.stringContaining("message_stop") },
      { answer: expect.stringContaining("message_stop") },
    ]);
    expect(filesWith(pool.dir, KEY)).toEqual([join(pool.state, "config.yaml")]);
    const record = join(pool.dir, "night.jsonl");
    const [path = ""] = requestLogs(pool);
    expect(fs.statSync(path).mode & 0o777).toBe(0o600);
    fs.copyFileSync(path, record);
    await pool.stop();
    await api.close();
    const config = join(pool.state, "config.yaml");
    const settings = JSON.parse(fs.readFileSync(config, "utf8"));
    settings.agents[0].meter = { replay: "../night.jsonl" };
    fs.writeFileSync(config, JSON.stringify(settings));
    await pool.start();
    pool.drop("u", { agent: "any", prompt: "go" });
    expect(await pool.result("u")).toMatchObject({ exit_code: 0 });
    expect(costs().map((one) => one.input_tokens)).toEqual([2000, 2000]);
  });
});

describe("a service with TLS", () => {
  it.each([
    ["is asked when this machine trusts its certificate", 200],
    ["is not asked otherwise", null],
  ])("%s", async (_, status) => {
    const desk = await newDesk([ANSWER]);
    const { pool, requests } = desk;
    const files = ["key", "certificate"].map((name) => join(pool.dir, `${name}.pem`));
    const [key = "", certificate = ""] = files;
    execFileSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
      ].concat(["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]),
      { stdio: "ignore" },
    );
    const server = https.createServer(
      { key: fs.readFileSync(key), cert: fs.readFileSync(certificate) },
      (_request, response) => response.end("{}"),
    );
    await new Promise<void>((resolve) => {
      server.listen(0, resolve);
    });
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const config = join(pool.state, "config.yaml");
    const text = fs
      .readFileSync(config, "utf8")
      .replaceAll(desk.api.url, `https://localhost:${port}`);
    fs.writeFileSync(config, text);
    if (status !== null) desk.env["NODE_EXTRA_CA_CERTS"] = certificate;
    await pool.start();
    pool.drop("t", { agent: "any", prompt: "go" });
    await waitFor(() => requests().length > 0, { what: "a request" });
    expect(requests()[0]).toMatchObject({ path: "/v1/messages", status });
  });
});

describe("a program of kind acp that is silent when it is refused", () => {
  it("is stopped, waits for the reset without an attempt, and then does its work", async () => {
    const resetS = Math.ceil(Date.now() / 1000) + 3600;
    let isOpen = false;
    const api = await startMockApi(() => (isOpen ? ANSWER : { usageLimit: resetS }));
    onTestFinished(() => api.close());
    const bench = newBench([
      {
        name: "coder",
        kind: "acp",
        turns: [[{ model: "messages", text: "go" }, { say: "Well done." }]],
        settings: { meter: true, env: { ANTHROPIC_BASE_URL: api.url } },
      },
    ]);
    const { pool } = bench;
    await pool.start();
    pool.drop("t", { agent: "coder", prompt: "go", max_attempts: 1 });
    const gate = await waitFor(() => readJson<GateDocument>(bench.gatePath("coder")), {
      what: "the gate of its account",
      timeoutMs: 60_000,
    });
    expect(gate).toMatchObject({ status: "closed", until_ms: resetS * 1000 });
    isOpen = true;
    fs.rmSync(bench.gatePath("coder"));
    expect(await pool.result("t")).toMatchObject({ attempts: 1, output: "Well done." });
    expect(bench.costs("coder")).toMatchObject([{ input_tokens: 1000, output_tokens: 50 }]);
  });
});
