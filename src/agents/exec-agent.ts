/** The kind of agent that is a program: a task's own `exec`, or the one that is configured. */
import { join } from "node:path";
import { type AttemptOutcome, outcomeOfExit } from "../core/outcome.ts";
import { writeAnew } from "../host/regular-file.ts";
import { Agent, type Assignment, timeoutOf } from "./agent.ts";
import { lastCheckText } from "./last-check-text.ts";
import type { Metered } from "./metered-run.ts";
import { lastWords, runProgram } from "./program.ts";
import { readReport } from "./report.ts";
import { emptyFolder } from "./run-folder.ts";

export class ExecAgent extends Agent {
  override run(assignment: Assignment): Promise<AttemptOutcome> {
    return this.settings.meter === undefined
      ? this.runProgram(assignment)
      : this.runMetered(assignment);
  }

  private async runMetered(assignment: Assignment): Promise<AttemptOutcome> {
    const { runMetered } = await import("./metered-exec.ts");
    return runMetered(assignment, this.settings, (one, metered) => this.runProgram(one, metered));
  }

  private async runProgram(assignment: Assignment, metered?: Metered): Promise<AttemptOutcome> {
    const { args = [], env, program = "" } = metered?.settings ?? this.settings;
    const { task, runDir, node } = assignment;
    const stdoutLog = join(runDir, "stdout.log");
    const stderrLog = join(runDir, "stderr.log");
    const end = await runProgram(assignment, {
      argv: task.exec ?? [program, ...args],
      stdoutLog,
      stderrLog,
      limitMs: timeoutOf(assignment, this.settings),
      moreEnvironment: () => ({
        ...env,
        ...(task.exec === undefined && node === undefined
          ? { MAILCHUTE_PACKET: writePacket(assignment) }
          : {}),
      }),
      changeEnvironment: metered?.enter,
    });
    if (end.outcome !== undefined) {
      if (end.isRoomShort === true) await emptyFolder(runDir);
      return end.outcome;
    }
    const report = readReport(join(runDir, "result.json"), stdoutLog, node?.stdoutFrom);
    const outcome = outcomeOfExit(end.exitCode, report);
    if (outcome.kind === "failed" && report.message === null)
      outcome.lastWords = lastWords(stderrLog);
    return outcome;
  }
}

/** The packet of a task that belongs to no node: only its own prompt. */
export function writePacket(assignment: Assignment): string {
  const { task, runDir } = assignment;
  const packet = join(runDir, "packet.md");
  const parts = [
    task.title === undefined ? "" : `# ${task.title}\n`,
    task.description ?? "",
    task.prompt ?? "",
    lastCheckText(assignment),
  ];
  const text = `${parts.filter((part) => part !== "").join("\n\n")}\n`;
  writeAnew(packet, text);
  assignment.packetBytes = Buffer.byteLength(text);
  return packet;
}
