/**
 * Walks faults over all operations and says what came of it. `npm run test:crash` walks all of them; `npm test` a sample.
 *
 *   --sample N   that many cases of each kind, chosen by seed     --seed S    --only kill,zombie,error,compound,worker,controls
 *   OPERATION…   these operations only                            --seconds N   no new case after that time
 *   --few        two kills of each command only: before its effect, and after it, in the middle of its acknowledgement;
 *                and of three of them one that tears the last write
 */
import { parseArgs } from "node:util";
import { CONTROLS } from "./controls.ts";
import { OPERATIONS, type Operation, WORKER_OPERATION } from "./operations.ts";
import { PLANNING } from "./planning.ts";
import { type CaseOptions, countCalls, type Fault, runCase } from "./run-case.ts";
import { STEERING } from "./steering.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: "string" },
    seed: { type: "string" },
    only: { type: "string" },
    seconds: { type: "string" },
    few: { type: "boolean" },
  },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const sampleMax = values.sample === undefined ? Number.POSITIVE_INFINITY : Number(values.sample);
const kinds = (values.only ?? "kill,zombie,error,compound,worker,controls").split(",");
let deadlineMs = performance.now() + Number(values.seconds ?? 1e6) * 1000;
const LANES = 3;
const PROGRESS_MS = 60_000;
const triesMax = values.few === true ? 4 : 1;
/** Whole runs of test:crash. */
const ERRORS_MAX = 1300;
const COMPOUND_MAX = 1200;
const ZOMBIES_MAX = 400;

let state = seed >>> 0;
/** mulberry32, so that a seed repeats a run. */
function random(): number {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

function choose<T>(from: readonly T[], max: number): T[] {
  const left = [...from];
  const chosen: T[] = [];
  while (chosen.length < max && left.length > 0)
    chosen.push(...left.splice(Math.floor(random() * left.length), 1));
  return chosen;
}

interface Case {
  operation: Operation;
  fault: Fault;
  options: CaseOptions;
}

const totals = { passed: 0, failed: 0, missed: 0 };

async function inLanes<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const lane = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      if (performance.now() > deadlineMs) return;
      await run(item);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

async function runAll(kind: string, cases: readonly Case[]): Promise<void> {
  const startedMs = performance.now();
  const counts = { passed: 0, failed: 0, missed: 0 };
  const progress = setInterval(() => {
    const done = counts.passed + counts.failed + counts.missed;
    process.stderr.write(`${kind}: ${done} of ${cases.length}, ${counts.failed} failed\n`);
  }, PROGRESS_MS);
  await inLanes(cases, async ({ operation, fault, options }) => {
    let result = await runCase(operation, fault, options);
    // A whole supervisor does not make the same calls each time. Of few cases none may go by untried for that.
    for (
      let tries = 1;
      tries < triesMax && !result.isReached && result.faults.length === 0;
      tries++
    )
      result = await runCase(operation, fault, options);
    if (result.faults.length > 0) {
      counts.failed += 1;
      process.stdout.write(
        `FAILED ${kind} ${operation.name} ${JSON.stringify(fault)} ${JSON.stringify(options)} ${result.struck}\n    ${result.faults.join("\n    ")}\n`,
      );
    } else if (result.isReached) counts.passed += 1;
    else counts.missed += 1;
  });
  clearInterval(progress);
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  process.stdout.write(
    `${kind}: ${counts.passed} passed, ${counts.failed} failed, ${counts.missed} not reached of ${cases.length}, ${seconds} s\n`,
  );
  totals.passed += counts.passed;
  totals.failed += counts.failed;
  totals.missed += counts.missed;
}

function killsOf(operation: Operation, calls: readonly string[]): Case[] {
  return calls.flatMap((call, index) => {
    const at = index + 1;
    const { window } = operation;
    const faults: Fault[] = [
      { at, act: "kill", when: "before", ...window },
      { at, act: "kill", when: "after", ...window },
    ];
    if (call === "write") faults.push({ at, act: "torn", ...window });
    // What begins with the claim of a command has nothing to show before it.
    if (window !== undefined && at === 1) faults.shift();
    const isOneOfFew = (fault: Fault): boolean =>
      fault.act === "torn"
        ? index === calls.lastIndexOf("write") && tornOfFew.has(operation)
        : (at === 1 && fault.when === "after") ||
          (index === calls.lastIndexOf("link") && fault.when === "before");
    return faults
      .filter((fault) => values.few !== true || isOneOfFew(fault))
      .map((fault) => ({ operation, fault, options: {} }));
  });
}

function zombiesOf(operation: Operation, calls: readonly string[]): Case[] {
  return calls.flatMap((_call, index) =>
    (["before", "after"] as const).map((when) => ({
      operation,
      fault: { at: index + 1, act: "stop", when } as const,
      options: {},
    })),
  );
}

/** What the system may say to each call. */
const CODES: Record<string, readonly string[]> = {
  open: ["EIO", "ENOSPC", "EMFILE", "EACCES", "EROFS", "EINTR"],
  write: ["EIO", "ENOSPC", "EINTR"],
  sync: ["EIO", "ENOSPC"],
  opendir: ["EIO", "EMFILE", "EACCES"],
  readdir: ["EIO", "EMFILE", "EACCES"],
  read: ["EIO", "EINTR"],
  readFile: ["EIO", "EMFILE"],
};
const OTHER_CODES = ["EIO", "ENOSPC", "EACCES", "EROFS"];

function errorsOf(operation: Operation, calls: readonly string[]): Case[] {
  return calls.flatMap((call, index) => {
    const at = index + 1;
    const faults: Fault[] = [];
    for (const code of CODES[call] ?? OTHER_CODES) {
      faults.push({ at, act: "error", code, hasReads: true });
      if (code !== "EINTR")
        faults.push({
          at,
          act: "error",
          code,
          hasReads: true,
          lastsMs: operation.isWhole === true ? 300 : 60,
        });
    }
    if (call === "write") {
      faults.push({ at, act: "short", hasReads: true });
      faults.push({ at, act: "short", hasReads: true, lastsMs: 60 });
    }
    const { window } = operation;
    return faults.map((fault) => ({ operation, fault: { ...fault, ...window }, options: {} }));
  });
}

/** Each control is walked until it is caught. */
async function runControls(): Promise<void> {
  const startedMs = performance.now();
  let caught = 0;
  await inLanes(choose(CONTROLS, sampleMax), async (control) => {
    const operation = OPERATIONS.find((o) => o.name === control.operation);
    if (operation === undefined) throw new Error(`no operation ${control.operation}`);
    const options: CaseOptions =
      control.isRecovery === true ? { brokenRecovery: control.name } : { broken: control.name };
    const { calls, faults } = await countCalls(operation, options);
    let words = control.by === "nothing" ? faults : [];
    if (control.by !== "nothing") {
      const walk = control.by === "kill" ? killsOf(operation, calls) : zombiesOf(operation, calls);
      for (const { fault } of walk) {
        words = (await runCase(operation, fault, options)).faults;
        if (words.length > 0) break;
      }
    }
    if (words.length > 0) {
      caught += 1;
      totals.passed += 1;
      process.stdout.write(`caught: ${control.name}: ${words[0]?.split("\n")[0]}\n`);
    } else {
      totals.failed += 1;
      process.stdout.write(`FAILED not caught: ${control.name}\n`);
    }
  });
  process.stdout.write(
    `controls: ${caught} caught, ${Math.round((performance.now() - startedMs) / 1000)} s\n`,
  );
}

/** Beats that are struck at: a thread tells nobody how often it has beaten when its process ends. */
const BEATS = Array.from({ length: 8 }, () => "utimes");

/** Real worker processes: every call of their main thread, and those of the thread that beats. */
async function casesOfWorkers(): Promise<{ cases: Case[]; published: Case[] }> {
  const options = { hasProcesses: true };
  const { calls, faults } = await countCalls(WORKER_OPERATION, { ...options, role: "worker" });
  if (faults.length > 0) {
    totals.failed += 1;
    process.stdout.write(`FAILED undisturbed worker\n    ${faults.join("\n    ")}\n`);
  }
  const strike = (role: "worker" | "thread", of: readonly string[]): Case[] =>
    killsOf(WORKER_OPERATION, of).map(({ fault, operation }) => ({
      operation,
      fault: { ...fault, role, once: true },
      options,
    }));
  const main = strike("worker", calls);
  // Between the commit of a task and the end of its marker.
  const published = main.filter(
    ({ fault }) => calls[fault.at - 1] === "link" && fault.when === "after",
  );
  return { cases: [...strike("thread", BEATS), ...main], published };
}

/** The supervisor that takes over runs what was committed again. */
async function runWorkerControl(cases: readonly Case[]): Promise<void> {
  const broken = "a recovery runs a committed task again";
  for (const { operation, fault, options } of cases) {
    const { faults } = await runCase(operation, fault, { ...options, broken });
    if (faults.length === 0) continue;
    totals.passed += 1;
    process.stdout.write(`caught: a worker dies and ${broken}: ${faults[0]?.split("\n")[0]}\n`);
    return;
  }
  totals.failed += 1;
  process.stdout.write(`FAILED not caught: a worker dies and ${broken}\n`);
}

process.stdout.write(`seed ${seed}\n`);
// What was tried counts, also when somebody has seen enough of it.
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    deadlineMs = 0;
    process.once(signal, () => process.exit(130));
  });
const kills: Case[] = [];
const zombies: Case[] = [];
const errors: Case[] = [];
const chosen = [...OPERATIONS, ...STEERING, ...PLANNING].filter(
  (o) =>
    positionals.length === 0 || positionals.some((p) => o.name === p || o.name.startsWith(`${p}-`)),
);
const isSample = values.sample !== undefined;
const isOnlyWorkers = kinds.every((kind) => kind === "worker" || kind === "controls");
const tornOfFew = new Set(choose(chosen, 3));
// A sample has no time for whole supervisors, except their own kills.
// And it does not count the calls of a command that it will not try.
const counted = isSample && values.few === true ? choose(chosen, Math.ceil(sampleMax / 2)) : chosen;
await inLanes(isOnlyWorkers ? [] : counted, async (operation) => {
  const { calls, faults } = await countCalls(operation);
  if (faults.length > 0) {
    totals.failed += 1;
    process.stdout.write(`FAILED undisturbed ${operation.name}\n    ${faults.join("\n    ")}\n`);
    return;
  }
  kills.push(...killsOf(operation, calls));
  if (operation.isWhole !== true && operation.name !== "sweep")
    zombies.push(...zombiesOf(operation, calls));
  // A cancel that fails because of its fault leaves a task that waits for an hour, as it should.
  if (kinds.includes("error") && !/cancel(?:-final)?-waiting$/.test(operation.name)) {
    const all = isSample ? calls : (await countCalls(operation, { hasReads: true })).calls;
    errors.push(...errorsOf(operation, all));
  }
});
if (kinds.includes("kill")) await runAll("kill", choose(kills, sampleMax));
if (kinds.includes("zombie"))
  await runAll("zombie", choose(zombies, Math.min(sampleMax, ZOMBIES_MAX)));
if (kinds.includes("error")) await runAll("error", choose(errors, Math.min(sampleMax, ERRORS_MAX)));
if (kinds.includes("compound")) {
  const cases = Array.from({ length: Math.min(sampleMax, COMPOUND_MAX) }, () => {
    const first = choose(kills, 1)[0];
    const at = 1 + Math.floor(random() * 70);
    const recoveryFault: Fault = { at, act: "kill", when: random() < 0.5 ? "before" : "after" };
    return first === undefined ? [] : [{ ...first, options: { recoveryFault } }];
  }).flat();
  await runAll("compound", cases);
}
if (kinds.includes("worker")) {
  const { cases, published } = await casesOfWorkers();
  await runAll("worker", choose(cases, sampleMax));
  if (kinds.includes("controls")) await runWorkerControl(published);
}
if (kinds.includes("controls")) await runControls();
process.stdout.write(
  `${totals.missed} cases ended before their fault\n${totals.passed} passed, ${totals.failed} failed\n`,
);
process.exitCode = totals.failed > 0 ? 1 : 0;
