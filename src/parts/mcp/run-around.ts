/**
 * Finds the run in which the server was started. A program may keep the variables of its run from its servers, as codex does: they are
 * those of a parent process then. It guards against mistakes: a process can leave its parents.
 */
import { DROP_VARIABLE } from "../../host/process-tree.ts";
import type { ProcessLook } from "../../host/processes/process-source.ts";
import { processes } from "../../host/processes/processes.ts";

const PARENTS_MAX = 32;

/** The variables that make a command one of the run around it; none outside of runs. */
export function variablesOfRun(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if ((env[DROP_VARIABLE] ?? "") !== "") return {};
  try {
    return variablesOfParents(processes().look());
  } catch {
    // The system has no descriptor left to look.
    return {};
  }
}

function variablesOfParents(look: ProcessLook): NodeJS.ProcessEnv {
  const parents = new Map(look.rows.map(({ pid, parent }) => [pid, parent]));
  let pid = process.ppid;
  for (let n = 0; n < PARENTS_MAX && pid > 1; n++) {
    const found = variablesOf(look, pid);
    if ((found[DROP_VARIABLE] ?? "") !== "") return found;
    pid = parents.get(pid) ?? 0;
  }
  return {};
}

/** Those of mailchute. None when the process has gone, or is another user's. */
function variablesOf(look: ProcessLook, pid: number): NodeJS.ProcessEnv {
  const entries = (look.environ(pid)?.toString() ?? "")
    .split("\0")
    .filter((entry) => entry.startsWith("MAILCHUTE_"))
    .map((entry) => [entry.split("=", 1)[0] ?? "", entry.slice(entry.indexOf("=") + 1)] as const);
  return Object.fromEntries(entries);
}
