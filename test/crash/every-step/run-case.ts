/** Runs one case: prepare a tree, let a victim work on it until its fault, recover, compare. */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Settings } from "../../../src/core/settings.ts";
import type { Storage } from "../../../src/mailbox/files/storage.ts";
import { timeLimitMs } from "../../support/time-limit.ts";
import { checkEnd, checkInstant } from "./check-tree.ts";
import { brokenStorage } from "./controls.ts";
import type { Operation } from "./operations.ts";
import {
  type Book,
  type Durability,
  type Journals,
  type Place,
  placeAt,
  quickSettings,
  readLines,
} from "./place.ts";
import { recoverTree } from "./recover-tree.ts";

/** What the hook is told; see there. */
export interface Fault {
  role?: "main" | "worker" | "thread";
  at: number;
  act: "kill" | "stop" | "torn" | "error" | "short";
  when?: "before" | "after";
  code?: string;
  /** Heals after so many ms; without it the fault strikes once. */
  lastsMs?: number;
  hasReads?: boolean;
  /** Only the first process that gets there. */
  once?: boolean;
  from?: string;
  to?: string;
}

export interface CaseOptions {
  /** Kills the recovery, too: at its N-th call. */
  recoveryFault?: Fault;
  /** Name of a broken variant that the victim runs. */
  broken?: string;
  /** Name of a broken variant that the recovery runs. */
  brokenRecovery?: string;
  hasProcesses?: boolean;
  /** Instead of the operation's own. */
  durability?: Durability;
}

export interface CaseResult {
  /** False: the victim ended before its N-th call, so that nothing was tested. */
  isReached: boolean;
  faults: string[];
  /** What the hook struck at. */
  struck: string;
  /** Calls that the victim made, as far as it came. */
  calls: number;
  injected: number;
}

const HOOK = process.env["MAILCHUTE_CRASH_HOOK"] ?? "";
const VICTIM = fileURLToPath(new URL("./victim.js", import.meta.url));
const VICTIM_MS_MAX = 30_000;
const OBSERVED_MS_MAX = 10_000;
const RECOVERY_MS_MAX = 20_000;

interface Report {
  count: number;
  fault?: string;
  what?: string;
  ended?: boolean;
  calls?: string[];
  faults?: number;
  cpuMs?: number;
}

function readReports(path: string): Report[] {
  try {
    return fs
      .readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Report);
  } catch {
    return [];
  }
}

/** Victims that live, also those that stand still: none may outlive us. */
const living = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

export interface Victim {
  child: ChildProcess;
  ended: Promise<{ exitCode: number | null; signal: NodeJS.Signals | null; stderr: string }>;
  reports(): Report[];
}

export function startVictim(
  name: string,
  place: Place,
  fault: Fault,
  options: CaseOptions,
): Victim {
  const report = join(place.dir, `report-${name}`);
  const healed = join(place.dir, `healed-${name}`);
  const plan = {
    role: "main",
    root: place.state,
    report,
    ...fault,
    ...(fault.lastsMs === undefined ? {} : { until: healed }),
  };
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    NODE_OPTIONS: `--require=${HOOK}`,
    MAILCHUTE_CRASH: JSON.stringify(plan),
  };
  if (options.broken !== undefined) env["MAILCHUTE_CRASH_BREAK"] = options.broken;
  if (options.hasProcesses === true) env["MAILCHUTE_CRASH_PROCESSES"] = "1";
  if (options.durability !== undefined) env["MAILCHUTE_CRASH_DURABILITY"] = options.durability;
  const child = spawn(process.execPath, [VICTIM, name, place.dir, place.state], {
    stdio: ["ignore", "ignore", "pipe"],
    env,
  });
  living.add(child);
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-4000);
  });
  let isEnded = false;
  const heal =
    fault.lastsMs === undefined
      ? undefined
      : setInterval(() => {
          if (readReports(report).some((r) => r.fault !== undefined)) {
            clearInterval(heal);
            setTimeout(() => {
              if (!isEnded) fs.writeFileSync(healed, "");
            }, fault.lastsMs);
          }
        }, 10);
  const limit = setTimeout(() => child.kill("SIGKILL"), timeLimitMs(VICTIM_MS_MAX));
  const ended = new Promise<{
    exitCode: number | null;
    signal: NodeJS.Signals | null;
    stderr: string;
  }>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, signal) => {
      isEnded = true;
      living.delete(child);
      clearTimeout(limit);
      clearInterval(heal);
      resolve({ exitCode, signal, stderr });
    });
  });
  return { child, ended, reports: () => readReports(report) };
}

export function newPlace(): Place {
  return placeAt(fs.mkdtempSync(join(fs.realpathSync(os.tmpdir()), "mailchute-crash-")));
}

export function removePlace(place: Place): void {
  fs.rmSync(place.dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
}

/** How many calls the operation makes when nothing happens, and whether its end is right. */
export async function countCalls(
  operation: Operation,
  options: CaseOptions & { role?: Fault["role"]; hasReads?: boolean } = {},
): Promise<{ calls: string[]; faults: string[] }> {
  const place = newPlace();
  try {
    const book = operation.prepare(place);
    const { role, hasReads } = options;
    const victim = startVictim(
      operation.name,
      place,
      {
        at: 0,
        act: "kill",
        ...(role === undefined ? {} : { role }),
        ...(hasReads === undefined ? {} : { hasReads }),
        ...operation.window,
      },
      options,
    );
    const { exitCode, stderr } = await victim.ended;
    const faults = exitCode === 0 ? [] : [`exit code ${exitCode}: ${stderr}`];
    faults.push(...(await observe(place, operation)));
    faults.push(...(await finish(place, book, 1)));
    faults.push(...(operation.checkEnd?.(place, "strict") ?? []));
    return { calls: victim.reports().at(-1)?.calls ?? [], faults };
  } finally {
    removePlace(place);
  }
}

/** Recovers and compares. */
export async function finish(
  place: Place,
  book: Book,
  kills: number,
  options: {
    journals?: Journals;
    storage?: Storage;
    settings?: Partial<Settings>;
  } = {},
): Promise<string[]> {
  const notices: string[] = [];
  fs.rmSync(`${place.runs}.wait`, { force: true });
  let limit: NodeJS.Timeout | undefined;
  let stop: (() => void) | undefined;
  const tooLong = new Promise<"too long">((resolve) => {
    limit = setTimeout(() => resolve("too long"), timeLimitMs(RECOVERY_MS_MAX));
  });
  const recovered = recoverTree(place, {
    settings: { ...quickSettings("process"), ...options.settings },
    ...(options.storage === undefined ? {} : { storage: options.storage }),
    onNotice: (notice) => notices.push(notice),
    onMade: (supervisor) => {
      stop = () => supervisor.stop(false);
    },
  });
  try {
    const summary = await Promise.race([recovered, tooLong]);
    clearTimeout(limit);
    if (summary === "too long") {
      const faults = [`the recovery does not end: ${describeTree(place)}`];
      stop?.();
      await recovered;
      return faults;
    }
  } catch (error) {
    clearTimeout(limit);
    return [`the recovery broke: ${String(error)}`];
  }
  return checkEnd(place, book, kills + (book.tornLines ?? 0), options.journals);
}

/** For a command: a supervisor that stays until it is acknowledged, and what the tree looks like then. */
export async function observe(
  place: Place,
  operation: Operation,
  journals: Journals = "strict",
): Promise<string[]> {
  const { afterwards } = operation;
  if (afterwards === undefined) return [];
  let stop = (): void => {};
  let hasEnded = false;
  const running = recoverTree(place, {
    settings: quickSettings("process"),
    staysUp: true,
    onMade: (supervisor) => {
      stop = () => supervisor.stop(false);
    },
  }).finally(() => {
    hasEnded = true;
  });
  const deadline = performance.now() + timeLimitMs(OBSERVED_MS_MAX);
  while (!hasEnded && !afterwards.isAnswered(place) && performance.now() < deadline)
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  const faults = hasEnded ? ["the supervisor that came after ended by itself"] : [];
  stop();
  await running;
  faults.push(...afterwards.check(place, journals));
  afterwards.goOn(place);
  return faults;
}

export function describeTree(place: Place): string {
  return fs
    .readdirSync(place.tree.mailbox, { recursive: true })
    .map(String)
    .filter((name) => name.includes("."))
    .join(" ");
}

/** Exit codes and words of a victim that was told of an error and says so. */
function isCleanFailure(exitCode: number | null, stderr: string): boolean {
  return exitCode === 0 || (exitCode === 1 && /made up|ENOSPC|could not be|Err[A-Z]/.test(stderr));
}

export async function runCase(
  operation: Operation,
  fault: Fault,
  options: CaseOptions = {},
): Promise<CaseResult> {
  const place = newPlace();
  const faults: string[] = [];
  try {
    const book = operation.prepare(place);
    const victim = startVictim(operation.name, place, fault, options);
    if (fault.act === "stop") return await runZombie(operation, place, book, victim);
    const { exitCode, signal, stderr } = await victim.ended;
    const reports = victim.reports();
    const strike = reports.find((r) => r.fault !== undefined);
    const last = reports.at(-1);
    const injected = last?.faults ?? 0;
    const isKill = fault.act === "kill" || fault.act === "torn";
    const isLossy = fault.act === "error" || fault.act === "short";
    let isReached = strike !== undefined || injected > 0;
    if (isKill && isReached && fault.role === undefined && signal !== "SIGKILL")
      faults.push(`the victim was not killed: ${exitCode} ${signal}`);
    if (!isKill) {
      if (signal !== null) faults.push(`the victim ended by ${signal}: ${stderr}`);
      // What did not get as far as starting may refuse to start; nothing else may give up.
      else if (!isCleanFailure(exitCode, stderr)) faults.push(`exit code ${exitCode}: ${stderr}`);
      if (injected > FAULTS_PER_S_MAX * ((fault.lastsMs ?? 0) / 1000 + 0.5))
        faults.push(`a busy loop: ${injected} faults in ${fault.lastsMs} ms`);
    }
    faults.push(...checkInstant(place, book, isLossy), ...(operation.checkInstant?.(place) ?? []));
    let kills = isKill ? 1 : injected;
    if (options.recoveryFault !== undefined) {
      fs.rmSync(`${place.runs}.wait`, { force: true });
      const second = startVictim("recovery", place, options.recoveryFault, {});
      await second.ended;
      isReached &&= second.reports().some((r) => r.fault !== undefined);
      kills += 1;
      if (operation.usesAttempts === true)
        for (const promised of Object.values(book.tasks))
          promised.ends = [...promised.ends, "failed"];
      faults.push(...checkInstant(place, book), ...(operation.checkInstant?.(place) ?? []));
    }
    const journals = isKill ? "strict" : "lossy";
    faults.push(...(await observe(place, operation, journals)));
    if (!isKill && operation.afterwards?.hasGivenUp(place) === true)
      for (const promised of Object.values(book.tasks))
        if (promised.ends.includes("cancelled")) promised.ends = [...promised.ends, "completed"];
    faults.push(
      ...(await finish(place, book, kills, {
        journals,
        ...(options.brokenRecovery === undefined
          ? {}
          : { storage: brokenStorage(options.brokenRecovery) }),
      })),
    );
    faults.push(...(operation.checkEnd?.(place, journals) ?? []));
    return {
      isReached,
      faults,
      struck: strike?.what ?? "",
      calls: last?.count ?? 0,
      injected,
    };
  } finally {
    removePlace(place);
  }
}

/** More failing calls than this (per second) are a loop that does not wait. */
const FAULTS_PER_S_MAX = 2000;
/** A lease that is silent for this long is taken over (ms). */
const SILENT_MS = 250;

/** The victim stands still at its call; another takes over and finishes; then the victim goes on. */
async function runZombie(
  operation: Operation,
  place: Place,
  book: Book,
  victim: Victim,
): Promise<CaseResult> {
  const { child } = victim;
  const isStopped = await Promise.race([victim.ended.then(() => false), stopped(child.pid ?? 0)]);
  const faults: string[] = [];
  if (isStopped) {
    const settings = { lease_ttl_ms: SILENT_MS, heartbeat_ms: 100 };
    const meanwhile = await finish(place, book, 0, { journals: "repeats", settings });
    // Commands are not waited for by a drain, and what a living process staged is its own.
    faults.push(...meanwhile.filter((text) => !/^(?:command |left in \.tmp)/.test(text)));
    const before = settledFiles(place);
    const isToBeRetried = isOldBatch(place);
    child.kill("SIGCONT");
    await victim.ended;
    for (const [path, key] of before) {
      const now = settledFiles(place).get(path);
      const isRetried =
        isToBeRetried || (operation.name.startsWith("retry-") && path.startsWith("failed/"));
      if (now !== key && !isRetried)
        faults.push(`${path} was ${now === undefined ? "removed" : "replaced"}`);
    }
  }
  faults.push(...(await finish(place, book, 0, { journals: "repeats" })));
  faults.push(...(operation.checkEnd?.(place, "repeats") ?? []));
  const reports = victim.reports();
  return {
    isReached: isStopped,
    faults: faults.map((fault) => `zombie: ${fault}`),
    struck: reports.find((r) => r.fault !== undefined)?.what ?? "",
    calls: reports.at(-1)?.count ?? 0,
    injected: 0,
  };
}

/** A settled batch whose retry has not begun: the one that stood still may well take it out of its tray. */
function isOldBatch(place: Place): boolean {
  const records = ["outbox/b_result.json", "failed/b_error.json"];
  return records.some((path) =>
    readLines(join(place.tree.mailbox, path)).some((line) => line.includes('"lease":"old.')),
  );
}

export async function stopped(pid: number): Promise<boolean> {
  for (;;) {
    try {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
      if (stat.slice(stat.lastIndexOf(")") + 2).startsWith("T")) return true;
    } catch {
      return false;
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 3);
    });
  }
}

/** Records and what tells one file from another. */
function settledFiles(place: Place): Map<string, string> {
  const found = new Map<string, string>();
  for (const tray of ["outbox", "failed"]) {
    const dir = join(place.tree.mailbox, tray);
    for (const name of fs.readdirSync(dir)) {
      const { ino, size } = fs.statSync(join(dir, name));
      found.set(`${tray}/${name}`, `${ino}.${size}`);
    }
  }
  return found;
}
