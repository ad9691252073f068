/** Programs of kind acp: what only they do. What all coding agents do is tried with them in the other files. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, newBench, type Step } from "./bench.ts";

const DONE = { say: "Done." };
const TRUE = ["true"];

interface Options {
  abilities?: object;
  settings?: object;
}

function benchOf(
  turns: readonly (readonly Step[])[],
  { abilities, settings }: Options = {},
): Bench {
  const env = abilities === undefined ? {} : { FAKE_ACP: JSON.stringify(abilities) };
  return newBench([{ name: "coder", kind: "acp", turns, settings: { env, ...settings } }]);
}

const drop = ({ pool }: Bench, more: object = {}): void =>
  pool.drop("task", { agent: "coder", prompt: "the task", ...more });

const kinds = (bench: Bench): string[] => bench.log("coder").map(({ event_type: type }) => type);

async function result(bench: Bench, more: object = {}): Promise<Record<string, unknown>> {
  await bench.pool.start();
  drop(bench, more);
  return (await bench.pool.result("task")) as unknown as Record<string, unknown>;
}

async function failure(bench: Bench, more: object = {}): Promise<Record<string, unknown>> {
  await bench.pool.start();
  drop(bench, { max_attempts: 1, ...more });
  return (await bench.pool.error("task")) as unknown as Record<string, unknown>;
}

describe("what counts as done", () => {
  const UNTRUSTED = { settings: { trust: undefined } };

  it("is decided by the checks: a task that has none is refused, at enqueue and in the inbox", async () => {
    const bench = benchOf([[DONE]], UNTRUSTED);
    const { pool } = bench;
    await pool.start();
    const told = await pool.run(["enqueue", "--id", "asked", "--agent", "coder", "--prompt", "x"]);
    expect(told.code).not.toBe(0);
    expect(told.stderr).toContain("the word of coder, of kind acp, is no proof");
    expect(told.stderr).toContain("add verify or expect_files");
    drop(bench);
    const { error, code } = (await pool.error("task")) as unknown as Record<string, unknown>;
    expect([code, String(error)]).toEqual(["ErrInvalidTask", expect.stringContaining("no proof")]);
    expect(bench.starts("coder")).toEqual([]);
  });

  it.each([
    ["the task has a check", {}, { verify: TRUE }],
    ["the agent has a check", { verify: TRUE }, {}],
    ["its word is trusted", { trust: "end_turn" }, {}],
  ])("is accepted when %s", async (_how, settings, task) => {
    const bench = benchOf([[DONE]], { settings: { ...UNTRUSTED.settings, ...settings } });
    expect(await result(bench, task)).toMatchObject({ output: "Done.", attempts: 1 });
  });

  it("is not decided when the task takes the check of its agent away", async () => {
    const bench = benchOf([[DONE]], { settings: { ...UNTRUSTED.settings, verify: TRUE } });
    expect(await failure(bench, { verify: [] })).toMatchObject({ code: "ErrInvalidTask" });
  });

  it("is not what it says: a red check fails a turn that ended well", async () => {
    const bench = benchOf([[DONE]], UNTRUSTED);
    expect(await failure(bench, { verify: ["false"] })).toMatchObject({ kind: "verify" });
  });

  it.each([
    ["max_tokens", "ErrAgentFailed", "limit of tokens"],
    ["max_turn_requests", "ErrAgentFailed", "limit of steps"],
    ["refusal", "ErrAgentRequest", "the model refused"],
    ["cancelled", "ErrInterrupted", "cancelled"],
    ["new_reason", "ErrAgentFailed", "new_reason"],
  ])("is no turn that ends with %s, although the check is green", async (stop, code, words) => {
    const bench = benchOf([[{ say: "Half." }, { stop }]], UNTRUSTED);
    const record = await failure(bench, { verify: TRUE });
    expect(record).toMatchObject({ code });
    expect(String(record["error"])).toContain(words);
  });

  it("is no turn without a text, a tool or tokens", async () => {
    const bench = benchOf([[{ usage: { input: 0, output: 0 } }]]);
    const record = await failure(bench);
    expect(String(record["error"])).toContain("no text, no tool call and no tokens");
  });
});

describe("a silence", () => {
  it("without a tool is a used up quota three times, without an attempt, and then a timeout", async () => {
    const bench = benchOf([[{ say: "Hm." }, { hang: true }]], { settings: { idle_ms: 1000 } });
    const { pool } = bench;
    await pool.start();
    drop(bench, { max_attempts: 1 });
    for (let run = 1; run <= 3; run++) {
      const held = (): boolean =>
        pool.events().filter(({ event }) => event === "held").length === run &&
        fs.existsSync(bench.gatePath("coder"));
      await waitFor(held, { what: `hold ${run}` });
      const { attempt, error } = pool.events().findLast(({ event }) => event === "held") ?? {};
      expect([attempt, error]).toEqual([1, expect.stringContaining(`${run} of 3 runs in a row`)]);
      // The account is open again.
      fs.rmSync(bench.gatePath("coder"));
    }
    expect(await pool.error("task")).toMatchObject({ code: "ErrIdle", attempts: 1 });
    expect(bench.starts("coder")).toHaveLength(4);
  });

  it("before its session is open is a timeout: its service was asked nothing", async () => {
    const bench = benchOf([[DONE]], { abilities: { mute: true }, settings: { idle_ms: 1000 } });
    expect(await failure(bench)).toMatchObject({ code: "ErrIdle", attempts: 1 });
  });
});

describe("what it asks a person", () => {
  const inside = { ask: "execute", run: "echo made > made.txt" };

  it("is answered at once by its permissions, and only for files of its folder", async () => {
    const steps = [inside, { ask: "edit", path: "/etc/passwd", run: "echo no > no.txt" }, DONE];
    const bench = benchOf([steps], { settings: { permissions: { mode: "edit" } } });
    const { verdict_reason: reason } = await result(bench);
    expect(reason).toContain("it was not allowed to use edit, and went another way");
    const has = (file: string): boolean => fs.existsSync(join(bench.pool.dir, file));
    expect([has("made.txt"), has("no.txt")]).toEqual([true, false]);
  });

  it("may only read with mode read, and a run that could do nothing fails", async () => {
    const bench = benchOf([[inside, { say: "I may not." }]], {
      settings: { permissions: { mode: "read" } },
    });
    const record = await failure(bench);
    expect(record).toMatchObject({ kind: "permission", code: "ErrPermission" });
    expect(fs.existsSync(join(bench.pool.dir, "made.txt"))).toBe(false);
  });

  it("is not asked by some programs: a run that changes something in mode read fails, and its agent is paused", async () => {
    const steps = [{ run: "echo made > made.txt" }, { run: "sleep 60" }, DONE];
    const bench = benchOf([steps], { settings: { permissions: { mode: "read" } } });
    const record = await failure(bench, { max_attempts: 3 });
    expect(record).toMatchObject({ kind: "config", code: "ErrAgentConfig", attempts: 1 });
    expect(String(record["error"])).toContain("it has used execute without asking");
    expect(bench.pool.alerts().map(({ alert }) => alert)).toContain("agent_paused");
  });

  it("may use a tool of the list, and anything with mode full", async () => {
    const fetches = { ask: "fetch", run: "echo made > made.txt" };
    for (const permissions of [{ mode: "edit", allow: ["fetch"] }, { mode: "full" }]) {
      const bench = benchOf([[fetches, DONE]], { settings: { permissions } });
      await result(bench);
      expect(fs.existsSync(join(bench.pool.dir, "made.txt"))).toBe(true);
    }
  });

  it("is answered when it is something that is not served", async () => {
    const ask = { jsonrpc: "2.0", id: "r-1", method: "fs/read_text_file", params: { path: "/x" } };
    const bench = benchOf([[{ line: ask }, DONE]]);
    expect(await result(bench)).toMatchObject({ output: "Done." });
  });
});

describe("its session", () => {
  const HALF = [{ say: "Half." }, { stop: "max_tokens" }];

  it("is loaded when it cannot be resumed, and its history counts for nothing", async () => {
    const bench = benchOf([HALF, [DONE]], { abilities: { resume: false, load: true } });
    expect(await result(bench)).toMatchObject({ output: "Done.", attempts: 2 });
    const [first, second] = bench.resumed("coder");
    expect([first, second]).toEqual([undefined, expect.any(String)]);
    const said = bench.log("coder").filter(({ content }) => content === "Half.");
    expect(said).toHaveLength(1);
  });

  it("is replaced by a new one, which is told of the old one, when it can be neither resumed nor loaded", async () => {
    const bench = benchOf([HALF, [DONE]], { abilities: { resume: false } });
    expect(await result(bench)).toMatchObject({ output: "Done.", attempts: 2 });
    expect(bench.resumed("coder")).toEqual([undefined, undefined]);
    expect(bench.messages("coder")[1]).toContain("Half.");
  });

  it("may be lost after a bad turn: a second refusal of the account, and a fourth silence, still end the task", async () => {
    const abilities = { forgets: true };
    const refused = benchOf([[{ fail: 401 }]], { abilities });
    expect(await failure(refused)).toMatchObject({ code: "ErrAuth", attempts: 1 });
    expect(refused.resumed("coder")).toEqual([undefined, expect.any(String), undefined]);
    const silent = benchOf([[{ hang: true }]], { abilities, settings: { idle_ms: 1000 } });
    await silent.pool.start();
    drop(silent, { max_attempts: 1 });
    const hasEnded = (): boolean => {
      // The account is open again.
      fs.rmSync(silent.gatePath("coder"), { force: true });
      return silent.pool.errors().length > 0;
    };
    await waitFor(hasEnded, { what: "the end", timeoutMs: 60_000 });
    expect(silent.pool.errors()).toMatchObject([{ code: "ErrIdle", attempts: 1 }]);
  });

  it("uses the model of the settings, and a model that it does not offer is a fault of them", async () => {
    const abilities = { models: ["small", "large"] };
    const good = benchOf([[DONE]], { abilities, settings: { model: "large" } });
    expect(await result(good)).toMatchObject({ output: "Done." });
    const bad = benchOf([[DONE]], { abilities, settings: { model: "huge" } });
    const record = await failure(bad);
    expect([record["code"], String(record["error"])]).toEqual([
      "ErrAgentConfig",
      expect.stringContaining("unknown model huge"),
    ]);
  });

  it("is opened after a login by auth_method, and without it the methods are named", async () => {
    const abilities = { login: "token" };
    const good = benchOf([[DONE]], { abilities, settings: { auth_method: "token" } });
    expect(await result(good)).toMatchObject({ output: "Done." });
    const bad = benchOf([[DONE]], { abilities });
    const record = await failure(bad);
    expect(record["code"]).toBe("ErrAuth");
    expect(String(record["error"])).toContain("auth_method may be token");
  });

  it("is not opened with a program of another version of the protocol", async () => {
    const record = await failure(benchOf([[DONE]], { abilities: { version: 2 } }));
    expect(record).toMatchObject({ code: "ErrAgentConfig" });
    expect(String(record["error"])).toContain("version 2");
  });

  it("is booked by the tokens of each turn and by what its sum has grown", async () => {
    const uses = (cost: number): Step => ({ usage: { input: 10, output: 5, cost } });
    const bench = benchOf([[uses(0.5), DONE]]);
    await result(bench);
    expect(bench.costs("coder")).toMatchObject([
      { input_tokens: 10, output_tokens: 5, cost_usd_micro: 500_000 },
    ]);
  });
});

describe("a message", () => {
  it("that comes during a turn is the next prompt, and an urgent one ends the turn", async () => {
    const bench = benchOf([[{ say: "A." }, { run: "sleep 60" }], [{ say: "B." }], [DONE]]);
    const { pool } = bench;
    await pool.start();
    drop(bench);
    await waitFor(() => kinds(bench).includes("tool_started"), { what: "the tool call" });
    expect((await pool.run(["say", "task", "first"])).code).toBe(0);
    expect((await pool.run(["say", "task", "second", "--when", "now"])).code).toBe(0);
    expect(await pool.result("task")).toMatchObject({ attempts: 1 });
    const [, ...said] = bench.messages("coder");
    expect(said.join("\n")).toContain("first");
    expect(said.join("\n")).toContain("second");
    expect(bench.starts("coder")).toHaveLength(1);
  });
});

describe("the end of its program", () => {
  it.each([
    ["that ends when its input ends, although it ignores SIGTERM", {}, "EOF"],
    ["that ignores both", { ignoreEof: true }, "kill"],
  ])("comes for one %s", async (_what, abilities, how) => {
    const bench = benchOf([[{ ignore: "SIGTERM" }, { run: "sleep 60" }]], { abilities });
    const { pool } = bench;
    await pool.start();
    drop(bench);
    await waitFor(() => kinds(bench).includes("tool_started"), { what: "the tool call" });
    const [{ pid } = { pid: 0 }] = bench.starts("coder");
    expect(pool.pids()).toContain(pid);
    expect((await pool.run(["cancel", "task"])).code).toBe(0);
    expect(await pool.error("task")).toMatchObject({ kind: "cancelled" });
    expect(pool.pids()).not.toContain(pid);
    const { run } = (await pool.error("task")) as unknown as { run: string };
    const events = fs.readFileSync(join(pool.state, "runs", run, "events.jsonl"), "utf8");
    expect(events.includes('"method":"exits"')).toBe(how === "EOF");
  });
});

describe("doctor", () => {
  const doctor = async (abilities: object): Promise<string> => {
    const { pool } = benchOf([[DONE]], { abilities });
    const { stdout } = await pool.run(["doctor"]);
    return stdout.replaceAll(/\s+/g, " ");
  };

  it("asks the program who it is and what it can do, without a session", async () => {
    const told = await doctor({ login: "token" });
    expect(told).toMatch(
      /ok acp .*fake-acp.mjs fake 1.0.0; auth_method may be token \(used by coder\): resume/,
    );
    expect(await doctor({ resume: false })).toContain("this version has no resume");
  });

  it("names a program of another version of the protocol", async () => {
    expect(await doctor({ version: 2 })).toContain("it speaks version 2 of the protocol");
  });
});
