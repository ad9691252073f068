#!/usr/bin/env node
/**
 * demo-agents.mjs [--real] [--keep]: three coding agents in a night of some fifteen seconds. A quota wait, a killed worker, a resume, a
 * denied tool, a question to a person, a budget, and what it cost. It asserts its counts at the end, and ends with 1 when one is wrong. By default stand-ins play the
 * programs; --real takes the installed claude and codex, against a mock of their service: neither needs an account.
 */
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createJiti } from "jiti";
import { ownFolders } from "./demo-stage.mjs";
import { readFlags } from "./flags.mjs";

const { values: flags } = readFlags(import.meta.url, {
  options: {
    real: { type: "boolean" },
    keep: { type: "boolean" },
    // Seconds by which it must be over.
    limit: { type: "string", default: "60" },
  },
});
const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const LIMIT_MS = Number(flags.limit) * 1000;
/** The account of ada is at its limit for so long. */
const QUOTA_S = flags.real ? 10 : 6;

const root = fs.realpathSync(fs.mkdtempSync(join(os.tmpdir(), "mailchute-demo-agents-")));
const state = join(root, "state");
const work = join(root, "project");
const home = join(root, "home");
const mailbox = join(state, "mailbox");
for (const dir of [state, work, home, mailbox, join(mailbox, "inbox")])
  fs.mkdirSync(dir, { mode: 0o700 });

const startedMs = Date.now();
/** Epoch seconds: when the limit is over. It begins with the second act. */
let resetsAt = 0;
const LONG_TOOL = `echo $$ > ${join(root, "tool.pid")}; exec sleep 60`;

function resultOf(envelope) {
  return `<result>${JSON.stringify({ summary: "I need an answer.", ...envelope })}</result>`;
}

/** What each task asks for, who does it, and how the model answers: as steps of the mock and of the stand-ins. */
const TASKS = [
  { id: "docs", agent: "ada", answers: [{ say: "The page is written." }] },
  {
    id: "long-build",
    agent: "bob",
    answers: [{ run: LONG_TOOL }, { say: "The build is through." }],
  },
  {
    id: "tests",
    agent: "bob",
    answers: [{ run: "echo 42 tests pass" }, { say: "All tests pass." }],
  },
  {
    id: "no-rights",
    agent: "cleo",
    answers: [{ run: "touch made", denied: true }, { say: "I may not." }],
  },
  {
    id: "colour",
    agent: "bob",
    isNode: true,
    answers: [
      { say: resultOf({ status: "checkpoint", checkpoint: { question: "Blue or green?" } }) },
      { say: resultOf({ status: "success", summary: "It is blue." }) },
    ],
  },
  { id: "notes", agent: "cleo", isOverBudget: true, answers: [{ say: "The notes are read." }] },
  { id: "review", agent: "ada", limit: true, answers: [{ say: "The review is done." }] },
  { id: "cleanup", agent: "ada", limit: true, answers: [{ say: "The cleanup is done." }] },
];
const EXPECTED = { completed: 7, failed: 1 };
/** Dropped first; what meets the limit comes when they have started. */
const AT_ONCE = TASKS.filter(
  ({ limit, isNode, isOverBudget }) => !(limit || isNode || isOverBudget),
);
const NODE = TASKS.find(({ isNode }) => isNode);
const OVER_BUDGET = TASKS.find(({ isOverBudget }) => isOverBudget);
const LATER = TASKS.filter(({ limit }) => limit);

const promptOf = ({ id }) => `Do the work of demo-${id}.`;

/** For the stand-ins. A turn that goes on with a session says only that it finished. */
function standInScript() {
  const tasks = TASKS.map(({ id, limit, isNode, answers }) => {
    // Each launch of the node is a turn of its own.
    if (isNode) return [`demo-${id}`, answers.map((step) => [step])];
    const steps = answers.map((step) => (step.denied ? { deny: "Bash" } : step));
    return [`demo-${id}`, [limit ? [{ limit: resetsAt, until: resetsAt }, ...steps] : steps]];
  });
  return { tasks: Object.fromEntries(tasks), turns: [[{ say: "Gone on, and finished." }]] };
}

/** For the mock: a conversation for each task, known by its prompt. The limit gets its time later. */
function scenario(limitStep) {
  const conversations = TASKS.map(({ id, limit, answers }) => ({
    name: id,
    marker: `demo-${id}`,
    steps: [...(limit ? [limitStep] : []), ...answers.map(({ denied, ...step }) => step)],
  }));
  return { conversations };
}

let closeApi = () => {};
/** From now on the account of ada is at its limit, for the stand-ins or for the mock. */
let closeAccount = () => {};

/** The programs of both kinds, with what points them at their answers. */
async function programs() {
  if (!flags.real) {
    const script = join(home, "script.json");
    closeAccount = () => {
      fs.writeFileSync(`${script}.new`, JSON.stringify(standInScript()));
      fs.renameSync(`${script}.new`, script);
    };
    closeAccount();
    const env = { FAKE_AGENT: script, FAKE_AGENT_STATE: join(home, "fake") };
    const program = (kind) => here(`test/fixtures/programs/fake-${kind}.mjs`);
    return {
      claude: { program: program("claude"), env, args: [] },
      codex: { program: program("codex"), env, args: [] },
    };
  }
  const jiti = createJiti(import.meta.url, { fsCache: false });
  const { startMockApi } = await jiti.import("../src/agents/mock-api/server.ts");
  const { claudeAgainst, codexAgainst } = await jiti.import("../src/agents/mock-api/against.ts");
  const limitStep = {};
  closeAccount = () => Object.assign(limitStep, { usageLimit: resetsAt, until: resetsAt });
  const api = await startMockApi(scenario(limitStep));
  closeApi = () => api.close();
  const address = { url: api.url, key: "not-a-key-0001", retries: 0 };
  return {
    claude: { program: find("claude"), ...claudeAgainst(address, { isSubscription: true }) },
    codex: { program: find("codex"), ...codexAgainst(address) },
  };
}

function find(name) {
  const cache = process.env.MAILCHUTE_AGENTS_CACHE ?? here("node_modules/.cache/mailchute-agents");
  const dirs = [...(process.env.PATH ?? "").split(delimiter), join(cache, "node_modules", ".bin")];
  const found = dirs.map((dir) => join(dir, name)).find((path) => fs.existsSync(path));
  if (found === undefined) throw new Error(`${name} is not on PATH; without --real none is needed`);
  return found;
}

async function writeConfig() {
  const { claude, codex } = await programs();
  const agent = (name, kind, mode, { program, env, args }, more = {}) => ({
    ...more,
    name,
    kind,
    program,
    args,
    account: name,
    permissions: { mode },
    env: { ...env, HOME: home },
  });
  const config = {
    workers: 3,
    processes: 3,
    grace_ms: 1000,
    agents: [
      agent("ada", "claude", "edit", claude),
      // Its sandbox could write to the temporary folder, which holds this state tree.
      agent("bob", "codex", "full", codex, { phases: ["IMPLEMENT"] }),
      agent("cleo", "claude", "read", claude, { budget: { day_turns: 1 } }),
    ],
    prices: { "gpt-5": { input_usd: 1, output_usd: 10 } },
  };
  // JSON is YAML, too.
  fs.writeFileSync(join(state, "config.yaml"), JSON.stringify(config), { mode: 0o600 });
  const { id, agent: worker } = NODE;
  const node = { id, title: "Choose a colour", agent: worker, prompt: promptOf(NODE), cwd: work };
  fs.writeFileSync(join(state, "roadmap.yaml"), `nodes:\n  - ${JSON.stringify(node)}\n`);
}

const paint = (code, text) => (process.stdout.isTTY ? `\u001b[${code}m${text}\u001b[0m` : text);
const bold = (text) => console.log(paint(1, text));
const say = (text) => console.log(`   ${text}`);
function tell(subject, text, colour = 32) {
  const seconds = ((Date.now() - startedMs) / 1000).toFixed(1).padStart(6);
  console.log(`${seconds} s  ${subject.padEnd(11)} ${paint(colour, text)}`);
}

function drop(task) {
  const { id, agent } = task;
  const text = JSON.stringify({ agent, prompt: promptOf(task), cwd: work });
  say(`${`${id}.json`.padEnd(16)}${text.length > 58 ? `${text.slice(0, 57)}…` : text}`);
  const staged = join(root, `${id}.json`);
  fs.writeFileSync(staged, text);
  fs.renameSync(staged, join(mailbox, "inbox", `${id}.json`));
}

const read = (path) => {
  try {
    return fs.readFileSync(path, "utf8");
  } catch {
    return "";
  }
};
const json = (path) => {
  try {
    return JSON.parse(read(path));
  } catch {
    return undefined;
  }
};
const lines = (path) =>
  read(path)
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
const recordOf = (id) =>
  json(join(mailbox, "outbox", `${id}_result.json`)) ??
  json(join(mailbox, "failed", `${id}_error.json`));
const costs = () =>
  fs
    .readdirSync(join(state, "analytics"))
    .filter((name) => /^costs\.[-\d]+\.jsonl$/.test(name))
    .flatMap((name) => lines(join(state, "analytics", name)));
const events = () => lines(join(state, "analytics", "supervisor_lifecycle.jsonl"));
const gate = () => json(join(root, "xdg", "mailchute", "accounts", "ada.json"));

let supervisor;
/** Tasks over their budget that ran before the answer. */
let early = -1;
let heard = 0;
const told = new Set();
let closedUntilMs;
let closedAtMs;

/** Tells what is new. */
function hear() {
  const all = events();
  for (const event of all.slice(heard)) {
    const id = event.task_id;
    const agent = TASKS.find((task) => task.id === id)?.agent;
    if (event.event === "started") {
      // Runs that wait for their turn after a limit begin several times.
      const isAfter = closedUntilMs !== undefined && event.t >= closedUntilMs;
      const again = event.attempt > 1 ? `, run ${event.attempt}` : isAfter ? " again" : "";
      if (!told.has(id + again)) tell(id, `${agent} takes it${again}`, 36);
      told.add(id + again);
    } else if (id === NODE.id) {
      // Its first run ends with a question. What it came to is told below.
    } else if (event.event === "reclaimed") tell(id, "its worker is dead: taken back", 33);
    else if (event.event === "completed" || event.event === "failed") {
      const record = recordOf(id);
      if (event.event === "failed" && record?.status === "failed")
        tell(id, `failed (${record.kind}): ${record.error}`, 31);
      else if (record?.status === "completed") tell(id, `done: ${record.output}`);
    }
  }
  heard = all.length;
  const now = gate();
  if (now?.status === "closed" && closedUntilMs === undefined) {
    closedUntilMs = now.until_ms;
    closedAtMs = Date.now();
    const seconds = Math.round((closedUntilMs - closedAtMs) / 1000);
    tell(
      "ada",
      `her account is at its limit for ${seconds} s: her tasks wait, no attempt is used`,
      33,
    );
  }
}

async function until(what, look) {
  for (;;) {
    hear();
    const found = look();
    if (found) return found;
    if (Date.now() - startedMs > LIMIT_MS) throw new Error(`${what} did not happen in time`);
    if (supervisor.exitCode !== null && what !== "the end")
      throw new Error(
        `the supervisor ended before ${what}:\n${read(join(root, "supervisor.log"))}`,
      );
    await wait(50);
  }
}

function environment() {
  const env = Object.entries(process.env).filter(([name]) => !/^(?:MAILCHUTE|DROVER)_/.test(name));
  return { ...Object.fromEntries(env), ...ownFolders(root) };
}

/** The status of the node, as the plan says. */
const nodeStatus = () => /"?status"?: "?(\w+)/.exec(read(join(state, "roadmap.yaml")))?.[1];

/** Open questions of budgets: a list of their ids, each with its sentence. */
function openQuestions() {
  const dir = join(state, "questions", "open");
  const names = fs.existsSync(dir) ? fs.readdirSync(dir) : [];
  return names
    .filter((name) => name.endsWith(".md"))
    .map((name) => ({
      id: name.slice(0, -".md".length),
      text: /^# (.*)$/m.exec(read(join(dir, name)))?.[1],
    }));
}

let answered = 0;
/** Answers as a person does. */
function answer(id, text) {
  say(`$ mailchute answer ${id} ${JSON.stringify(text)}`);
  const args = [here("bin/mailchute.js"), "answer", id, text, "--state", state];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, env: environment() });
  if (status !== 0) throw new Error(`the answer was not taken: ${stderr}`);
  answered++;
}

function startSupervisor() {
  const log = fs.openSync(join(root, "supervisor.log"), "a");
  supervisor = spawn(process.execPath, [here("bin/mailchute.js"), "run", "--state", state], {
    cwd: root,
    env: environment(),
    stdio: ["ignore", log, log],
    detached: true,
  });
  fs.closeSync(log);
}

/** The pid of the worker that runs a task, by the record of its lease. */
function workerOf(id) {
  const leases = lines(join(state, "supervisor_leases.jsonl"));
  return leases.findLast(({ task_id: task, status }) => task === id && status === "active").pid;
}

async function perform() {
  bold(`Three coding agents in a short night${flags.real ? ", with the real programs" : ""}`);
  say(`state tree: ${state}`);
  await writeConfig();
  startSupervisor();
  bold("1. Work for ada (claude), bob (codex) and cleo (claude, may only read)");
  for (const task of AT_ONCE) drop(task);
  await until("the long build", () => fs.existsSync(join(root, "tool.pid")));
  await until("the first ends", () => recordOf("docs") && recordOf("no-rights"));

  bold("2. More for ada, whose account is at its limit");
  resetsAt = Math.ceil(Date.now() / 1000) + QUOTA_S;
  closeAccount();
  for (const task of LATER) drop(task);
  await until("the limit", () => closedUntilMs !== undefined);

  bold("3. A crash: the worker of bob's long build is killed");
  const pid = workerOf("long-build");
  say(`$ kill -9 ${pid}`);
  process.kill(pid, "SIGKILL");
  await until("the second run", () => recordOf("long-build"));

  bold("4. A question: bob's node of the plan waits for a person");
  await until("the question", () => nodeStatus() === "needs_human");
  tell(NODE.id, "asks: Blue or green?", 33);
  answer(NODE.id, "Blue.");

  bold("5. A budget: cleo may have one turn a day, and has had it");
  drop(OVER_BUDGET);
  const [question] = await until("the question about the budget", () => {
    const found = openQuestions();
    return found.length > 0 && found;
  });
  tell("cleo", question.text, 33);
  early = recordOf(OVER_BUDGET.id) === undefined ? 0 : 1;
  answer(question.id, "yes");

  bold("6. Until all is done");
  await until("the end of the node", () => nodeStatus() === "done");
  tell(NODE.id, "done: It is blue.");
  await until("the end of all tasks", () => TASKS.every(({ id }) => recordOf(id)));
  supervisor.kill("SIGTERM");
  await until("the end", () => supervisor.exitCode !== null || supervisor.signalCode !== null);
}

/** Session ids that the runs of a task have had: a list for each run. */
function sessionsOf(id) {
  const runs = join(state, "runs");
  const logs = fs
    .readdirSync(runs, { recursive: true })
    .filter((name) => name.includes(`${id}@`) && name.endsWith("events.jsonl"));
  return logs.map((name) => {
    const text = read(join(runs, name));
    return [...text.matchAll(/"(?:thread_id|session_id)":"([^"]+)"/g)].map(([, one]) => one);
  });
}

/** Processes that carry the name of this state tree in their environment. */
function processesLeft() {
  if (!fs.existsSync("/proc/self/environ")) return 0;
  const pids = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => read(`/proc/${pid}/environ`).includes(root)).length;
}

function counts() {
  const records = TASKS.map(({ id }) => recordOf(id) ?? {});
  const with_ = (status) => records.filter((record) => record.status === status).length;
  const tooEarly = events().filter(
    ({ event, task_id: id, t }) =>
      event === "started" &&
      LATER.some((task) => task.id === id) &&
      t > closedAtMs &&
      t < closedUntilMs,
  );
  const sessions = sessionsOf("long-build");
  const isSame = sessions.length === 2 && new Set(sessions.flat()).size === 1;
  const left = ["inbox", "processing"].flatMap((tray) =>
    fs.readdirSync(join(mailbox, tray)).filter((name) => name.endsWith(".json")),
  );
  return [
    ["tasks completed", EXPECTED.completed, with_("completed")],
    [
      "failed for good: a tool was denied",
      EXPECTED.failed,
      records.filter(({ kind }) => kind === "permission").length,
    ],
    ["runs of the killed worker's task", 2, recordOf("long-build")?.attempts],
    ["of these in one session", 1, Number(isSame)],
    ["runs of ada's account before its limit was over", 0, tooEarly.length],
    [
      "attempts that the limit used up",
      0,
      LATER.filter(({ id }) => recordOf(id)?.attempts !== 1).length,
    ],
    ["questions of a node and of a budget that were answered", 2, answered],
    ["tasks that ran over their budget before the answer", 0, early],
    ["questions that are open", 0, openQuestions().length],
    ["agents whose use was booked", 3, new Set(costs().map(({ agent }) => agent)).size],
    ["left in inbox/ and processing/", 0, left.length],
    ["processes left", 0, processesLeft()],
    ["exit code of the supervisor", 0, supervisor.exitCode],
  ];
}

function report() {
  bold("7. What it used");
  const sums = new Map();
  for (const {
    agent,
    input_tokens: input,
    output_tokens: output,
    cost_usd_micro: micro,
  } of costs()) {
    const sum = sums.get(agent) ?? { runs: 0, tokens: 0, micro: 0 };
    sums.set(agent, {
      runs: sum.runs + 1,
      tokens: sum.tokens + input + output,
      micro: sum.micro + (micro ?? 0),
    });
  }
  for (const [agent, { runs, tokens, micro }] of [...sums].sort())
    say(
      `${agent.padEnd(6)}${runs} runs, ${tokens} tokens, ${micro > 0 ? `${(micro / 1e6).toFixed(4)} USD` : "no price"}`,
    );
  bold("The end: what the files say against what is expected");
  let wrong = 0;
  for (const [name, expected, found] of counts()) {
    const isRight = expected === found;
    if (!isRight) wrong++;
    say(
      `${isRight ? paint(32, "ok ") : paint(31, "OFF")} ${String(found).padStart(3)}  ${name}${isRight ? "" : `, expected ${expected}`}`,
    );
  }
  const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
  if (wrong === 0)
    bold(`All counts are as expected: ${TASKS.length} tasks, none lost, ${seconds} s.`);
  return wrong;
}

/** Leaves no process behind, however it ends. */
function cleanUp() {
  for (let round = 0; round < 50 && fs.existsSync("/proc/self/environ"); round++) {
    const pids = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    const ours = pids.filter(
      (pid) => Number(pid) !== process.pid && read(`/proc/${pid}/environ`).includes(root),
    );
    if (ours.length === 0) break;
    for (const pid of [supervisor?.pid, ...ours.map(Number)])
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has just ended.
      }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  }
  if (!flags.keep) fs.rmSync(root, { recursive: true, force: true, maxRetries: 5 });
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(130));
process.on("exit", cleanUp);
try {
  await perform();
  process.exitCode = report() === 0 ? 0 : 1;
} catch (error) {
  console.error(`the demo failed: ${error.message}`);
  process.exitCode = 1;
}
await closeApi();
// A supervisor that still runs must not keep this process: what is left is ended on exit.
process.exit();
