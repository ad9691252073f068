#!/usr/bin/env node
/**
 * demo-night.mjs [--keep]: a night with a checklist in about a minute. --keep leaves its tree, and says how to go on in it. Three agents work on one repository: a quota wait, a crash, a
 * conflict, a question, a budget and a review; in the morning each item has landed and is checked, or waits with its reason. It asserts
 * its counts at the end, and ends with 1 when one is wrong. Stand-ins play the programs: it needs no account and no network.
 */
import fs from "node:fs";
import { join } from "node:path";
import { here, json, lines, read, Stage } from "./demo-stage.mjs";
import { readFlags } from "./flags.mjs";

const { values: flags } = readFlags(import.meta.url, {
  options: {
    keep: { type: "boolean" },
    // Seconds by which it must be over.
    limit: { type: "string", default: "180" },
  },
});
const stage = new Stage("demo-night", { limitMs: Number(flags.limit) * 1000, keep: flags.keep });
const { root, state } = stage;
const project = join(root, "project");
const list = join(project, "todo.md");
const TARGET = "mailchute/integration";
const QUOTA_S = 5;
const git = (...args) => stage.run("git", args, project).trim();
const file = (name) => git("show", `${TARGET}:${name}`);

/** Items of the list: for ada, for bob, and one more for bob after the crash. */
const EVENING = ["Greet in German", "Write the manual", "Mend the parser", "Add a licence"];
const LATER = ["Greet politely", "Build the index", "Test the parser"];
const LAST = ["Choose a colour"];
const ALL = [...EVENING, ...LATER, ...LAST];

const write = (name, text) => ({ run: `printf '%s\\n' '${text}' > ${name}` });
const done = (text) => [{ say: text }];
const verdict = (word, summary) =>
  done(`<result>${JSON.stringify({ verdict: word, summary })}</result>`);
/** How the agent mends a conflict: both changes hold. */
const MERGE = `git merge -q ${TARGET} || { printf 'Guten Tag\\nPlease\\n' > greeting.txt; git commit -qam 'greet politely, in German'; }`;
const LONG = `echo $$ > ${join(root, "tool.pid")}; exec sleep 600`;
const ASK = `"${process.execPath}" "${here("bin/mailchute.js")}" ask --id colour --wait "Blue or green?" > colour.txt`;

/** What each agent does, by words of what it is told; the first words that fit count. */
const SCRIPTS = {
  ada: {
    tasks: {
      "the empty line": [[write("parser.txt", "words, lines, empty lines"), ...done("Mended.")]],
      "the year is missing": [[write("LICENCE", "MIT, by us"), ...done("I do not know the year.")]],
      "Greet in German": [[write("greeting.txt", "Guten Tag"), ...done("It greets in German.")]],
      // Its account is at its limit when this one begins.
      "Write the manual": [
        [{ limitForS: QUOTA_S }, write("manual.txt", "Read me."), ...done("The manual is there.")],
      ],
      "Mend the parser": [[write("parser.txt", "words, lines"), ...done("The parser is mended.")]],
      "Add a licence": [[write("LICENCE", "MIT"), ...done("There is a licence.")]],
    },
    turns: [[write("manual.txt", "Read me."), ...done("The manual is there.")]],
  },
  bob: {
    tasks: {
      // The answer to his question also comes as mail when his run has ended before he has read it.
      "There is mail for you": [done("I have it already.")],
      "conflict in greeting.txt": [[{ run: MERGE }, ...done("Both changes are in.")]],
      "Greet politely": [[write("greeting.txt", "Please"), ...done("It greets politely.")]],
      "Build the index": [[{ run: LONG }, write("index.txt", "1"), ...done("The index is there.")]],
      "Choose a colour": [[{ run: ASK }, ...done("I have asked.")]],
      "Test the parser": [[write("parser-test.txt", "42 tests"), ...done("All tests pass.")]],
    },
    // After the crash it goes on in its session.
    turns: [[write("index.txt", "1"), ...done("The index is there.")]],
  },
  cleo: {
    tasks: {
      "Mend the parser": [verdict("fail", "the empty line is missing"), verdict("pass", "good")],
      "Add a licence": [verdict("fail", "the year is missing")],
    },
    turns: [verdict("pass", "It does what the task says.")],
  },
};

function makeProject() {
  fs.mkdirSync(project);
  git("init", "-q", "--initial-branch=main");
  git("config", "user.name", "A Person");
  git("config", "user.email", "person@example.invalid");
  fs.writeFileSync(join(project, "greeting.txt"), "Hello\n");
  // Each item is checked in its worktree, and again on the commit that lands.
  fs.writeFileSync(join(project, "check.sh"), "test -s greeting.txt && ! grep -rn '<<<<' *.txt\n");
  git("add", ".");
  git("commit", "-qm", "first");
  fs.writeFileSync(list, `# Tonight\n\n${EVENING.map((item) => `- [ ] ${item}\n`).join("")}`);
}

function writeConfig() {
  const agent = (name, kind, mode, more) => {
    const script = join(root, `${name}.json`);
    fs.writeFileSync(script, JSON.stringify(SCRIPTS[name]));
    const env = { FAKE_AGENT: script, FAKE_AGENT_STATE: join(root, name), HOME: root };
    const program = here(`test/fixtures/programs/fake-${kind}.mjs`);
    return { name, kind, program, account: name, permissions: { mode }, env, ...more };
  };
  // All begin at the same commit, so that two of them are in conflict.
  const work = { worktree: "auto", land: "merge", base: "checkout", verify: ["sh", "check.sh"] };
  const config = {
    workers: 3,
    grace_ms: 1000,
    mail_enabled: true,
    agents: [
      agent("ada", "claude", "edit", { ...work, review_by: "cleo" }),
      // Its sandbox could write to the temporary folder, which holds this state tree.
      agent("bob", "codex", "full", work),
      agent("cleo", "claude", "read", { budget: { day_turns: 4 } }),
    ],
  };
  // JSON is YAML, too.
  fs.writeFileSync(join(state, "config.yaml"), JSON.stringify(config), { mode: 0o600 });
}

/** Tasks by the item of the list, as it was enqueued. */
const ids = new Map();
const itemOf = (id) => [...ids].find(([, one]) => one === id)?.[0];
const idOf = (item) => ids.get(item) ?? "";
const landingOf = (item) => stage.recordOf(`${idOf(item)}.land`);

function enqueue(agent) {
  stage.say(`$ mailchute enqueue --agent ${agent} --file todo.md --cwd .`);
  stage.mailchute("enqueue", "--agent", agent, "--file", list, "--cwd", project);
  const { lists } = JSON.parse(stage.mailchute("list", "ls", list, "--json"));
  for (const { items } of lists) for (const { title, id } of items) if (id) ids.set(title, id);
}

let heard = 0;
const told = new Set();
/** Tasks that wait for the account. */
const held = new Set();
let closedAtMs;
let closedUntilMs;

/** Tells what is new, in words of the list. */
function hear() {
  const all = stage.events();
  for (const event of all.slice(heard)) hearEvent(event);
  heard = all.length;
  const gate = json(join(root, "xdg", "mailchute", "accounts", "ada.json"));
  if (gate?.status === "closed" && closedUntilMs === undefined) {
    closedUntilMs = gate.until_ms;
    closedAtMs = gate.closed_at_ms;
    const seconds = Math.round((closedUntilMs - closedAtMs) / 1000);
    stage.tell("ada", `is at the limit of her account for ${seconds} s: her tasks wait`, 33);
  }
}

function hearEvent({ event, task_id: id, attempt, agent_id: agent }) {
  const [, of = id, kind = ""] = /^(.+)\.(land|fix-\d+|review-[0-9a-f]+)$/.exec(id ?? "") ?? [];
  const item = itemOf(of);
  if (item === undefined) return;
  const record = event === "completed" ? stage.recordOf(id) : undefined;
  if (event === "reclaimed") stage.tell(agent, `"${item}": its worker is dead, taken back`, 33);
  else if (event === "held" && agent === "ada") held.add(id);
  else if (event === "started" && held.delete(id))
    stage.tell(agent, `goes on with "${item}", which cost no attempt`, 36);
  else if (event === "started" && !told.has(`${id} ${attempt}`)) {
    told.add(`${id} ${attempt}`);
    const again = attempt > 1 ? `, run ${attempt} in the same session` : "";
    if (kind === "") stage.tell(agent, `takes "${item}"${again}`, 36);
    else if (kind.startsWith("fix")) stage.tell(agent, `gets "${item}" back, to mend it`, 33);
  } else if (record !== undefined && kind === "land")
    stage.tell(
      "landing",
      record.status === "completed" ? `"${item}" has landed` : `"${item}" waits for a person`,
      record.status === "completed" ? 32 : 31,
    );
  else if (record?.verdict !== undefined && kind.startsWith("review"))
    stage.tell(
      agent,
      `reviews "${item}": ${record.verdict}${record.verdict === "fail" ? `, ${record.verdict_reason}` : ""}`,
      record.verdict === "pass" ? 32 : 33,
    );
}

const until = (what, look) => stage.until(what, look, hear);

/** Open questions: a list of their ids, each with its sentence. */
function openQuestions() {
  const dir = join(state, "questions", "open");
  const names = fs.existsSync(dir) ? fs.readdirSync(dir) : [];
  return names
    .filter((name) => name.endsWith(".md"))
    .map((name) => ({
      id: name.slice(0, -".md".length),
      text: /^# (.*)$/m.exec(read(join(dir, name)))?.[1] ?? "",
    }));
}

function add(items) {
  fs.appendFileSync(list, items.map((item) => `- [ ] ${item}\n`).join(""));
  enqueue("bob");
}

/** Only the long build runs, what bob did before has landed, and what is left of ada's work waits for cleo, whose budget is used up. */
function isCalm() {
  const names = stage.inFlight();
  const isHeld = (name) => name.includes("~hold-");
  const [running, ...more] = names.filter((name) => !isHeld(name));
  const isBuild = running?.startsWith(`${idOf("Build the index")}@`) === true;
  const others = LATER.filter((item) => item !== "Build the index");
  const isAsked = openQuestions().some(({ text }) => text.includes("cleo"));
  return isBuild && more.length === 0 && isAsked && others.every((item) => landingOf(item));
}

/** Reviews that cleo had done when her budget was used up. */
let reviewsBefore;
let answered = 0;
async function answer(what, about, text) {
  const { id, text: question } = await until(what, () =>
    openQuestions().find(({ text: one }) => one.includes(about)),
  );
  stage.tell("question", question, 33);
  stage.say(`$ mailchute answer ${id} ${text}`);
  stage.mailchute("answer", id, text);
  answered++;
}

async function perform() {
  stage.bold("A night with a checklist: ada and bob work, cleo reviews what ada does");
  stage.say(`state tree: ${state}`);
  makeProject();
  writeConfig();
  stage.start();

  stage.bold("1. The evening: four items for ada, whose account is near its limit");
  enqueue("ada");
  await until("the limit", () => closedUntilMs !== undefined);
  await until("the first landing", () => landingOf(EVENING[0]));

  stage.bold("2. Three more for bob; one of them changes the same line as ada's first");
  add(LATER);
  await until("the long build", () => fs.existsSync(join(root, "tool.pid")));
  await until("a moment in which nothing else runs", isCalm);

  stage.bold("3. A crash: all processes are killed in the middle of bob's long build");
  stage.say("$ kill -9 (the supervisor, its workers, their agents)");
  stage.killAll();
  stage.say("$ mailchute run");
  stage.start();

  stage.bold("4. Two questions: bob has one, and cleo has had the turns of her budget");
  add(LAST);
  await answer("the question", "Blue or green?", "blue");
  reviewsBefore = recordsOf(".review-").length;
  await answer("the question about the budget", "cleo", "yes");

  stage.bold("5. Until nothing moves any more");
  await until("the end of all items, and of runs for mail", () => {
    return ALL.every((item) => landingOf(item)) && stage.inFlight().length === 0;
  });
  await stage.stop(hear);
}

function morning() {
  stage.bold("6. The morning: what a person reads");
  stage.say("$ mailchute list sync; cat todo.md");
  stage.mailchute("list", "sync");
  for (const line of read(list).trimEnd().split("\n").slice(2)) stage.say(line);
  stage.say("$ mailchute report --since 10m");
  for (const line of stage.mailchute("report", "--since", "10m").trimEnd().split("\n"))
    console.log(line);
}

/** Session ids that the runs of a task have had. */
function sessionsOf(id) {
  const runs = join(state, "runs");
  const logs = fs
    .readdirSync(runs, { recursive: true })
    .filter((name) => name.includes(`${id}@`) && name.endsWith("events.jsonl"));
  return new Set(
    logs.flatMap((name) =>
      [...read(join(runs, name)).matchAll(/"thread_id":"([^"]+)"/g)].map(([, one]) => one),
    ),
  );
}

/** Records of completed tasks whose ids have this part. */
function recordsOf(part) {
  const outbox = join(stage.mailbox, "outbox");
  const names = fs.readdirSync(outbox).filter((name) => name.includes(part));
  return names.map((name) => json(join(outbox, name)));
}

function counts() {
  const landings = ALL.map((item) => landingOf(item));
  const reviews = recordsOf(".review-");
  const report = JSON.parse(stage.mailchute("report", "--since", "10m", "--json")).counts;
  const events = stage.events();
  const waits = events.filter(
    ({ event, task_id: id }) => event === "held" && id === idOf("Write the manual"),
  );
  // A worker looks at the account after the event `started`: only a run whose program was told its task counts.
  const isWhileClosed = (ms) => ms > closedAtMs && ms < closedUntilMs;
  const told = lines(join(root, "ada", "messages.jsonl")).filter(({ at }) => isWhileClosed(at));
  const early = events.filter(
    ({ event, agent_id: agent, task_id: id, t }) =>
      event === "started" &&
      agent === "ada" &&
      isWhileClosed(t) &&
      told.some(({ at, message }) => at >= t && message.includes(itemOf(id.split(".")[0]))),
  );
  const commits = new Set(reviews.map(({ output }) => output.commit));
  const ticks = read(list).match(/^- \[x\]/gm) ?? [];
  const waiting = stage.recordOf(`${idOf("Add a licence")}.land`);
  const worktrees = git("worktree", "list", "--porcelain").match(/^worktree /gm) ?? [];
  stage.run("git", ["checkout", "-q", "--detach", TARGET], project);
  const isChecked = stage.run("sh", ["check.sh"], project) === "";
  git("checkout", "-q", "main");
  return [
    ["items that have landed", 7, landings.filter(({ status }) => status === "completed").length],
    ["items that wait for a person", 1, landings.filter(({ kind }) => kind === "landing").length],
    ["of these with the reason", 1, Number(waiting.error.includes("the year is missing"))],
    ["boxes that are ticked", 7, ticks.length],
    ["items that waited for the account", 1, Math.min(1, waits.length)],
    ["attempts that the limit used up", 0, stage.recordOf(idOf("Write the manual")).attempts - 1],
    ["runs of ada before her limit was over", 0, early.length],
    ["runs of what the crash killed", 2, stage.recordOf(idOf("Build the index")).attempts],
    ["sessions that they had", 1, sessionsOf(idOf("Build the index")).size],
    ["reviews", 6, reviews.length],
    ["of these before her budget was used up", 4, reviewsBefore],
    ["of these that passed the work", 3, reviews.filter((one) => one.verdict === "pass").length],
    ["commits that were reviewed twice", 0, reviews.length - commits.size],
    ["works that an agent got back", 3, recordsOf(".fix-").length],
    ["conflicts that an agent has mended", 1, Number(file("greeting.txt") === "Guten Tag\nPlease")],
    ["questions that were answered", 2, answered],
    ["questions that are open", 0, openQuestions().length],
    ["answers that the work has", 1, Number(file("colour.txt").includes("blue"))],
    ["check of all that has landed together", 1, Number(isChecked)],
    ["commits on main, where nobody worked", 1, Number(git("rev-list", "--count", "main"))],
    ["worktrees left, beside yours", 1, worktrees.length - 1],
    ["items that have landed, says the report", 7, report.landed],
    ["items that could not, says the report", 1, report.not_landed],
    ["runs that were taken back, says the report", 1, report.reclaimed],
    ["left in inbox/ and processing/", 0, stage.inFlight().length],
    ["processes left", 0, stage.pids().length],
    ["exit code of the supervisor", 0, stage.supervisor.exitCode],
  ];
}

try {
  await perform();
  morning();
  stage.bold("The end: what the files say against what is expected");
  const wrong = stage.check(counts());
  const seconds = ((Date.now() - stage.startedMs) / 1000).toFixed(1);
  if (wrong === 0) stage.bold(`All counts are as expected: 8 items, none lost, ${seconds} s.`);
  if (flags.keep) {
    console.log("Its tree stays; with this path in MAILCHUTE_STATE you go on:");
    console.log(`   state tree: ${state}`);
    console.log("   npx mailchute report                 # the morning");
    console.log("   npx mailchute review ID              # the item that waits for a person");
    console.log("   npx mailchute land ID --no-review    # lands it as it is");
    console.log("   npx mailchute run --drain            # does so");
  }
  process.exitCode = wrong === 0 ? 0 : 1;
} catch (error) {
  console.error(`the demo failed: ${error.message}`);
  process.exitCode = 1;
}
// A supervisor that still runs must not keep this process: what is left is ended on exit.
process.exit();
