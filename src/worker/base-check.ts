/**
 * Finds out whose fault a red check is: tries it on the base of the work, too, in a clean checkout. What it said there is kept in
 * `bases/` by files and command, so that many tasks try it once. If it is red there in the same way, all these tasks wait for one
 * question, until it is green there or a person answers.
 */

import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { type Assignment, timeoutOf } from "../agents/agent.ts";
import { hideSecrets } from "../agents/secrets.ts";
import { messageOf } from "../core/errors.ts";
import type { AttemptOutcome, Deferred, Failed } from "../core/outcome.ts";
import { isExpired } from "../core/retention.ts";
import { isNumber, isText, type Of, oneOf, optional, shape } from "../core/shape.ts";
import { stateTree } from "../core/state-tree.ts";
import { Documents } from "../host/document-store.ts";
import { lockFile } from "../host/file-lock.ts";
import { listDir } from "../host/list-dir.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { readEnd, statOf } from "../host/regular-file.ts";
import { systemClock } from "../host/system-clock.ts";
import { Alerts } from "../journal/alerts.ts";
import { holdOf } from "../questions/question-file.ts";
import { QuestionStore } from "../questions/question-store.ts";
import { runVerify } from "./check.ts";
import type { AssignedAgent, Base } from "./runner.ts";
import { runSetup } from "./setup.ts";

/** How much of its output is compared, and how much a person is shown (bytes). */
const COMPARED_BYTES_MAX = 256 * 1024;
const SHOWN_BYTES_MAX = 4 * 1024;
/** While tasks wait, a check that was red is tried again on the same commit after this time: what it needs may be there now (ms). */
export const RED_AGAIN_MS = 10 * 60_000;
/** The longest time until a task that waits looks whether the base has moved (ms). */
const LOOK_AGAIN_MS = 60_000;

/** What a check said on a base: `bases/<hash>.json`. */
const triedBase = shape({
  v: oneOf(1),
  commit: isText,
  /** `flaky`: red and green by turns. `unclear`: it could not be run to its end. */
  is: oneOf("green", "red", "flaky", "unclear"),
  /** A hash of what it printed, without what differs from run to run. */
  shape: isText,
  /** How it ended; "" when it is green. */
  message: isText,
  /** The end of what it printed when it is red. */
  output: isText,
  at_ms: isNumber,
  /** A run ended in the same way, so tasks with this base wait. */
  is_asked: optional(oneOf(true)),
});
export type TriedBase = Of<typeof triedBase>;

/**
 * Call it with the outcome of the checks of a run. A task that says that it repairs what is red would be left to its own check here.
 * @returns what becomes of the run: it waits when its base is red in the same way, and is told of a check that is flaky
 */
export async function judgeByBase(
  assigned: AssignedAgent,
  fault: AttemptOutcome,
): Promise<AttemptOutcome> {
  const { runDir, stop } = assigned.assignment;
  // Expected files are what the run must make, so they are missing on the base. A program that is missing is no check.
  if (fault.kind !== "failed" || (fault.exitCode ?? fault.signal) === null) return fault;
  if (fault.failure !== "verify") return fault;
  const base = await assigned.base?.();
  if (base === undefined || stop.reason !== undefined) return fault;
  const check = new BaseCheck(assigned, base);
  let tried = await check.tryOut();
  if (tried.is === "green" && (await base.hasSameFiles()))
    tried = check.save({ ...tried, is: "flaky" });
  if (tried.is === "flaky")
    return { ...fault, message: `${fault.message}; ${flakyText(tried.commit, base)}` };
  const isSame = tried.shape === shapeOf(fault, runDir, base.workRoot);
  return tried.is === "red" && isSame ? (check.hold(tried) ?? fault) : fault;
}

/** One check on one base. */
export class BaseCheck {
  private readonly bases: Documents<TriedBase>;
  private readonly name: string;
  private readonly questions: QuestionStore;

  constructor(
    private readonly assigned: AssignedAgent,
    private readonly base: Base,
  ) {
    const { task, stateDir } = assigned.assignment;
    const { verify, setup = assigned.agent.settings.setup, env, env_from } = task;
    this.name = hash(JSON.stringify([base.key, verify, setup, env, env_from]));
    this.bases = new Documents(stateDir, "bases", triedBase);
    this.questions = new QuestionStore(stateDir);
  }

  /** What is known, if tasks wait because of it. */
  waiting(): TriedBase | undefined {
    const known = this.known();
    const isWaiting = known?.is === "red" && known.is_asked === true;
    return isWaiting && this.answerTo(known) === undefined ? known : undefined;
  }

  /**
   * Tries the check, unless that is known. Others with the same check wait for that.
   * @param redMaxMs a check that was red is tried again after this time
   */
  async tryOut(redMaxMs = Number.POSITIVE_INFINITY): Promise<TriedBase> {
    const { stop } = this.assigned.assignment;
    makeDirs(this.bases.dir, 1);
    for (;;) {
      const release = await lockFile(`${this.bases.path(this.name)}.lock`);
      try {
        const known = this.known();
        const isOld = known?.is === "red" && Date.now() - known.at_ms > redMaxMs;
        if (known !== undefined && !isOld) return known;
        if (release === undefined && stop.reason === undefined) continue;
        return await this.tryNow(known);
      } finally {
        await release?.();
      }
    }
  }

  /** Has the task wait. @returns undefined when a person has said that it may go on */
  hold(tried: TriedBase): Deferred | undefined {
    if (this.answerTo(tried) !== undefined) return undefined;
    const id = this.idOf(tried);
    const { task } = this.assigned.assignment;
    const why = `the base is red: ${tried.message}, at ${placeText(tried.commit, this.base)}`;
    if (tried.is_asked !== true) this.bases.replace(this.name, { ...tried, is_asked: true });
    this.questions.ask({
      id,
      question: `${why[0]?.toUpperCase()}${why.slice(1)}, and in the same way after the run of ${task.id}. Shall the runs go on as they are?`,
      context: `All tasks with this check and this base wait. They go on by themselves when the check is green where new work begins. Any answer lets them go on: then each mends what its check says.\n\n    ${tried.output.replaceAll("\n", "\n    ")}`,
      who: "each task with this check",
      agents: [],
      expects: "text",
      asked_at_ms: Date.now(),
      ends_at_ms: null,
      again_ms: LOOK_AGAIN_MS,
    });
    const hold = holdOf(id);
    return { kind: "deferred", message: why, delayMs: LOOK_AGAIN_MS, hold, question: id };
  }

  /** Withdraws its question: new work begins elsewhere. @param but the question for which the tasks wait now */
  release(tried: TriedBase, but?: string): void {
    const id = this.idOf(tried);
    if (id !== but) this.questions.close(id);
  }

  private async tryNow(before: TriedBase | undefined): Promise<TriedBase> {
    const { assignment } = this.assigned;
    const { stop } = assignment;
    let tried = await this.tryOnce();
    // One red check would stop many tasks, so it is tried once more.
    if (tried.is === "red") {
      const again = await this.tryOnce();
      if (again.is !== "red") tried = { ...again, is: again.is === "green" ? "flaky" : again.is };
    } else if (tried.is === "green" && before?.is === "red") tried = { ...tried, is: "flaky" };
    if (stop.reason !== undefined) return tried;
    return this.save({ ...tried, output: hideSecrets(tried.output, assignment.secrets ?? []) });
  }

  /** Keeps what is known, and tells a person of a flaky check. */
  save(tried: TriedBase): TriedBase {
    const { stateDir, settings } = this.assigned.assignment;
    dropOld(this.bases.dir, settings.retention.failed_days);
    this.bases.replace(this.name, tried);
    if (tried.is === "flaky") {
      const alerts = new Alerts(stateTree(stateDir).alerts, systemClock, () => {});
      alerts.raise("flaky_check", flakyText(tried.commit, this.base));
      alerts.close();
    }
    return tried;
  }

  private async tryOnce(): Promise<TriedBase> {
    const { assigned, base } = this;
    const { assignment, agent } = assigned;
    const runDir = join(assignment.runDir, "base");
    const { expect_files: _, ...task } = assignment.task;
    const { lastCheck: __, ...rest } = assignment;
    fs.rmSync(runDir, { recursive: true, force: true });
    const facts = { v: 1, commit: base.commit, at_ms: Date.now(), shape: "", output: "" } as const;
    try {
      return await base.checkOut(async ({ root, cwd }) => {
        const workspace = { env: {}, ...assignment.workspace, cwd, root, git: undefined };
        const there: Assignment = { ...rest, task, runDir, workspace };
        const limitMs = timeoutOf(there, agent.settings);
        const now = (): number => performance.now();
        const fault =
          (await runSetup({ agent, assignment: there })) ??
          (await runVerify(there, limitMs, now(), now));
        assignment.secrets = there.secrets ?? assignment.secrets ?? [];
        if (fault === undefined) return { ...facts, is: "green", message: "" };
        const isRed = fault.kind === "failed" && fault.failure === "verify";
        if (!isRed) return { ...facts, is: "unclear", message: fault.kind };
        const output = lastOutput(runDir).slice(-SHOWN_BYTES_MAX);
        const shape = shapeOf(fault, runDir, root);
        return { ...facts, is: "red", shape, output, message: fault.message };
      });
    } catch (error) {
      return { ...facts, is: "unclear", message: messageOf(error) };
    }
  }

  private known(): TriedBase | undefined {
    return this.bases.read(this.name);
  }

  private answerTo(tried: TriedBase): string | undefined {
    return this.questions.answerOf(this.idOf(tried));
  }

  /** The same for all bases on which the check is red in the same way, so that a person is asked once. */
  private idOf({ shape }: TriedBase): string {
    const { verify } = this.assigned.assignment.task;
    return `base.${hash(JSON.stringify([this.base.where, verify, shape]))}`;
  }
}

/** Whether any check was tried on a base. */
export function hasTriedBases(stateDir: string): boolean {
  return fs.existsSync(stateTree(stateDir).bases);
}

/** What a check prints that differs from run to run, and what it says of what is green: a run may add tests. */
const NOISE: readonly (readonly [RegExp, string])[] = [
  [/\u001b\[[0-9;]*[A-Za-z]/g, ""],
  [/\/(?:tmp|var\/folders|private\/tmp)\/[^\s:'")]*/g, "PATH"],
  [/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi, "HASH"],
  [/\b0x[0-9a-f]+\b/gi, "HASH"],
  [/\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b/gi, "HASH"],
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?/g, "TIME"],
  [/\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\b/g, "TIME"],
  [/\b\d+(?:[.,]\d+)?\s*(?:ns|µs|us|ms|s|secs?|seconds?|m|mins?|minutes?)\b/g, "TIME"],
  [/\b(pid|process|port)\b([ :=#]*)\d+/gi, "$1$2N"],
  [/\[\d+\]|==\d+==|\blocalhost:\d+|\b127\.0\.0\.1:\d+/g, "N"],
  [/\[ *\d+%\]/g, ""],
  [/\b\d+ (passed|passing|pass|ok|tests?|items|total)\b/gi, "N $1"],
  [/\b(Ran|collected|passed|pass|tests|total):? \d+|\(\d+\)/gi, "N"],
  [/([=-])\1{3,}/g, "$1"],
];
const GREEN_LINE = /^\s*(?:✓|✔|√|ok\b|PASS(?:ED)?\b|1\.\.\d+$)|^[\w/.-]+\s*\.+\s*$/u;

/** The same for two failures of a check that differ in nothing that it says. */
function shapeOf(fault: Failed, runDir: string, root: string): string {
  let text = lastOutput(runDir).replaceAll(root, ".");
  for (const [noise, word] of NOISE) text = text.replace(noise, word);
  // Checks that run side by side end in any order.
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !GREEN_LINE.test(line));
  return hash(JSON.stringify([fault.message, fault.signal, lines.sort()]));
}

/** What the last program of the checks has printed. */
function lastOutput(runDir: string): string {
  const log = readEnd(join(runDir, "verify.log"), COMPARED_BYTES_MAX);
  const [head = ""] = /^(?:[\s\S]*\n)?\$ ".*\n/.exec(log) ?? [];
  return log.slice(head.length);
}

function flakyText(commit: string, base: Base): string {
  return `the check is flaky: it was red and green by turns at ${placeText(commit, base)}`;
}

function placeText(commit: string, { where }: Base): string {
  return `${commit.slice(0, 12)} of ${where}`;
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function dropOld(dir: string, days: number): void {
  for (const name of listDir(dir)) {
    const path = join(dir, name);
    const stats = statOf(path);
    if (stats?.isFile() === true && isExpired(Date.now() - stats.mtimeMs, days))
      fs.rmSync(path, { force: true });
  }
}
