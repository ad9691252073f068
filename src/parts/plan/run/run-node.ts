/**
 * Runs a node: its phases one after the other, each one call of the agent with its own packet, and then the verify
 * programs. Each finished phase is on disk before the next one begins, so that a crash costs at most one phase.
 */
import fs from "node:fs";
import { join } from "node:path";
import { type Assignment, stoppedOutcome, timeoutOf } from "../../../agents/agent.ts";
import { lastCheckText } from "../../../agents/last-check-text.ts";
import { makeRunDir } from "../../../agents/program.ts";
import { readResults, readTail } from "../../../agents/report.ts";
import type { Clock } from "../../../core/clock.ts";
import { type Envelope, mergeEnvelopes } from "../../../core/envelope.ts";
import { messageOf, systemCode } from "../../../core/errors.ts";
import { OUTPUT_KEYS } from "../../../core/kv.ts";
import type { ProcessingName } from "../../../core/names.ts";
import { runOf } from "../../../core/names.ts";
import { type AttemptOutcome, errorText } from "../../../core/outcome.ts";
import { type Phase, phasesOf, phaseToRepeat } from "../../../core/phases.ts";
import type { NodeBrief } from "../../../core/roadmap.ts";
import { isFunction } from "../../../core/settings.ts";
import { stateTree } from "../../../core/state-tree.ts";
import { openToAppend, statOf, writeAnew, writeNew } from "../../../host/regular-file.ts";
import { say } from "../../../host/say.ts";
import type { KvStore } from "../../../kv/store.ts";
import { keepLastCheck, runVerify } from "../../../worker/check.ts";
import type { AssignedAgent } from "../../../worker/runner.ts";
import { judgePhase, type PhaseVerdict, type Said } from "./judge-phase.ts";
import { cutBytes, fenced, flat } from "./markdown.ts";
import { renderPacket, roleOf } from "./packet.ts";
import { PhaseLog, type PhaseRecord } from "./phase-log.ts";
import { writeRunOutputs } from "./run-outputs.ts";
import { loadTemplate } from "./templates.ts";

export interface NodeRun extends AssignedAgent {
  brief: NodeBrief;
  name: ProcessingName;
  /** Monotonic ms. */
  startedMs: number;
  maxAttempts: number;
  evidenceDir: string;
  kv: KvStore;
  clock: Clock;
  /** True if a finished phase must survive a power cut. */
  isDurable: boolean;
  /** True while this worker holds the lease. After that it must not write anything. */
  isHeld: () => boolean;
  onPhase: (event: "phase_started" | "phase_finished", details: Record<string, unknown>) => void;
}

/** How far a run has come in its phases. */
interface Course {
  phases: readonly Phase[];
  log: PhaseLog;
  /** The phases that are finished. */
  done: PhaseRecord[];
}

/** How much of the end of a phase's output its artefact shows (bytes). The logs have the whole output. */
const ARTEFACT_OUTPUT_BYTES_MAX = 8 * 1024;

/** The folder of a node, and `evidence/`. */
const EVIDENCE_DEPTH = 2;

/** Runs the remaining phases of a node. If the outcome is completed or failed, its `output` is an Envelope. */
export async function runNode(run: NodeRun): Promise<AttemptOutcome> {
  const { assignment, agent, brief } = run;
  const { runDir } = assignment;
  const dir = join(run.evidenceDir, brief.id);
  const hindrance = makeRunDir(runDir) ?? makeRunDir(dir, EVIDENCE_DEPTH);
  if (hindrance !== undefined) return hindrance;
  // kv names `stdout.log` and `result.json` for every run, so both must always exist.
  fs.closeSync(openToAppend(join(runDir, "stdout.log")));
  // A run that was put back may have used the same folder. Its report must not count as the report of this run.
  keepFiles(runDir, "before");
  const phases = phasesOf(brief.type, assignment.task.exec !== undefined, agent.settings);
  const log = PhaseLog.open(dir, run.name.submission, run.isDurable);
  const { outcome, envelope } = await runPhases(run, { phases, log, done: [] });
  if (!run.isHeld()) return outcome;
  writeResult(join(runDir, "result.json"), envelope);
  await leaveOutputs(run, outcome, envelope);
  return outcome;
}

async function runPhases(run: NodeRun, course: Course): Promise<PhaseVerdict> {
  const { phases, log, done } = course;
  let verdict: PhaseVerdict | undefined;
  for (const phase of phases) {
    const before = log.finished(phase);
    if (before !== undefined) {
      done.push(before);
      continue;
    }
    const last = done.at(-1);
    if (verdict !== undefined && last !== undefined)
      keepFiles(run.assignment.runDir, last.phase.toLowerCase());
    verdict = await runPhase(run, course, phase);
    if (verdict.outcome.kind !== "completed" || verdict.envelope.status !== "success") {
      const { outcome } = verdict;
      const isBadWork = outcome.kind === "failed" && outcome.failure === "reported";
      if (isBadWork && run.isHeld()) log.reopenFrom(phaseToRepeat(phases, phase), phases);
      return verdict;
    }
    const record = log.finished(phase);
    if (record !== undefined) done.push(record);
  }
  const envelope = mergeEnvelopes(done.map((record) => record.envelope));
  const last = verdict?.outcome;
  const outcome: AttemptOutcome = {
    kind: "completed",
    output: envelope,
    verdict: last?.kind === "completed" ? last.verdict : "success",
    verdictReason: envelope.summary,
    exitCode: last?.kind === "completed" ? last.exitCode : null,
  };
  const fault = await verify(run);
  const repeated = phaseToRepeat(phases, undefined);
  // The session that is kept is that of the last phase.
  if (keepLastCheck(run.assignment, fault) && repeated === phases.at(-1))
    run.agent.keepSession(inPhase(run.assignment, repeated));
  if (fault === undefined) return reopenLast(run, course) ?? { outcome, envelope };
  if (fault.kind !== "failed") return judgePhase(fault, { by: "module" });
  if (run.isHeld()) log.reopenFrom(repeated, phases);
  const failed: Envelope = {
    ...envelope,
    status: "fail",
    summary: summaryOf(fault),
    // A failed run must not change the plan.
    next: { addNodes: [], setStatus: [] },
  };
  return { outcome: { ...fault, output: failed }, envelope: failed };
}

/** If a message came while the checks ran, the last phase runs once more in its session with the message. Then the checks run again. */
function reopenLast(run: NodeRun, { phases, log }: Course): PhaseVerdict | undefined {
  const { agent, assignment } = run;
  const phase = phases.at(-1);
  if (phase === undefined || !run.isHeld()) return undefined;
  const again = agent.reopen(inPhase(assignment, phase));
  if (again === undefined) return undefined;
  log.reopenFrom(phase, phases);
  return judgePhase(again, { by: "module" });
}

function inPhase(assignment: Assignment, phase: Phase): Assignment {
  const packetFile = join(assignment.runDir, "packet.md");
  return { ...assignment, node: { phase, packetFile, stdoutFrom: 0 } };
}

async function verify(run: NodeRun): Promise<AttemptOutcome | undefined> {
  const limitMs = timeoutOf(run.assignment, run.agent.settings);
  const nowMs = (): number => run.clock.monotonicMs();
  const fault = await runVerify(run.assignment, limitMs, run.startedMs, nowMs);
  if (fault === undefined || run.base === undefined) return fault;
  const { judgeByBase } = await import("../../../worker/base-check.ts");
  return judgeByBase(run, fault);
}

async function runPhase(run: NodeRun, course: Course, phase: Phase): Promise<PhaseVerdict> {
  const { assignment, agent, clock } = run;
  const { runDir, task } = assignment;
  const limitMs = timeoutOf(assignment, agent.settings);
  const timeLeftMs = limitMs - (clock.monotonicMs() - run.startedMs);
  const stopped =
    assignment.stop.reason ?? (limitMs > 0 && timeLeftMs <= 0 ? "timeout" : undefined);
  if (stopped !== undefined) return judgePhase(stoppedOutcome(stopped, limitMs), { by: "module" });

  const startedWallMs = clock.wallMs();
  const startedMs = clock.monotonicMs();
  const stdoutLog = join(runDir, "stdout.log");
  const stdoutFrom = statOf(stdoutLog)?.size ?? 0;
  const packetFile = join(runDir, "packet.md");
  const isModule = isFunction(agent.settings) && task.exec === undefined;
  const isRequired = !isModule && task.exec === undefined && agent.settings.result !== "optional";
  const check = lastCheckText(assignment);
  const packet = `${renderFor(run, course, phase, isRequired)}${check === "" ? "" : `\n${check}`}`;
  writeAnew(packetFile, packet);
  // Packets of earlier phases are kept, too, so their sizes add up.
  assignment.packetBytes = (assignment.packetBytes ?? 0) + Buffer.byteLength(packet);
  run.onPhase("phase_started", { phase });
  const outcome = await agent.run({
    ...assignment,
    node: { phase, packetFile, stdoutFrom },
    ...(limitMs > 0 ? { timeLeftMs } : {}),
  });
  const results = isModule ? [] : readResults(join(runDir, "result.json"), stdoutLog, stdoutFrom);
  const said: Said = isModule ? { by: "module" } : { by: "program", results, isRequired };
  const verdict = judgePhase(outcome, said);
  // The task was put back, or this worker lost the lease: the phase has not ended.
  if (verdict.outcome.kind === "released" || verdict.outcome.kind === "deferred" || !run.isHeld())
    return verdict;
  const record: PhaseRecord = {
    phase,
    status: statusOf(verdict),
    attempt: assignment.attempt,
    run: runOf(run.name),
    agent: agent.name,
    started_at: new Date(startedWallMs).toISOString(),
    finished_at: new Date(clock.wallMs()).toISOString(),
    duration_ms: Math.round(clock.monotonicMs() - startedMs),
    summary: verdict.envelope.summary,
    artefact: `${phase.toLowerCase()}.md`,
    envelope: verdict.envelope,
  };
  const output = readTail(stdoutLog, ARTEFACT_OUTPUT_BYTES_MAX, stdoutFrom);
  course.log.record(record, artefactOf(run, record, verdict.outcome, output));
  const { status, duration_ms } = record;
  run.onPhase("phase_finished", { phase, status, duration_ms });
  return verdict;
}

function renderFor(
  { assignment, brief, kv, maxAttempts }: NodeRun,
  { phases, done: finished }: Course,
  phase: Phase,
  isResultRequired: boolean,
): string {
  const { task, stateDir, runDir } = assignment;
  const template = loadTemplate(stateDir, roleOf(brief.type));
  const lastError = kv.get(brief.id, OUTPUT_KEYS.error)?.value;
  const packet = renderPacket(template.text, {
    brief,
    description: task.description ?? "",
    prompt: task.prompt ?? "",
    taskText: assignment.taskText,
    phase,
    phases,
    attempt: assignment.attempt,
    maxAttempts,
    lastError: typeof lastError === "string" ? lastError : "",
    finished,
    isResultRequired,
    stateDir,
    runDir,
    resultFile: join(runDir, "result.json"),
    lookUp: ({ nodeId, key }) => kv.get(nodeId, key),
  });
  return template.problem === undefined
    ? packet
    : `${packet}\n> Note: the user's own template was not used: ${flat(template.problem)}\n`;
}

function artefactOf(
  run: NodeRun,
  record: PhaseRecord,
  outcome: AttemptOutcome,
  output: string,
): string {
  const { envelope } = record;
  const lines = [
    `# ${record.phase}: ${flat(run.brief.title)}`,
    "",
    `- node: ${run.brief.id}`,
    `- outcome: ${record.status}${outcome.kind === "failed" ? ` (${outcome.failure})` : ""}`,
    `- agent: ${record.agent}, attempt ${record.attempt}`,
    `- time: ${record.started_at} to ${record.finished_at} (${record.duration_ms} ms)`,
    `- run: runs/${record.run} (packet.md, stdout.log, stderr.log, result.json)`,
  ];
  if (outcome.kind === "failed") lines.push("", "## Why it failed", "", fenced(outcome.message));
  if (envelope.summary !== "") lines.push("", "## Summary", "", fenced(envelope.summary));
  const { output: _output, ...said } = envelope;
  const json = cutBytes(JSON.stringify(said, null, 2), ARTEFACT_OUTPUT_BYTES_MAX);
  lines.push("", "## Result", "", fenced(json, "json"));
  if (output !== "") lines.push("", "## End of its output", "", fenced(output));
  return `${lines.join("\n")}\n`;
}

function statusOf({ outcome, envelope }: PhaseVerdict): PhaseRecord["status"] {
  if (outcome.kind !== "completed") return "failed";
  return envelope.status === "checkpoint" ? "checkpoint" : "finished";
}

/** Renames the files of the previous phase, because each phase writes the same names and must not read old files as new. */
function keepFiles(runDir: string, suffix: string): void {
  for (const file of ["result.json", "packet.md"]) {
    try {
      fs.renameSync(join(runDir, file), join(runDir, file.replace(".", `.${suffix}.`)));
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
    }
  }
}

/** Writes the result file, unless the program has written its own, which stays. */
function writeResult(path: string, envelope: Envelope): void {
  try {
    writeNew(path, `${JSON.stringify(envelope, null, 2)}\n`);
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
  }
}

/** Writes the values that later nodes read. A failure here does no harm: the supervisor writes them again when it applies the record. */
async function leaveOutputs(
  run: NodeRun,
  outcome: AttemptOutcome,
  envelope: Envelope,
): Promise<void> {
  const { brief, assignment, agent } = run;
  const record = {
    task_id: brief.id,
    status: outcome.kind === "completed" ? ("completed" as const) : ("failed" as const),
    lease: assignment.lease,
    attempts: assignment.attempt,
    agent_id: agent.name,
  };
  const { runs } = stateTree(assignment.stateDir);
  try {
    await writeRunOutputs(run.kv, record, envelope, summaryOf(outcome), runs);
  } catch (error) {
    say(`cannot write kv of ${brief.id}: ${messageOf(error)}`);
  }
}

/** The summary of an outcome, with the same words as in its record. */
function summaryOf(outcome: AttemptOutcome): string {
  if (outcome.kind === "completed") return outcome.verdictReason;
  if (outcome.kind === "released") return `it was interrupted (${outcome.message}) and put back`;
  return outcome.kind === "failed" ? errorText(outcome) : outcome.message;
}
