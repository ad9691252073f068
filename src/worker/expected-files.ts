/** Checks the files that a run must leave: each must be there, and not be older than the task's first run. */
import type fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Assignment, workDirOf } from "../agents/agent.ts";
import { makeRunDir } from "../agents/program.ts";
import { type AttemptOutcome, type Failed, failed } from "../core/outcome.ts";
import { type AgentSettings, CODING_AGENTS } from "../core/settings.ts";
import { listDir } from "../host/list-dir.ts";
import { statOf, tryStatOf } from "../host/regular-file.ts";

/**
 * Call it before a run. Makes the folder of the run when files are expected: its birth shows which files are older. A function
 * would make no folder.
 * @returns the outcome of the attempt when the folder cannot be made
 */
export function markStart({ task, runDir }: Assignment): AttemptOutcome | undefined {
  return task.expect_files === undefined ? undefined : makeRunDir(runDir);
}

/** @returns why the attempt failed, or undefined when all files are there */
export function checkExpectedFiles(assignment: Assignment): Failed | undefined {
  const { task } = assignment;
  const cwd = workDirOf(assignment);
  const faults: string[] = [];
  let startMs: number | undefined;
  for (const name of task.expect_files ?? []) {
    const stats = tryStatOf(resolve(cwd, name));
    startMs ??= firstRunMs(assignment);
    if (stats === undefined) faults.push(`${name} is not there`);
    else if (isOlder(stats, startMs)) faults.push(`${name} is older than the task's first run`);
  }
  if (faults.length === 0) return undefined;
  return failed("verify", "ErrVerify", `expect_files: ${faults.join("; ")}`);
}

/** A coding agent that says nothing and leaves no file where some are expected was not allowed to work. */
export function judgeIdle(
  { kind }: AgentSettings,
  assignment: Assignment,
  output: unknown,
): Failed | undefined {
  const isCoding = CODING_AGENTS.some((coding) => coding === kind);
  const missing = isCoding && output === "" ? checkExpectedFiles(assignment) : undefined;
  if (missing === undefined) return undefined;
  const message = `it said nothing, and ${missing.message}; see permissions of the agent in config.yaml`;
  return failed("permission", "ErrPermission", message, { canRetry: false });
}

/** When the first run of this submission made its folder, by the clock of the file system (epoch ms). */
function firstRunMs({ task, lease, runDir }: Assignment): number {
  const day = dirname(runDir);
  const prefix = `${task.id}@${lease.slice(0, lease.indexOf("."))}.`;
  const runs = listDir(day).filter((name) => name.startsWith(prefix));
  // All runs of a line of a batch have the same folder, and it is not named by an id.
  const paths = runs.length === 0 ? [runDir] : runs.map((name) => join(day, name));
  const births = paths.map((path) => statOf(path)?.birthtimeMs);
  return Math.min(...births.filter((ms) => ms !== undefined));
}

/** Some file systems and tools keep whole seconds only. A folder always passes: its contents may be new when the folder is not. */
function isOlder(stats: fs.Stats, startMs: number): boolean {
  if (stats.isDirectory()) return false;
  const writtenMs = Math.max(stats.mtimeMs, stats.birthtimeMs);
  return writtenMs < (writtenMs % 1000 === 0 ? Math.floor(startMs / 1000) * 1000 : startMs);
}
