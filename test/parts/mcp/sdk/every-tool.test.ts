/** Each tool and resource of `mailchute mcp` through the client of the protocol's own kit, on a pool that runs: `npm run test:mcp`. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newTalkPool, UNTIL_GO } from "../../../agents/talk/talk-pool.ts";
import type { Pool } from "../../../support/pool.ts";
import { readPlan } from "../../../support/read-plan.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { streamsOf } from "../../mail/mail-pool.ts";
import { connect, type SdkClient } from "./sdk-client.ts";

const SLOW_MS = 60_000;
const LOG_BYTES = 10_000_000;
const PLAN = `nodes:
  - {id: first, title: First, exec: ["true"]}
  - {id: second, title: Second, exec: ["true"], dependencies: [never]}
  - {id: never, title: Never, status: blocked, exec: ["true"]}
`;

async function startPool(): Promise<Pool> {
  const pool = newTalkPool({ GO: [[{ run: UNTIL_GO }, { say: "Done." }]] });
  fs.appendFileSync(join(pool.state, "config.yaml"), "data: .\nmail_enabled: true\n");
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), PLAN);
  await pool.start();
  return pool;
}

async function connectTo(pool: Pool, ...args: string[]): Promise<SdkClient> {
  return (await connect(pool.dir, { MAILCHUTE_STATE: pool.state }, args)).client;
}

const textOf = ({ content }: { content: { text: string }[] }): string =>
  content.map(({ text }) => text).join("\n");

it.each([
  ["auto", "2025-11-25"],
  ["legacy", "2025-11-25"],
] as const)("a client that agrees by %s speaks %s", async (mode, version) => {
  const pool = newTalkPool({});
  const env = { MAILCHUTE_STATE: pool.state };
  const { client } = await connect(pool.dir, env, [], mode);
  expect(client.getNegotiatedProtocolVersion()).toBe(version);
  expect(client.getServerCapabilities()).toEqual({ tools: {}, resources: {} });
});

it("does with each tool what the tool says", { timeout: 300_000 }, async () => {
  const pool = await startPool();
  const client = await connectTo(pool, "--as", "pat", "--allow", "exec,control");
  const unused = new Set((await client.listTools()).tools.map(({ name }) => name));
  const call = async (name: string, args: object = {}): Promise<string> => {
    unused.delete(name);
    const said = await client.callTool({ name, arguments: args });
    expect(said.isError, `${name}: ${textOf(said)}`).toBe(false);
    return textOf(said);
  };
  /** @returns its id */
  const give = (...argv: string[]): Promise<string> => call("enqueue_program", { argv });

  // Tasks, and what is seen of them.
  const echo = await give("echo", "from the tool");
  expect(await call("wait", { ids: [echo], seconds: 40 })).toContain("completed");
  expect(await call("task", { id: echo })).toContain(echo);
  expect(await call("log", { id: echo })).toBe("from the tool");
  expect(await call("tasks", { state_is: "done" })).toContain(echo);
  const { resources } = await client.listResources();
  const uri = resources.find(({ name }) => name === echo)?.uri ?? "";
  const [read] = (await client.readResource({ uri })).contents;
  expect(JSON.parse(read?.text ?? "")).toEqual(await pool.result(echo));
  const { resourceTemplates } = await client.listResourceTemplates();
  expect(resourceTemplates).toMatchObject([{ uriTemplate: "mailchute://results/{id}" }]);

  // Steering.
  const flag = join(pool.dir, "mended");
  const fails = await give("test", "-e", flag);
  await pool.error(fails);
  fs.writeFileSync(flag, "");
  await call("retry", { ids: [fails] });
  await pool.result(fails);
  const long = await give("sleep", "1000");
  await waitFor(async () => /running/.test(await call("task", { id: long })), {
    what: "its start",
  });
  await call("cancel", { ids: [long] });
  expect(await pool.error(long)).toMatchObject({ kind: "cancelled" });
  await call("pause");
  expect(await call("status")).toMatch(/paused/);
  await call("resume");
  expect(await call("status")).not.toMatch(/paused/);

  // The plan.
  await pool.result("first");
  expect(await call("plan")).toMatch(/first +done/);
  expect(await call("plan_next")).toContain("nothing is ready");
  expect(await call("plan_add", { id: "third", title: "Third", after: ["never"] })).toBe("third");
  expect(readPlan(join(pool.state, "roadmap.yaml"))).toContain("third");
  await call("plan_status", { id: "never", status: "done" });
  await pool.result("second");
  await waitFor(async () => /second +done/.test(await call("plan")), { what: "the second node" });
  expect(await call("plan_reset", { ids: ["second"] })).toContain("second: done → open");
  await waitFor(() => fs.existsSync(join(pool.state, "evidence", "second", "earlier")), {
    what: "the evidence of the first time",
  });

  // Agents and mail.
  const work = await call("enqueue", { agent: "claude", prompt: "GO", title: "Work" });
  await waitFor(() => streamsOf(pool).join().includes("until test"), { what: "the tool call" });
  expect(await call("interrupt", { name: work, text: "look at X" })).toContain("your text");
  expect(await pool.result(work, SLOW_MS)).toMatchObject({ output: "ok" });
  expect(await call("agents")).toContain("claude");
  expect(await call("why_task", { id: "second" })).toContain("second has completed");
  expect(await call("why", { name: "claude" })).toContain("claude");
  expect(await call("say", { to: ["pat", "human"], text: "to myself" })).toContain("recorded");
  expect(await call("mail", { ack: true })).toContain("to myself");
  expect(await call("messages", { last: 5 })).toContain("to myself");
  expect(await call("spawn", { agent: "claude", task: "hello", name: "kid" })).toContain("kid");
  const [, question = ""] =
    /question (\S+): recorded/.exec(await call("ask", { question: "So?" })) ?? [];
  await call("answer", { id: question, text: "Yes." });
  await waitFor(async () => (await call("mail")).includes("Yes."), { what: "the answer" });
  expect(await call("report", { since: "1h" })).toMatch(/completed/);

  expect([...unused]).toEqual([]);
});

describe("bad arguments", () => {
  it("of each tool are named, and nothing is done", { timeout: 120_000 }, async () => {
    const pool = newTalkPool({});
    const client = await connectTo(pool, "--allow", "exec,control");
    for (const { name, inputSchema } of (await client.listTools()).tools) {
      const { properties, required = [] } = inputSchema;
      const refuse = async (args: object, text: string): Promise<void> => {
        const said = await client.callTool({ name, arguments: args });
        expect(said.isError, name).toBe(true);
        expect(textOf(said)).toMatch(new RegExp(text));
      };
      const bad = (what: string): string => `^${what}: (un)?expected .*, found `;
      const unknown = `^${name} has no argument "other": it`;
      await refuse({ ...valuesOf(properties, required), other: 1 }, unknown);
      for (const one of Object.keys(properties)) {
        const args = { ...valuesOf(properties, required), [one]: { not: "this" } };
        await refuse(args, bad(one));
      }
      for (const one of required) {
        const others = required.filter((name) => name !== one);
        await refuse(valuesOf(properties, others), bad(one));
      }
    }
    expect(fs.readdirSync(pool.inbox)).toEqual([]);
  });

  it("that only the command can judge are told with what to do", async () => {
    const client = await connectTo(newTalkPool({}), "--allow", "control");
    for (const [name, args, says] of [
      ["task", { id: "none" }, /ErrTaskNotFound: no tray has a task "none".*do: /s],
      ["retry", { ids: ["none"] }, /ErrTaskNotFound.*do: /s],
      ["tasks", { state_is: "gone" }, /waiting, ready, held, running, done, failed/],
      ["plan_status", { id: "n", status: "ready" }, /one of open, in_progress/],
    ] as const) {
      const said = await client.callTool({ name, arguments: args });
      expect(said.isError, name).toBe(true);
      expect(textOf(said)).toMatch(says);
    }
  });

  it("of the protocol are errors of the protocol", async () => {
    const client = await connectTo(newTalkPool({}));
    const unknown = client.callTool({ name: "rm", arguments: {} });
    await expect(unknown).rejects.toThrow("there is no tool rm");
    const none = client.readResource({ uri: "mailchute://results/none" });
    await expect(none).rejects.toMatchObject({ code: -32_002 });
    const foreign = client.readResource({ uri: "file:///etc/passwd" });
    await expect(foreign).rejects.toMatchObject({ code: -32_602 });
  });
});

it("a log of 10 MB is answered with its end, and the server keeps no more of it", async () => {
  const pool = newTalkPool({});
  await pool.start();
  const { client, pid } = await connect(pool.dir, { MAILCHUTE_STATE: pool.state }, []);
  const line = `${"x".repeat(99)}\n`;
  const script = `process.stdout.write(${JSON.stringify(line)}.repeat(${LOG_BYTES / 100}) + "the end")`;
  pool.drop("long", { exec: [process.execPath, "-e", script] });
  await pool.result("long", SLOW_MS);
  const log = async (): Promise<string> =>
    textOf(await client.callTool({ name: "log", arguments: { id: "long" } }));
  for (let n = 0; n < 20; n++) {
    const text = await log();
    expect(text.length).toBeLessThan(51_000);
    expect(text).toMatch(/^\(cut: the last 50000 of 1\d{7} bytes\)\nx/);
    expect(text.endsWith("the end")).toBe(true);
  }
  // 200 MB went through it.
  expect(peakOf(pid)).toBeLessThan(150_000_000);
});

it("a call that the client gives up is ended", async () => {
  const pool = newTalkPool({});
  const client = await connectTo(pool);
  const giveUp = new AbortController();
  const waits = client.callTool(
    { name: "wait", arguments: { ids: ["never"], seconds: 50 } },
    { signal: giveUp.signal },
  );
  const waiting = (): number[] => pool.pids().filter((pid) => argumentsOf(pid).includes("wait"));
  await waitFor(() => waiting().length === 1, { what: "the process of the call" });
  giveUp.abort();
  await expect(waits).rejects.toThrow();
  await waitFor(() => waiting().length === 0, { what: "its end" });
});

/** Values that the tool takes. */
function valuesOf(properties: Record<string, unknown>, names: readonly string[]): object {
  const one = (name: string): unknown => {
    const { type = "", anyOf } = properties[name] as { type?: string; anyOf?: { const: string }[] };
    return anyOf?.[0]?.const ?? { string: "a", array: ["a"], integer: 1, boolean: true }[type];
  };
  return Object.fromEntries(names.map((name) => [name, one(name)]));
}

/** The most memory that a process had so far, in bytes. */
function peakOf(pid: number): number {
  const [, kib] = /VmHWM:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1024;
}

function argumentsOf(pid: number): string[] {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}
