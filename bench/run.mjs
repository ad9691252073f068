/**
 * The benchmark: all rows, one after the other, the contestants of a row taking turns. Prints what it does, and writes
 * results.md, results.json and chart.svg.
 *
 *   npm run bench                    everything, about 25 minutes (root, and a machine that has nothing else to do)
 *   npm run bench -- --quick         small numbers and 3 rounds, about 4 minutes
 *     --only drain,exec              these rows         --rounds N
 *     --disk-dir DIR                 where the image of the measured file system lies (default: the temporary directory)
 *     --out DIR                      default: bench/results, or bench/results/quick unless all is run
 *     --beside CHECKOUT              measures a built checkout of another version by turns with this one
 *     --tasks N                      how many tasks the row `long-drain` has, such as 1000000
 *     --check                        exit code 1 when a goal is not met, something could not be measured, or (with --beside) a figure
 *                                    has fallen by more than 3 %
 *     --readme                       puts its tables into README.md and bench/README.md too
 *
 *   node bench/run.mjs --from DIR    measures nothing: writes results.md, chart.svg and the tables of both pages from DIR/results.json
 */
import "../scripts/own-folders.mjs";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { drawChart } from "./chart.mjs";
import { openDisk, openPlainDirectory } from "./disks.mjs";
import { describeMachine, findProgram } from "./machine.mjs";
import { LAUNCHER, Pool } from "./pool.mjs";
import { killDescendants } from "./processes.mjs";
import {
  describeFallen,
  describeFigures,
  describeGoal,
  describePairs,
  isOurs,
  nameBefore,
  renderNoticed,
  renderReport,
  renderSummary,
} from "./report.mjs";
import { row as batch } from "./rows/batch.mjs";
import { row as cliStart } from "./rows/cli-start.mjs";
import { row as commands } from "./rows/commands.mjs";
import { row as drain } from "./rows/drain.mjs";
import { row as drainPower } from "./rows/drain-power.mjs";
import { row as enqueue } from "./rows/enqueue.mjs";
import { row as exec } from "./rows/exec.mjs";
import { row as failover } from "./rows/failover.mjs";
import { row as growth } from "./rows/growth.mjs";
import { row as idle } from "./rows/idle.mjs";
import { row as longDrain } from "./rows/long-drain.mjs";
import { row as million } from "./rows/million.mjs";
import { row as pickUp } from "./rows/pick-up.mjs";
import { row as roadmap } from "./rows/roadmap.mjs";
import { row as streams } from "./rows/streams.mjs";
import { row as trees } from "./rows/trees.mjs";
import { mediansOf } from "./statistics.mjs";

const ROWS = [drain, drainPower, batch, enqueue, pickUp, exec, growth, million, idle].concat([
  longDrain,
  streams,
  trees,
  commands,
  failover,
  roadmap,
  cliStart,
]);
const ROUNDS = { full: 5, quick: 3 };
/** No single run of a contestant takes longer (ms). */
const RUN_MS_MAX = 600_000;

// Node reads these at each start, which can take three times as long as the start itself; nobody here opens a connection
// that needs them.
delete process.env.NODE_EXTRA_CA_CERTS;

const here = fileURLToPath(new URL(".", import.meta.url));
const options = readOptions();
if (options.help) {
  const [comment] = fs.readFileSync(new URL(import.meta.url), "utf8").split("\n */");
  console.log(comment.replace("/**\n", "").replaceAll(/^ \* ?/gm, ""));
  process.exit();
}
if (options.from !== undefined) {
  const report = JSON.parse(fs.readFileSync(join(options.from, "results.json"), "utf8"));
  writeTexts(report, options.from);
  writePages(report, options.from);
  process.exit();
}
const size = options.quick ? "quick" : "full";
const rows = chooseRows();
const besideLauncher = launcherIn(options.beside);
const isWhole = !options.quick && options.only === undefined;
const outDir = options.out ?? join(here, isWhole ? "results" : "results/quick");

function readOptions() {
  const known = {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    rounds: { type: "string" },
    "disk-dir": { type: "string", default: os.tmpdir() },
    beside: { type: "string" },
    tasks: { type: "string" },
    out: { type: "string" },
    check: { type: "boolean", default: false },
    readme: { type: "boolean", default: false },
    from: { type: "string" },
    help: { type: "boolean", default: false },
  };
  try {
    return parseArgs({ options: known }).values;
  } catch (error) {
    console.error(`${error.message}\nsee \`npm run bench -- --help\``);
    process.exit(2);
  }
}

/** @returns the command line of a built checkout */
function launcherIn(checkout) {
  if (checkout === undefined) return undefined;
  const launcher = resolve(checkout, "bin", "mailchute.js");
  if (fs.existsSync(launcher) && fs.existsSync(resolve(checkout, "dist"))) return launcher;
  console.error(`${checkout} is no built checkout: \`npm ci && npm run build\` there makes it one`);
  process.exit(2);
}

function chooseRows() {
  const names = options.only?.split(",");
  const unknown = names?.find((name) => !ROWS.some((row) => row.name === name));
  if (unknown !== undefined) {
    console.error(`no row ${unknown}; there are ${ROWS.map((row) => row.name).join(", ")}`);
    process.exit(2);
  }
  if (names !== undefined) return ROWS.filter((row) => names.includes(row.name));
  return ROWS.filter((row) => !(options.quick && row.isFullOnly === true));
}

function installPeers() {
  if (fs.existsSync(join(here, "node_modules"))) return;
  console.log("installing the peers into bench/node_modules");
  try {
    execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: here, stdio: "inherit" });
  } catch (error) {
    console.log(`SKIPPED: all peers from npm, because \`npm ci\` failed: ${error.message}`);
  }
}

const require = createRequire(import.meta.url);

/** @returns why a contestant cannot run here, or undefined */
function whatIsMissing(needs = []) {
  return needs.map(whyMissing).find((reason) => reason !== undefined);
}

function whyMissing(need) {
  if (["bullmq", "plainjob", "better-sqlite3", "graphile-worker"].includes(need)) {
    try {
      require.resolve(need, { paths: [here] });
      return undefined;
    } catch {
      // A package without an entry for require is there all the same.
      return fs.existsSync(join(here, "node_modules", need)) ? undefined : `no package ${need}`;
    }
  }
  return findProgram(need) === undefined ? `no ${need} on this machine` : undefined;
}

/** What a contestant gets: fresh directories on the disk that is measured, and the numbers of this size of run. */
class Bench {
  /** The command line that is measured. */
  launcher = LAUNCHER;
  constructor(disk) {
    this.disk = disk;
    this.dirs = [];
  }
  pick(numbers) {
    return numbers[size];
  }
  /** The same, unless --tasks says how many. */
  pickLong(numbers) {
    return options.tasks === undefined ? this.pick(numbers) : Number(options.tasks);
  }
  /** @param settings see `Pool` */
  pool(settings = {}, dir = this.dir()) {
    return new Pool(dir, { launcher: this.launcher, ...settings });
  }
  dir() {
    const dir = fs.mkdtempSync(join(this.disk.dir, "run-"));
    fs.chmodSync(dir, 0o755);
    this.dirs.push(dir);
    return dir;
  }
  clear() {
    for (const dir of this.dirs.splice(0)) fs.rmSync(dir, { recursive: true, force: true });
  }
}

function openDiskOf(row, name) {
  const disk = openDisk(name, options["disk-dir"]);
  if (disk.reason === undefined) return disk;
  console.log(`SKIPPED: ${row.name} on ${name}: ${disk.reason}`);
  return name === "ext4" ? openPlainDirectory(options["disk-dir"]) : undefined;
}

/** A quick run keeps to the first file system of each row. */
function disksOf(row) {
  return options.quick ? row.disks.slice(0, 1) : row.disks;
}

/** With --beside each of ours stands there twice. */
function contestantsOf(row) {
  return row.contestants.flatMap((contestant) => {
    const now = { launcher: LAUNCHER, ...contestant };
    if (besideLauncher === undefined || row.isPaired === false || !isOurs(now)) return [now];
    return [now, { ...now, name: nameBefore(now.name), launcher: besideLauncher }];
  });
}

/** @returns what every contestant of a row came to on one disk */
async function runRow(row, disk) {
  const rounds = Number(options.rounds ?? row.rounds ?? ROUNDS[size]);
  const results = contestantsOf(row).map(({ launcher, name, ...contestant }) => ({
    contestant,
    launcher,
    name,
    runs: [],
    skipped: whatIsMissing(contestant.needs),
  }));
  for (const { name, skipped } of results)
    if (skipped !== undefined) console.log(`  SKIPPED: ${name}: ${skipped}`);
  const bench = new Bench(disk);
  for (let round = 0; round < rounds; round++) {
    // What ran before leaves its traces on the disk and in the caches: no contestant always follows the same one.
    for (const result of round % 2 === 0 ? results : results.toReversed()) {
      if (result.skipped !== undefined) continue;
      bench.launcher = result.launcher;
      try {
        result.runs.push(await inTime(result.contestant.run(bench), RUN_MS_MAX));
      } catch (error) {
        result.skipped = `failed: ${error.message}`;
        console.log(`  FAILED: ${result.name}: ${error.stack}`);
      }
      if (row.keepsDirectories !== true) bench.clear();
    }
  }
  return results.map(({ name, runs, skipped }) => ({
    name,
    runs,
    figures: mediansOf(runs),
    ...(skipped === undefined ? {} : { skipped }),
  }));
}

function inTime(promise, limitMs) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${limitMs} ms`)), limitMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A figure of this run, or NaN. */
function lookUp(measured, rowName, diskName, contestant, key = "rate") {
  const of = measured.find((one) => one.row === rowName && one.disk === diskName);
  return of?.contestants.find((one) => one.name === contestant)?.figures[key] ?? Number.NaN;
}

function judge(row, diskName, measured) {
  const m = (contestant, key) => lookUp(measured, row.name, diskName, contestant, key);
  const other = (rowName, contestant) => lookUp(measured, rowName, diskName, contestant);
  return row.goals.map(({ text, of, atLeast, atMost, unit = "" }) => {
    const value = of(m, other);
    const isMet = Number.isFinite(value)
      ? value >= (atLeast ?? Number.NEGATIVE_INFINITY) &&
        value <= (atMost ?? Number.POSITIVE_INFINITY)
      : undefined;
    return { text, value: Number.isFinite(value) ? value : null, unit, isMet: isMet ?? null };
  });
}

/** Whatever ends this program, nothing that it started stays, and nothing stays mounted. */
let openedDisk;
process.once("exit", () => {
  if (openedDisk === undefined) return;
  killDescendants();
  openedDisk.close();
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));

installPeers();
const machine = describeMachine();
const measured = [];
const fromMs = performance.now();
for (const row of rows) {
  for (const diskName of disksOf(row)) {
    const disk = openDiskOf(row, diskName);
    openedDisk = disk;
    if (disk === undefined) {
      measured.push({
        row: row.name,
        title: row.title,
        disk: diskName,
        contestants: [],
        goals: [],
      });
      continue;
    }
    console.log(`${row.title} (${disk.title})`);
    const rowFromMs = performance.now();
    let contestants;
    try {
      contestants = await runRow(row, disk);
    } finally {
      openedDisk = undefined;
      disk.close();
    }
    const one = {
      row: row.name,
      title: row.title,
      disk: diskName,
      fileSystem: disk.title,
      chart: row.chart,
      seconds: Math.round((performance.now() - rowFromMs) / 1000),
      contestants,
    };
    measured.push(one);
    one.goals = judge(row, diskName, measured);
    for (const contestant of contestants) console.log(`  ${describeFigures(contestant)}`);
    for (const pair of describePairs(one)) console.log(`  ${pair}`);
    for (const goal of one.goals) console.log(`  ${describeGoal(goal)}`);
  }
}

const report = {
  machine,
  command: ["npm run bench", ...process.argv.slice(2).map(nameOfArg)]
    .join(" ")
    .replace(" --", " -- --"),
  rounds: Number(options.rounds ?? ROUNDS[size]),
  size,
  minutes: Math.round((performance.now() - fromMs) / 6000) / 10,
  image_on: options["disk-dir"],
  beside: besideLauncher && commitOf(options.beside),
  rows: measured,
};
fs.mkdirSync(outDir, { recursive: true });
fs.writeFileSync(join(outDir, "results.json"), `${JSON.stringify(report, null, 1)}\n`);
writeTexts(report, outDir);
if (options.readme || (isWhole && options.out === undefined)) writePages(report, outDir);
const goals = measured.flatMap((one) => one.goals);
const unmet = goals.filter((goal) => goal.isMet !== true);
console.log(`${goals.length - unmet.length} of ${goals.length} goals met; written to ${outDir}`);
const fallen = describeFallen(report);
for (const line of fallen) console.log(`FALLEN: ${line}`);
if (options.check && unmet.length + fallen.length > 0) process.exitCode = 1;

/** Where the other checkout lies says nothing to those who read it; the table beside names its commit. */
function nameOfArg(arg) {
  return arg === options.beside ? "CHECKOUT" : arg;
}

function commitOf(checkout) {
  return execFileSync("git", ["-C", checkout, "rev-parse", "--short", "HEAD"], {
    encoding: "utf8",
  }).trim();
}

function writeTexts(report, dir) {
  fs.writeFileSync(join(dir, "results.md"), renderReport(report));
  fs.writeFileSync(join(dir, "chart.svg"), drawChart(report));
}

/** Each table between the two marks of its page. */
function writePages(report, dir) {
  for (const [page, render] of [
    ["../README.md", renderNoticed],
    ["README.md", renderSummary],
  ]) {
    const path = join(here, page);
    const text = fs.readFileSync(path, "utf8");
    const [begin, end] = ["<!-- bench:begin -->", "<!-- bench:end -->"];
    if (!text.includes(begin) || !text.includes(end))
      throw new Error(`${path} has no ${begin} … ${end} to put the table in`);
    const before = text.slice(0, text.indexOf(begin) + begin.length);
    const after = text.slice(text.indexOf(end));
    fs.writeFileSync(path, `${before}\n${render(report, relative(dirname(path), dir))}${after}`);
  }
}
