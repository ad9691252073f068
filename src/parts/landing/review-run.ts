/**
 * One run of a review: the reviewer looks at the commit in a worktree of its own, and gives its verdict. The verdict is on disk
 * before the review settles, so it counts even if a consumer takes the record of the review.
 */

import fs from "node:fs";
import { join } from "node:path";
import { lastResultBlock, readResults } from "../../agents/report.ts";
import { MailchuteError, messageOf } from "../../core/errors.ts";
import { isObject } from "../../core/json-object.ts";
import { type AttemptOutcome, type Completed, deferred, failed } from "../../core/outcome.ts";
import { makeCleanCheckout, removeCleanCheckout } from "../../git/clean-checkout.ts";
import {
  beginRun,
  changesDuring,
  changeText,
  endRun,
  type SettingsChange,
} from "../../git/kept-settings.ts";
import { makeTextRef } from "../../git/refs.ts";
import { openRepository, type Repository } from "../../git/repository.ts";
import { isDiskFull } from "../../git/run-git.ts";
import { LEASE_VARIABLE, STATE_VARIABLE } from "../../host/process-tree.ts";
import { statOf } from "../../host/regular-file.ts";
import { say } from "../../host/say.ts";
import { Alerts } from "../../journal/alerts.ts";
import {
  type LandingOrder,
  loadOrder,
  type ReviewVerdict,
  writeLanding,
} from "../../worker/landing-files.ts";
import type { AssignedAgent, AttemptTools } from "../../worker/runner.ts";
import { verdictOn } from "./ask-reviewer.ts";
import { reviewPathOf } from "./landing-paths.ts";

/** How much of a verdict's text is kept (characters). */
const TEXT_MAX = 20_000;

/** Never rejects. */
export async function runReview(
  tools: AttemptTools,
  assigned: AssignedAgent,
): Promise<AttemptOutcome> {
  const { task, stateDir } = assigned.assignment;
  try {
    const order = loadOrder(stateDir, String(task["review_of"]));
    const { base, commit } = isObject(task.payload) ? task.payload : {};
    if (order === undefined || typeof base !== "string" || typeof commit !== "string")
      return failed("landing", "ErrLanding", "nothing is known of the work that it reviews", {
        canRetry: false,
      });
    // A killed run may have written its verdict.
    const earlier = verdictOn(stateDir, order, commit);
    return earlier === undefined
      ? await review(tools, assigned, order, { base, commit })
      : completed(earlier);
  } catch (error) {
    const { hint } = error instanceof MailchuteError ? error : {};
    const text = `${messageOf(error)}${hint === undefined ? "" : `; ${hint}`}`;
    return isDiskFull(error) ? deferred(text) : failed("landing", "ErrLanding", text);
  }
}

async function review(
  tools: AttemptTools,
  { agent, assignment }: AssignedAgent,
  order: LandingOrder,
  { base, commit }: { base: string; commit: string },
): Promise<AttemptOutcome> {
  const { task, stateDir, lease, runDir, stop } = assignment;
  const { branch, target, repository: commonDir, prefix } = order;
  const env = { [LEASE_VARIABLE]: lease, [STATE_VARIABLE]: stateDir };
  const repository = await openRepository(commonDir, env);
  const path = reviewPathOf(order, task.id ?? "");
  const logFrom = clearReports(runDir);
  const { path: top } = await makeCleanCheckout(repository, path, commit);
  const inside = join(top, prefix);
  const run = { id: task.id ?? "", tree: stateDir };
  const found = await beginRun(commonDir, run);
  let own: SettingsChange[] = [];
  let outcome: AttemptOutcome;
  try {
    outcome = await agent.run({
      ...assignment,
      workspace: {
        cwd: fs.existsSync(inside) ? inside : top,
        root: top,
        env: {
          MAILCHUTE_BRANCH: branch,
          MAILCHUTE_BASE: base,
          MAILCHUTE_COMMIT: commit,
          MAILCHUTE_TARGET: target,
        },
      },
    });
    const changes = await changesDuring(commonDir, run);
    found.push(...changes.found);
    own = changes.own;
    await markChanges(repository, order, own);
  } finally {
    found.push(...(await endRun(commonDir, run)));
    await removeCleanCheckout(repository, path);
    for (const change of found)
      new Alerts(tools.tree.alerts, tools.trays.clock, say).alert(
        "repository_settings",
        changeText(commonDir, change, `the review of ${order.task_id}`),
      );
  }
  // Its verdict does not count if no other run can have done it.
  const [mine] = own.filter(({ runs }) => runs.length === 1);
  if (mine !== undefined)
    return failed("landing", "ErrLanding", changeText(commonDir, mine), { canRetry: false });
  // A program may also say `"status": "fail"` with its verdict. That run has ended well, too.
  const hasEnded =
    outcome.kind === "completed" ||
    (outcome.kind === "failed" && outcome.code === "ErrReportedFailure");
  if (!hasEnded || stop.reason === "fenced") return outcome;
  const said = saidBy(outcome, runDir, logFrom);
  if (said === undefined)
    return failed(
      "no_result",
      "ErrNoResult",
      'it ended without a verdict: print <result>{"verdict": "pass", "summary": "…"}</result> at the end, or "fail"',
    );
  const { lease: of } = order;
  const verdict: ReviewVerdict = { v: 1, lease: of, commit, by: agent.name, ...said };
  writeLanding(stateDir, task.id ?? "", "verdict", verdict);
  return completed(verdict);
}

/** After a reviewer changes settings of the repository, the work does not land by itself, as after such a run of the author. */
async function markChanges(
  repository: Repository,
  { changed_ref: ref }: LandingOrder,
  own: readonly SettingsChange[],
): Promise<void> {
  const names = new Set(own.flatMap((change) => change.names));
  if (names.size > 0) await makeTextRef(repository, ref, `${[...names].sort().join("\n")}\n`);
}

/** Removes the verdict of an earlier run, because it must not count. @returns where this run begins in stdout.log (bytes) */
function clearReports(runDir: string): number {
  fs.rmSync(join(runDir, "result.json"), { force: true });
  return statOf(join(runDir, "stdout.log"))?.size ?? 0;
}

/** The last verdict of the run: from the result file or stdout of a program, the end of a coding agent, or a function's result. */
function saidBy(
  outcome: AttemptOutcome,
  runDir: string,
  logFrom: number,
): Pick<ReviewVerdict, "verdict" | "text"> | undefined {
  const output = outcome.kind === "completed" ? outcome.output : undefined;
  const end = typeof output === "string" ? lastResultBlock(output) : output;
  const results = readResults(join(runDir, "result.json"), join(runDir, "stdout.log"), logFrom);
  for (const result of [...results, ...(isObject(end) ? [end] : [])]) {
    const { verdict } = result;
    if (verdict !== "pass" && verdict !== "fail") continue;
    const texts = [result["summary"], result["verdict_reason"], result["text"], result["error"]];
    const text = texts.find((one): one is string => typeof one === "string" && one.trim() !== "");
    return { verdict, text: (text ?? "").trim().slice(0, TEXT_MAX) };
  }
  return undefined;
}

function completed({ verdict, text, commit, by }: ReviewVerdict): Completed {
  return {
    kind: "completed",
    output: { verdict, summary: text, commit, by },
    verdict,
    verdictReason: text,
    exitCode: null,
  };
}
