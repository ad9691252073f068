/**
 * The programs of a night and the service that they ask. Stand-ins read a script; the real programs (`real: true`) ask a mock of their
 * service in this process, which outlives all kills, and knows what it has charged.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { createJiti } from "jiti";
import { here, json, lines } from "../../scripts/demo-stage.mjs";
import { markerOf } from "./items.mjs";

/** The last line of the tool, see work.mjs. */
const WORKED = "The work is there.";

const KIND_OF = { ada: "claude", bob: "codex" };
const QUESTION = "There are two ways.\n\nWhich colour shall it have?";
const DONE = "It is done.";
/** A session that is too long before it has done anything says that the task is too long. */
const BEGINS = { run: "true" };
/** So long is an account at its limit, and the service overloaded (s). */
const WINDOW_S = 4;
const OVERLOADED_S = 8;
/** Five answers of a model. */
const DAY_TOKENS = 5000;

/** The command by which a model does the work of an item: see work.mjs. */
const commandOf = (root) => `"${process.execPath}" "${here("test/nights/work.mjs")}" "${root}"`;

/** Where the real programs are. It installs them first: the versions of `test:agents`, or the newest ones. */
async function install(isNewest) {
  if (isNewest) {
    const cache = here("node_modules/.cache/mailchute-agents-newest");
    fs.mkdirSync(cache, { recursive: true });
    fs.writeFileSync(join(cache, "package.json"), '{"private": true}\n');
    const names = ["@anthropic-ai/claude-code@latest", "@openai/codex@latest"];
    execFileSync("npm", ["install", "--no-audit", "--no-fund", ...names], { cwd: cache });
    return (kind) => join(cache, "node_modules", ".bin", kind);
  }
  const jiti = createJiti(import.meta.url, { fsCache: false });
  const { default: installPinned, programPath } = await jiti.import("../agents/real/install.ts");
  installPinned();
  return programPath;
}

/** @returns the agents for config.yaml, what was charged (tokens), and an end */
export async function openService({ root, items, isReal, isNewest, isMetered }) {
  return isReal ? openMock({ root, items, isNewest, isMetered }) : writeScripts({ root, items });
}

const agentOf = (name, more) => ({
  name,
  kind: KIND_OF[name],
  account: name,
  permissions: { mode: "full" },
  // The real codex says nothing more, and does not end, when the disk was full.
  idle_ms: 20_000,
  // A person is asked in each night.
  ...(name === "ada" ? { budget: { day_tokens: DAY_TOKENS } } : {}),
  ...more,
});

/** The scripts of the stand-ins: what happens before an item's first work. */
function writeScripts({ root, items }) {
  const turn = [{ run: commandOf(root) }, { say: DONE }];
  const first = {
    window: () => [[{ limitForS: WINDOW_S }, ...turn]],
    throttled: () => [[{ notice: "429, retrying in 2 s" }, { sleepMs: 2000 }, ...turn]],
    overloaded: () => [
      [{ fail: 529, message: "overloaded", until: Date.now() / 1000 + OVERLOADED_S }, ...turn],
    ],
    login: () => [[{ fail: 401 }], turn],
    cut: (kind) => [
      [{ fail: 500, message: kind === "codex" ? "stream disconnected" : "API Error: 500" }],
    ],
    refused: () => [[{ deny: "Bash" }, ...turn]],
    question: () => [[{ say: QUESTION }]],
    overflow: (kind) => [
      kind === "codex"
        ? [BEGINS, { fail: 400, message: "Codex ran out of room in the model's context window." }]
        : [BEGINS, { say: "Prompt is too long" }, { runaway: "prompt_too_long" }],
    ],
  };
  const agents = Object.keys(KIND_OF).map((name) => {
    const own = items.filter(({ agent, kind }) => agent === name && kind in first);
    const tasks = own.map((item) => {
      const turns = first[item.kind](KIND_OF[name]);
      return [markerOf(item), [...turns, turn]];
    });
    const script = join(root, `${name}.json`);
    fs.writeFileSync(script, JSON.stringify({ tasks: Object.fromEntries(tasks), turns: [turn] }));
    const env = { FAKE_AGENT: script, FAKE_AGENT_STATE: join(root, name), HOME: root };
    const program = here(`test/fixtures/programs/fake-${KIND_OF[name]}.mjs`);
    return agentOf(name, { program, env });
  });
  return { agents, charged: () => usedIn(root), close() {} };
}

/** What the sessions of the stand-ins have used. A program that was killed has not noted its last turn. */
function usedIn(root) {
  const sums = { input: 0, output: 0 };
  for (const name of Object.keys(KIND_OF)) {
    const dir = join(root, name);
    const files = fs.existsSync(dir) ? fs.readdirSync(dir) : [];
    for (const file of files.filter((one) => /^session-.*\.json$/.test(one))) {
      const { usage } = json(join(dir, file)) ?? {};
      sums.input += usage?.input ?? 0;
      sums.output += usage?.output ?? 0;
    }
  }
  return sums;
}

async function openMock({ root, items, isNewest, isMetered }) {
  const programOf = await install(isNewest);
  const jiti = createJiti(import.meta.url, { fsCache: false });
  const { startMockApi } = await jiti.import("../../src/agents/mock-api/server.ts");
  const { claudeAgainst, codexAgainst } = await jiti.import("../../src/agents/mock-api/against.ts");
  const charged = { input: 0, output: 0 };
  const model = new Model(items, commandOf(root));
  // The mock answers these by itself. Without a meter no program tells of them.
  const noteSide = ({ kind }) => {
    if (!isMetered || (kind !== "side" && kind !== "compaction")) return;
    charged.input += 1000;
    charged.output += 30;
  };
  const api = await startMockApi(
    (asked) => {
      const step = model.answer(asked);
      if (step.status === undefined && step.usageLimit === undefined && !step.cut) {
        charged.input += 1000;
        charged.output += 30;
      } else if (isMetered && step.cut && asked.tools.includes("Bash")) {
        // The service of claude names the tokens of the prompt before its answer.
        charged.input += 1000;
        charged.output += 1;
      }
      return step;
    },
    { onRequest: noteSide },
  );
  const against = {
    ada: claudeAgainst(
      { url: api.url, key: "not-a-key-0001", retries: 1 },
      { isSubscription: true },
    ),
    bob: codexAgainst({ url: api.url, key: "not-a-key-0002", retries: 1 }),
  };
  const agents = Object.keys(KIND_OF).map((name) => {
    const home = join(root, `home-${name}`);
    fs.mkdirSync(home);
    return agentOf(name, {
      program: programOf(KIND_OF[name]),
      model: KIND_OF[name] === "claude" ? "claude-sonnet-4-5" : "mock-model",
      ...(isMetered ? { meter: true } : {}),
      args: against[name].args.map((arg) =>
        isMetered ? arg.replace(`${api.url}/v1`, `{meter:${api.url}/v1}`) : arg,
      ),
      env: { ...against[name].env, HOME: home, IS_SANDBOX: "1" },
    });
  });
  if (isMetered) agents.push(openCode(root, api.url, programOf("opencode")));
  return { agents, charged: () => charged, close: () => api.close() };
}

/** The third program of a night with meters, in the place of one without a model. */
function openCode(root, url, program) {
  const home = join(root, "home-eve");
  fs.mkdirSync(home);
  return {
    name: "eve",
    kind: "acp",
    account: "eve",
    command: [program, "acp"],
    permissions: { mode: "full" },
    meter: true,
    idle_ms: 20_000,
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "not-a-key-0003",
      HOME: home,
      OPENCODE_CONFIG_CONTENT: '{"model":"anthropic/claude-sonnet-4-5"}',
      OPENCODE_DISABLE_AUTOUPDATE: "1",
    },
  };
}

/** What the model answers: its fault, once for each item, then a call of the tool, then an end when the tool has answered. */
class Model {
  constructor(items, command) {
    this.items = items;
    this.command = command;
    /** What has happened already, as `<fault> <id>`. */
    this.had = new Map();
  }

  answer({ texts, tools, lines: told }) {
    // A title, say.
    if (tools.length === 0) return { say: "ok" };
    const all = texts.join("\n");
    const item = this.items.find((one) => all.includes(`${markerOf(one)}:`));
    if (item === undefined) return { say: "ok" };
    const fault = this.faultOf(item, told);
    if (fault !== undefined) return fault;
    const last = told.at(-1) ?? "";
    // A tool that was killed, or met the full disk, is called again.
    const isDone = last.includes("[result ") && last.includes(WORKED);
    return isDone ? { say: DONE } : { run: this.command };
  }

  once(what, { id }) {
    const key = `${what} ${id}`;
    if (this.had.has(key)) return false;
    this.had.set(key, Date.now());
    return true;
  }

  faultOf(item, told) {
    const nowS = Date.now() / 1000;
    const last = told.at(-1) ?? "";
    const { kind } = item;
    if (kind === "loop") return { run: "true" };
    if (kind === "window" && this.once(kind, item))
      return { usageLimit: Math.ceil(nowS) + WINDOW_S };
    if (kind === "throttled" && this.once(kind, item))
      return { status: 429, headers: { "retry-after": "2" } };
    if (kind === "overloaded") {
      this.once(kind, item);
      const sinceMs = this.had.get(`${kind} ${item.id}`);
      if (Date.now() - sinceMs < OVERLOADED_S * 1000) return { status: 529 };
    }
    if (kind === "login" && this.once(kind, item)) return { status: 401 };
    if (kind === "cut" && this.once(kind, item)) return { say: "Half", cut: true };
    if (kind === "refused" && this.once(kind, item)) return { run: "rm -rf build" };
    if (kind === "refused" && last.includes("[result ") && this.once("after", item))
      return { run: this.command };
    if (kind === "question" && this.once(kind, item)) return { say: QUESTION };
    if (kind === "overflow" && this.once("begins", item)) return BEGINS;
    if (kind === "overflow" && last.includes("[result ") && this.once(kind, item)) return tooLong();
    return undefined;
  }
}

/** Each program knows its own service's words. */
const tooLong = () => ({
  status: 400,
  body: {
    type: "error",
    error: {
      type: "invalid_request_error",
      code: "context_length_exceeded",
      message: "prompt is too long: 210000 tokens > 200000 maximum",
    },
  },
});

/** Tokens that the books of a state tree name. */
export function bookedIn(analytics) {
  const files = fs.readdirSync(analytics).filter((name) => /^costs\.\d.*\.jsonl$/.test(name));
  const records = files.flatMap((name) => lines(join(analytics, name)));
  // There may be two lines about one run in one session. The first one counts, as for the product.
  const runs = new Map(records.toReversed().map((one) => [`${one.lease} ${one.session_id}`, one]));
  const sums = { input: 0, output: 0 };
  for (const { input_tokens: input, output_tokens: output } of runs.values()) {
    sums.input += input;
    sums.output += output;
  }
  return sums;
}
