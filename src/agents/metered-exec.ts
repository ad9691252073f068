/**
 * A run of a program of kind `exec` with a meter: it has costs, counts for budgets, and waits at the gate of its account, although
 * nothing is known about the program itself.
 */
import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import { compact } from "../core/compact.ts";
import { splitLease, submissionOf } from "../core/names.ts";
import type { AttemptOutcome, Failed } from "../core/outcome.ts";
import { type AgentSettings, isMetered } from "../core/settings.ts";
import { accountsOf, withAccount } from "./accounts/account-settings.ts";
import { type Assignment, StopSignal, workDirOf } from "./agent.ts";
import { bookCost } from "./book-cost.ts";
import { CostWatch, type RunCosts } from "./budget/cost-watch.ts";
import { planOf } from "./budget/plan-of.ts";
import { RunBudget } from "./budget/run-budget.ts";
import { type CostRecord, hasUsed } from "./cost-records.ts";
import type { MeterReading } from "./meter-reading.ts";
import { type Metered, openMeter } from "./metered-run.ts";
import type { AccountGate } from "./stream/account-gate.ts";
import { AgentAlerts } from "./stream/agent-alerts.ts";
import { enterAccount } from "./stream/choose-account.ts";
import type { Usage } from "./stream/facts.ts";
import { endWith } from "./stream/judge-end.ts";
import { NO_USAGE, newRunState, type RunState } from "./stream/run-state.ts";
import { newSession } from "./stream/session-file.ts";

/** Failures that a refusal explains. */
const OF_PROGRAM: ReadonlySet<Failed["failure"]> = new Set(["exit", "signal"]);
/** How many runs in a row of one task are put off because a service does not answer. One that never answers must not keep it for ever. */
const OVERLOADS_MAX = 8;
/** The wait after the first of them (ms). It doubles each time. */
const OVERLOAD_MS = 15_000;
/** Such runs in this process, by task and submission. */
const overloads = new Map<string, number>();

/** Of each agent of this process, because an alert is raised once. */
const alerts = new Map<string, AgentAlerts>();

function alertsOf(agent: AgentSettings): AgentAlerts {
  const found = alerts.get(agent.name) ?? new AgentAlerts(agent);
  alerts.set(agent.name, found);
  return found;
}

type Run = (assignment: Assignment, metered: Metered) => Promise<AttemptOutcome>;

export async function runMetered(
  assignment: Assignment,
  agent: AgentSettings,
  run: Run,
): Promise<AttemptOutcome> {
  // With `meter: false` it only needs its addresses.
  if (!isMetered(agent))
    return runWith(await openMeter(assignment, agent, () => undefined), assignment, run);
  const budget = new RunBudget(assignment, agent);
  await budget.bookLeft();
  const refusal = budget.enter();
  if (refusal !== undefined) return refusal;
  const accounts = accountsOf(agent);
  const of = { task_id: assignment.task.id, agent: agent.name, kind: agent.kind };
  const session = newSession({ ...of, account: accounts[0] ?? "", cwd: workDirOf(assignment) });
  const { accounts: all } = assignment.settings;
  const { owner } = splitLease(assignment.lease);
  const entered = await enterAccount({ accounts, all, owner }, session, session);
  if (entered.gate === undefined) return entered.refusal;
  const { gate } = entered;
  try {
    return await new MeteredExec(assignment, withAccount(agent, gate.account, all), gate).run(
      budget,
      run,
    );
  } finally {
    await gate.leave();
  }
}

async function runWith(
  metered: Awaited<ReturnType<typeof openMeter>>,
  assignment: Assignment,
  run: Run,
): Promise<AttemptOutcome> {
  if ("refusal" in metered) return metered.refusal;
  try {
    return await run(assignment, metered);
  } finally {
    metered.close();
  }
}

class MeteredExec implements RunCosts {
  readonly state: RunState = newRunState();
  private reading: MeterReading | undefined;
  private readonly startedMs = performance.now();
  /** The phases of a node share a lease, and each is a run of its own for the costs. */
  private readonly sessionId = randomUUID();

  constructor(
    private readonly assignment: Assignment,
    private readonly agent: AgentSettings,
    private readonly gate: AccountGate,
  ) {}

  async run(budget: RunBudget, run: Run): Promise<AttemptOutcome> {
    const { assignment, gate } = this;
    const stop = StopSignal.after(assignment.stop);
    const metered = await openMeter(assignment, this.agent, () => ({
      costs: watch,
      gate: this.gate,
      onFacts() {},
    }));
    if ("refusal" in metered) return metered.refusal;
    this.reading = metered.reading;
    const watch = new CostWatch(assignment, {
      budget,
      costs: this,
      reading: metered.reading,
      owner: splitLease(assignment.lease).owner,
      sessionKey: assignment.lease,
      stop: (reason) => stop.stop(reason),
    });
    watch.start();
    let ended: AttemptOutcome;
    try {
      ended = await runWith(metered, { ...assignment, stop }, run);
    } finally {
      assignment.stop.onStop(undefined);
      watch.end();
    }
    this.tellOfGap(metered.reading);
    const isHalted = ended.kind === "released" && ended.message === "budget";
    const judged = isHalted && watch.halt !== undefined ? watch.halt : this.judge(ended);
    watch.close(this.book(judged));
    const verdict = await gate.noteEnd(this.state, { next: "outcome", outcome: judged });
    return verdict.next === "outcome" ? verdict.outcome : judged;
  }

  /** A program that the service has refused could not do its work, whatever its exit code says of that. */
  private judge(ended: AttemptOutcome): AttemptOutcome {
    const refused = this.reading?.refused;
    const { task, lease } = this.assignment;
    const key = `${task.id} ${submissionOf(lease)}`;
    const isStopped = ended.kind === "released" && ended.message === "quota";
    const isFailed = ended.kind === "failed" && OF_PROGRAM.has(ended.failure);
    if (refused === undefined || !(isStopped || isFailed)) {
      if (ended.kind === "completed") overloads.delete(key);
      return ended;
    }
    if (refused.fault === "limit") {
      endWith(this.state, refused);
      const { resetsAtMs, text } = refused;
      const delayMs = resetsAtMs === null ? null : Math.max(0, resetsAtMs - Date.now());
      return { kind: "deferred", message: `the account is at its limit: ${text}`, delayMs };
    }
    const count = overloads.get(key) ?? 0;
    if (refused.fault !== "overload" || count >= OVERLOADS_MAX) return ended;
    overloads.set(key, count + 1);
    const message = `the service does not answer: ${refused.text} (${count + 1} of ${OVERLOADS_MAX} runs in a row that count so)`;
    return { kind: "deferred", message, delayMs: OVERLOAD_MS * 2 ** count };
  }

  private tellOfGap(reading: MeterReading | undefined): void {
    const why =
      reading?.hasAsked === false
        ? "no request of it came through its meter, so it asks a service at another address, or none"
        : reading?.explainGap(NO_USAGE);
    const { stateDir, task } = this.assignment;
    if (why !== undefined) alertsOf(this.agent).noteUnmetered(stateDir, task.id, why);
  }

  /** @returns false when the record could not be written */
  private book({ kind }: AttemptOutcome): boolean {
    const record = this.costRecord(kind);
    if (!hasUsed(record)) return true;
    if (kind === "completed") this.assignment.booked?.push(record);
    return bookCost(this.assignment.stateDir, record);
  }

  bookedThen(): Usage {
    return this.used();
  }

  private used(): Usage {
    return this.reading?.used(this.assignment.settings.prices) ?? NO_USAGE;
  }

  costRecord(outcome: string): CostRecord {
    const { agent, assignment } = this;
    const used = this.used();
    return {
      at: Math.floor(Date.now() / 1000),
      task_id: assignment.task.id,
      run: basename(assignment.runDir),
      lease: assignment.lease,
      ...compact({ plan: planOf(assignment)?.name, group: assignment.task.group || undefined }),
      agent: agent.name,
      kind: agent.kind,
      account: this.gate.account,
      model: this.reading?.model ?? null,
      session_id: this.sessionId,
      input_tokens: used.inputTokens,
      cached_input_tokens: used.cachedInputTokens,
      output_tokens: used.outputTokens,
      cost_usd_micro: used.costUsdMicro,
      turns: 0,
      duration_ms: Math.round(performance.now() - this.startedMs),
      outcome,
    };
  }
}
