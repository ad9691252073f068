/**
 * Cuts the power at every step of every operation, with durability `power`, and says what was lost that had been
 * acknowledged. `npm run test:power`; see power-disk.ts for what a cut is.
 *
 *   --fs ext4,xfs   --sample N   that many cases for each file system, chosen by seed     --seed S
 *   --only cut,compound,controls   OPERATION…   these operations only   --seconds N   no new case after that time
 */
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { EXIT_SKIPPED } from "../../support/debian-package.ts";
import { type SeededRandom, seededRandom } from "../../support/seeded-random.ts";
import { checkInstant } from "./check-tree.ts";
import { OPERATIONS, type Operation } from "./operations.ts";
import { type Book, type Place, placeAt } from "./place.ts";
import { PLANNING } from "./planning.ts";
import { POWER_CONTROLS } from "./power-controls.ts";
import { explainNoPowerCuts, type FileSystem, PowerDisk } from "./power-disk.ts";
import { POWER_OPERATIONS } from "./power-operations.ts";
import {
  type CaseOptions,
  countCalls,
  finish,
  observe,
  removePlace,
  startVictim,
  stopped,
} from "./run-case.ts";
import { STEERING } from "./steering.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    fs: { type: "string" },
    sample: { type: "string" },
    seed: { type: "string" },
    only: { type: "string" },
    seconds: { type: "string" },
  },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const sampleMax = values.sample === undefined ? Number.POSITIVE_INFINITY : Number(values.sample);
const kinds = (values.only ?? "cut,compound,controls").split(",");
const fileSystems = (values.fs ?? "ext4,xfs").split(",") as FileSystem[];
/** Begins when all calls are counted. */
let deadlineMs = Number.POSITIVE_INFINITY;
/** Cuts of the recovery from a cut, for each file system. */
const COMPOUND_MAX = 150;
const PROGRESS_MS = 60_000;
/** The file system's own checker is asked after so many cases. */
const CASES_PER_CHECK = 20;

/** Cuts the power before the `at`-th call of the victim; `at` beyond its last: when it has ended. */
interface Cut {
  operation: Operation;
  at: number;
  options: CaseOptions;
  /** The power goes once more, before this call of the recovery. */
  recoveryAt?: number;
}

interface Ending {
  faults: string[];
  struck: string;
  isReached: boolean;
}

let cases = 0;

/** Lets a victim work until the power goes. False: it had ended before. */
async function cutWhile(
  disk: PowerDisk,
  place: Place,
  name: string,
  { at, window }: { at: number; window?: Operation["window"] },
  options: CaseOptions,
): Promise<{ isReached: boolean; struck: string; faults: string[] }> {
  const victim = startVictim(name, place, { at, act: "stop", when: "before", ...window }, options);
  const isReached = await Promise.race([
    victim.ended.then(() => false),
    stopped(victim.child.pid ?? 0),
  ]);
  await disk.cut();
  victim.child.kill("SIGKILL");
  const { exitCode, signal, stderr } = await victim.ended;
  const struck = victim.reports().find((r) => r.fault !== undefined)?.what ?? "at its end";
  await disk.restore();
  // What was promised is promised, whether its process ended well or badly.
  // One that was still at work after its time was cut by time.
  const isWell = isReached || exitCode === 0 || signal === "SIGKILL";
  const faults = isWell ? [] : [`exit code ${exitCode} ${signal}: ${stderr}`];
  return { isReached, struck, faults };
}

/** Nobody was promised that these last. Who runs and what was counted is written anew by the next supervisor. */
const UNPROMISED_THEN = /(?:supervisor|metrics)\.json: half a document$/;
/** Journals are not synced, nor is the history of kv, which is one. */
const UNPROMISED = /^the history has /;

function checkAfterCut(operation: Operation, place: Place, book: Book): string[] {
  const faults = [...checkInstant(place, book), ...(operation.checkInstant?.(place) ?? [])];
  return faults.filter((fault) => !UNPROMISED_THEN.test(fault));
}

async function runCut(disk: PowerDisk, cut: Cut): Promise<Ending> {
  const { operation, at, options, recoveryAt } = cut;
  const home = fs.mkdtempSync(join(fs.realpathSync(os.tmpdir()), "mailchute-power-"));
  cases += 1;
  const place = placeAt(home, join(disk.dir, `case-${cases}`));
  try {
    const book = operation.prepare(place);
    await disk.sync();
    const { window } = operation;
    const first = await cutWhile(
      disk,
      place,
      operation.name,
      { at, ...(window === undefined ? {} : { window }) },
      options,
    );
    const { faults, struck } = first;
    let { isReached } = first;
    faults.push(...checkAfterCut(operation, place, book));
    if (recoveryAt !== undefined) {
      fs.rmSync(`${place.runs}.wait`, { force: true });
      const second = await cutWhile(
        disk,
        place,
        "recovery",
        { at: recoveryAt },
        { durability: "power" },
      );
      isReached &&= second.isReached;
      faults.push(...second.faults);
      faults.push(...checkAfterCut(operation, place, book));
    }
    faults.push(...(await observe(place, operation, "lossy")));
    faults.push(...(await finish(place, book, 2, { journals: "lossy" })));
    faults.push(...(operation.checkEnd?.(place, "lossy") ?? []));
    return { faults: faults.filter((fault) => !UNPROMISED.test(fault)), struck, isReached };
  } finally {
    fs.rmSync(place.state, { recursive: true, force: true });
    removePlace(place);
  }
}

const totals = { passed: 0, failed: 0, missed: 0 };

async function walk(disk: PowerDisk, kind: string, cuts: readonly Cut[]): Promise<void> {
  const startedMs = performance.now();
  const counts = { passed: 0, failed: 0, missed: 0, damaged: 0, checked: 0 };
  const check = async (): Promise<void> => {
    const damage = await disk.findDamage();
    counts.checked += 1;
    if (damage === undefined) return;
    counts.damaged += 1;
    process.stdout.write(`FAILED ${kind} on ${disk.kind}: the file system: ${damage}\n`);
  };
  let toldMs = startedMs;
  for (const [index, cut] of cuts.entries()) {
    if (performance.now() > deadlineMs) break;
    if (performance.now() - toldMs > PROGRESS_MS) {
      toldMs = performance.now();
      process.stderr.write(
        `${kind} on ${disk.kind}: ${index} of ${cuts.length}, ${counts.failed} failed\n`,
      );
    }
    const { faults, struck, isReached } = await runCut(disk, cut);
    if (faults.length > 0) {
      counts.failed += 1;
      const { operation, at, recoveryAt } = cut;
      const where = JSON.stringify({ at, recoveryAt });
      process.stdout.write(
        `FAILED ${kind} ${disk.kind} ${operation.name} ${where} ${struck}\n    ${faults.join("\n    ")}\n`,
      );
    } else if (isReached || cut.at === Number.MAX_SAFE_INTEGER) counts.passed += 1;
    else counts.missed += 1;
    if (index % CASES_PER_CHECK === CASES_PER_CHECK - 1) await check();
  }
  await check();
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  process.stdout.write(
    `${kind} on ${disk.kind}: ${counts.passed} passed, ${counts.failed} failed, ${counts.missed} not reached of ${cuts.length}; ` +
      `file system checked ${counts.checked} times, ${counts.damaged} damaged; ${seconds} s\n`,
  );
  totals.passed += counts.passed;
  totals.failed += counts.failed + counts.damaged;
  totals.missed += counts.missed;
}

/** Each control is walked until it is caught. */
async function walkControls(disk: PowerDisk, random: SeededRandom): Promise<void> {
  let caught = 0;
  for (const control of choose(random, POWER_CONTROLS, sampleMax)) {
    const operation = ALL.find((o) => o.name === control.operation);
    if (operation === undefined) throw new Error(`no operation ${control.operation}`);
    const options = { broken: control.name, durability: control.durability ?? "power" } as const;
    const { calls } = await countCalls(operation, options);
    let words: readonly string[] = [];
    // What was acknowledged and is not there shows at the end; what is visible too early, before it.
    for (const cut of cutsOf(operation, calls, options).reverse()) {
      words = (await runCut(disk, cut)).faults;
      if (words.length > 0) break;
    }
    if (words.length > 0) {
      caught += 1;
      totals.passed += 1;
      process.stdout.write(
        `caught on ${disk.kind}: ${control.name}: ${words[0]?.split("\n")[0]}\n`,
      );
    } else {
      totals.failed += 1;
      process.stdout.write(`FAILED not caught on ${disk.kind}: ${control.name}\n`);
    }
  }
  process.stdout.write(`controls on ${disk.kind}: ${caught} caught\n`);
}

/** In an order by chance, so that a run cut short is a sample. */
function choose<T>(random: SeededRandom, from: readonly T[], max: number): T[] {
  const left = [...from];
  const chosen: T[] = [];
  while (chosen.length < max && left.length > 0)
    chosen.push(...left.splice(random.below(left.length), 1));
  return chosen;
}

function cutsOf(operation: Operation, calls: readonly string[], options: CaseOptions): Cut[] {
  // What begins with the claim of a command has nothing to show before it.
  const first = operation.window === undefined ? 1 : 2;
  const noted =
    operation.isNoted === true ? calls.findIndex((call) => /^f?sync$/.test(call)) + 2 : 1;
  const at = calls.map((_call, index) => index + 1).filter((n) => n >= Math.max(first, noted));
  at.push(Number.MAX_SAFE_INTEGER);
  return at.map((n) => ({ operation, at: n, options }));
}

const EVERY = [...OPERATIONS, ...STEERING, ...PLANNING, ...POWER_OPERATIONS];
/** All run with `power` here. */
const ALL = EVERY.filter(
  ({ name }) => !EVERY.some((o) => o.name !== name && `${o.name}-power` === name),
);

async function main(): Promise<void> {
  const reason = explainNoPowerCuts(fileSystems);
  if (reason !== undefined) {
    process.stdout.write(`SKIPPED: the power was not cut once: ${reason}\n`);
    process.exitCode = EXIT_SKIPPED;
    return;
  }
  if (fileSystems.length > 1)
    process.stdout.write(`seed ${seed}, Linux ${os.release()}, Node ${process.version}\n`);
  const [kind = "ext4", ...more] = fileSystems;
  if (more.length > 0) await runEach();
  else await runOn(kind);
  process.stdout.write(
    `${totals.passed} passed, ${totals.failed} failed, ${totals.missed} not reached\n`,
  );
  // A run that cut nothing has shown nothing.
  process.exitCode = totals.failed > 0 || totals.passed === 0 ? 1 : 0;
}

async function runOn(kind: FileSystem): Promise<void> {
  // What was tried counts, also when somebody has seen enough of it. Leaving the second way unmounts, too.
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      deadlineMs = 0;
      process.once(signal, () => process.exit(130));
    });
  const wanted = ALL.filter(
    ({ name }) =>
      positionals.length === 0 || positionals.some((p) => name === p || name.startsWith(`${p}-`)),
  );
  // A small sample does not count the calls of what it will not try.
  const chosen = choose(seededRandom(seed), wanted, 2 * sampleMax);
  const cuts: Cut[] = [];
  if (kinds.includes("cut") || kinds.includes("compound"))
    for (const operation of chosen) {
      const { calls, faults } = await countCalls(operation, { durability: "power" });
      if (faults.length > 0) {
        totals.failed += 1;
        process.stdout.write(
          `FAILED undisturbed ${operation.name}\n    ${faults.join("\n    ")}\n`,
        );
        continue;
      }
      cuts.push(...cutsOf(operation, calls, { durability: "power" }));
    }
  if (deadlineMs > 0) deadlineMs = performance.now() + Number(values.seconds ?? 1e6) * 1000;
  const random = seededRandom(seed);
  const disk = await PowerDisk.make(kind);
  try {
    if (kinds.includes("controls")) await walkControls(disk, random);
    if (kinds.includes("compound")) {
      const compound = choose(random, cuts, Math.min(sampleMax, COMPOUND_MAX)).map((cut) => ({
        ...cut,
        recoveryAt: 1 + random.below(70),
      }));
      await walk(disk, "compound", compound);
    }
    if (kinds.includes("cut")) await walk(disk, "cut", choose(random, cuts, sampleMax));
  } finally {
    await disk.close();
  }
}

/** A process for each file system: recovery takes turns with nobody. */
async function runEach(): Promise<void> {
  const args = process.argv.slice(2);
  const script = process.argv[1] ?? "";
  const runs = fileSystems.map(async (kind) => {
    const child = spawn(process.execPath, [script, ...args, "--seed", String(seed), "--fs", kind], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.on(signal, () => child.kill(signal));
    let last = "";
    for await (const line of createInterface({ input: child.stdout })) {
      process.stdout.write(`${line}\n`);
      last = line;
    }
    const [, passed, failed, missed] =
      /^(\d+) passed, (\d+) failed, (\d+) not reached$/.exec(last) ?? [];
    totals.passed += Number(passed ?? 0);
    totals.failed += Number(failed ?? 1);
    totals.missed += Number(missed ?? 0);
  });
  await Promise.all(runs);
}

await main();
