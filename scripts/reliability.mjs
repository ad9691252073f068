#!/usr/bin/env node
/**
 * Runs every long search for faults, one after another, and prints one table of what each tried and found.
 *
 *   npm run test:reliability                       about an hour; each search by itself goes on for longer when asked
 *   npm run test:reliability -- --short            a short form of each: some minutes
 *   npm run test:reliability -- --only crash,soak  these searches only
 *   npm run test:reliability -- --write            also puts the table into docs/reliability.md
 *   npm run test:reliability -- --list             prints the commands and runs nothing
 *
 * The last line is "N passed, N failed, N skipped". A search is skipped when this machine lacks what it needs (exit code 77).
 */
import "./own-folders.mjs";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { readFlags } from "./flags.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const PAGE = join(root, "docs", "reliability.md");
/** What test harnesses take for "skipped". */
const EXIT_SKIPPED = 77;
const TAIL_LINES = 60;

/**
 * `figures` matches the lines that say what was tried and found; `long` and `short` are shell commands.
 * @type {{ name: string, what: string, long: string, short: string, figures: RegExp }[]}
 */
const SEARCHES = [
  {
    name: "simulation",
    what: "every order of storage calls, deaths and power cuts, in memory",
    long: "MAILCHUTE_SIM_LONG=1000000 npx vitest run test/simulation/simulation.test.ts test/simulation/controls.test.ts",
    short: "MAILCHUTE_SIM_LONG=60000 npx vitest run test/simulation/simulation.test.ts",
    figures: /^simulation: (.+)$/gm,
  },
  {
    name: "crash",
    what: "kill, stop, error and second kill at each file-system call of each operation",
    long: "npm run test:crash -- --sample 150",
    short: "npm run test:crash -- --sample 12 --seconds 60",
    figures: /^((?:kill|zombie|error|compound|worker): .* passed, .+|controls: .+)$/gm,
  },
  {
    name: "syscalls",
    what: "kill at the N-th system call of any process of a pool",
    long: "npm run test:syscalls -- --runs 100 --seconds 600",
    short: "npm run test:syscalls -- --runs 4 --seconds 60",
    figures: /^(\d+ runs, .+)$/gm,
  },
  {
    name: "power",
    what: "power cut before each call of each operation, on ext4 and XFS",
    long: "npm run test:power -- --sample 60",
    short: "npm run test:power -- --sample 4 --seconds 60",
    figures: /^((?:\w+ )?(?:cut|compound|controls)\b.* (?:passed|caught).*)$/gm,
  },
  {
    name: "resources",
    what: "a machine short of processes, threads, memory, open files, file events, disk or inodes, at the start and under load; a disk that fails",
    long: "npm run test:resources",
    short: "npx vitest run test/resources",
    figures: /^resources: (.+)$/gm,
  },
  {
    name: "fuzz",
    what: "mutations of tasks, commands, batches, settings, plans, streams and journals",
    long: "npm run test:fuzz",
    short: "MAILCHUTE_FUZZ_RUNS=1000 npx vitest run test/inputs/mutations.test.ts",
    figures: /^mutations: (.+)$/gm,
  },
  {
    name: "storm",
    what: "a plan of 1,000 nodes under kills and edits",
    long: "npm run test:storm",
    short: "MAILCHUTE_STORM_NODES=60 npx vitest run test/parts/plan/storm.test.ts",
    figures: /^(\d+ nodes: .+)$/gm,
  },
  {
    name: "chaos",
    what: "two supervisors, four workers, kills, stops, robbed locks, shifted clocks",
    long: "npm run test:chaos -- --tasks 4000 --faults 500 && npm run test:chaos -- --controls --tasks 800 --faults 120 --seconds 90",
    short: "npm run test:chaos -- --tasks 400 --faults 40",
    figures: /^(\d+ runs for .+|\d+ tasks, .+|\d+ broken variants, .+)$/gm,
  },
  {
    name: "landing",
    what: "agents, a person and kills on one repository; an independent reader asks git whether anything is lost, unchecked or there twice",
    long: "npm run test:landing -- --runs 1000 && npm run test:landing -- --controls",
    short: "npm run test:landing -- --runs 12 --seconds 60",
    figures: /^(\d+ histories, .+|controls: .+)$/gm,
  },
  {
    name: "mail",
    what: "every order of what people, a supervisor and the runs of an agent do with mail, in memory, with deaths at each call",
    long: "MAILCHUTE_SIM_LONG=4000 npx vitest run test/simulation/mail.test.ts",
    short: "npx vitest run test/simulation/mail.test.ts",
    figures: /^simulation of mail: (.+)$/gm,
  },
  {
    name: "mail-kills",
    what: "kill of a supervisor, and of a worker, before and after each of its calls for mail",
    long: "npm run test:mail-kills",
    short:
      "npx vitest run --project searches test/parts/mail/killed-delivery.test.ts test/parts/mail/killed-worker.test.ts",
    figures: /^mail: (\d+ kills.+|caught: .+)$/gm,
  },
  {
    name: "mail-agents",
    what: "three agents at work that write to each other; one is killed, and the supervisor at a random moment",
    long: "npm run test:mail",
    short: "npx vitest run --project searches test/parts/mail/three-agents.test.ts",
    figures: /^mail: (\d+ supervisors killed.+)$/gm,
  },
  {
    name: "soak",
    what: "steady load, watched for descriptors, memory and files that grow",
    long: "npm run test:soak -- --minutes 10 && npm run test:soak -- --controls --seconds 60",
    short: "npm run test:soak -- --seconds 45",
    figures: /^(\d+ s, seed .+|\d+ figures, .+|\d+ faults on purpose, .+)$/gm,
  },
];

const { values } = readFlags(import.meta.url, {
  options: {
    short: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    only: { type: "string" },
  },
});

function chooseSearches() {
  const names = values.only?.split(",") ?? SEARCHES.map(({ name }) => name);
  const unknown = names.filter((name) => !SEARCHES.some((search) => search.name === name));
  if (unknown.length > 0) {
    console.error(
      `no search ${unknown.join(", ")}: ${SEARCHES.map(({ name }) => name).join(", ")}`,
    );
    process.exit(2);
  }
  return SEARCHES.filter(({ name }) => names.includes(name));
}

const git = (...args) =>
  spawnSync("git", args, { cwd: root, encoding: "utf8" }).stdout?.trim() ?? "";

/** Runs a shell command in a process group of its own; resolves to its exit code, output and duration. */
function runSearch(command, logPath) {
  return new Promise((resolve) => {
    const startedMs = performance.now();
    const log = fs.openSync(logPath, "w");
    const child = spawn("sh", ["-c", command], {
      cwd: root,
      stdio: ["ignore", log, log],
      env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" },
    });
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => child.kill(signal));
    child.once("close", (code) => {
      fs.closeSync(log);
      const output = fs.readFileSync(logPath, "utf8");
      resolve({ code, output, seconds: (performance.now() - startedMs) / 1000 });
    });
  });
}

const inMinutes = (seconds) =>
  seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;

/** One row of the table. */
function rowOf(search, command, { code, output, seconds }) {
  const figures = [...output.matchAll(search.figures)].map(([, text]) => text.trim());
  const seed = /\bseed (\d+)/i.exec(output)?.[1];
  // A search that says nothing of what it tried has shown nothing.
  const verdict =
    code === EXIT_SKIPPED ? "skipped" : code === 0 && figures.length > 0 ? "passed" : "failed";
  const seen = figures.join("; ") || "no figures";
  return {
    name: search.name,
    verdict,
    text: `| ${search.what} | \`${command}\` | ${seen}${seed && !seen.includes("seed") ? ` (seed ${seed})` : ""} | ${verdict} | ${inMinutes(seconds)} |`,
  };
}

function describeMachine() {
  const commit = git("rev-parse", "--short", "HEAD");
  const command = `npm run test:reliability -- ${process.argv.slice(2).join(" ")}`;
  return `\`${command.trim()}\`: commit ${commit}, Node ${process.version}, Linux ${os.release()}, ${os.cpus().length} cores, ${new Date().toISOString().slice(0, 10)}.`;
}

function tableOf(rows) {
  return [
    "| what is tried | command | tried and found | | time |",
    "|---|---|---|---|---|",
    ...rows.map(({ text }) => text),
  ].join("\n");
}

/** Replaces the figures between the two marks of docs/reliability.md. */
function writePage(rows) {
  const page = fs.readFileSync(PAGE, "utf8");
  const marks = /(<!-- figures: begin -->\n)[\s\S]*?(\n<!-- figures: end -->)/;
  if (!marks.test(page)) throw new Error(`${PAGE} has no marks for the figures`);
  const text = `${describeMachine()}\n\n${tableOf(rows)}`;
  fs.writeFileSync(
    PAGE,
    page.replace(marks, (_all, begin, end) => `${begin}\n${text}\n${end}`),
  );
}

const searches = chooseSearches();
const commandOf = (search) => (values.short ? search.short : search.long);
if (values.list) {
  for (const search of searches) console.log(`${search.name.padEnd(12)} ${commandOf(search)}`);
  process.exit(0);
}
if (values.write && git("status", "--porcelain") !== "") {
  console.error("--write names the commit that was tried: commit your changes first");
  process.exit(2);
}
const logs = fs.mkdtempSync(join(os.tmpdir(), "mailchute-reliability-"));
const rows = [];
for (const search of searches) {
  const command = commandOf(search);
  console.log(`${search.name}: ${command}`);
  const logPath = join(logs, `${search.name}.log`);
  const result = await runSearch(command, logPath);
  const row = rowOf(search, command, result);
  rows.push(row);
  if (row.verdict === "failed") {
    console.log(result.output.split("\n").slice(-TAIL_LINES).join("\n"));
    console.log(
      `${search.name} FAILED with exit code ${result.code}; all of its output: ${logPath}`,
    );
  } else console.log(`${search.name}: ${row.verdict}, ${inMinutes(result.seconds)}`);
}
console.log(`\n${describeMachine()}\n\n${tableOf(rows)}\n`);
if (values.write) writePage(rows);
const count = (verdict) => rows.filter((row) => row.verdict === verdict).length;
if (count("failed") === 0) fs.rmSync(logs, { recursive: true });
console.log(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
process.exitCode = count("failed") > 0 ? 1 : 0;
