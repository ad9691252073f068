/**
 * Finds the run in which the server was started. A program may keep the variables of its run from its servers, as codex does: they are
 * those of a parent process then. It guards against mistakes: a process can leave its parents.
 */
import fs from "node:fs";
import { DROP_VARIABLE } from "../../host/process-tree.ts";

const PARENTS_MAX = 32;

/** The variables that make a command one of the run around it; none outside of runs. */
export function variablesOfRun(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if ((env[DROP_VARIABLE] ?? "") !== "") return {};
  let pid = process.ppid;
  for (let n = 0; n < PARENTS_MAX && pid > 1; n++) {
    const found = readVariables(pid);
    if ((found[DROP_VARIABLE] ?? "") !== "") return found;
    pid = parentOf(pid);
  }
  return {};
}

/** Those of mailchute. None when the process has gone, or is another user's. */
function readVariables(pid: number): NodeJS.ProcessEnv {
  const entries = readProc(pid, "environ")
    .split("\0")
    .filter((entry) => entry.startsWith("MAILCHUTE_"))
    .map((entry) => [entry.split("=", 1)[0] ?? "", entry.slice(entry.indexOf("=") + 1)] as const);
  return Object.fromEntries(entries);
}

/** 0: not known. */
function parentOf(pid: number): number {
  const stat = readProc(pid, "stat");
  // The name before it may hold spaces and brackets.
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] ?? 0);
}

function readProc(pid: number, name: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}
