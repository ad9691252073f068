/**
 * Finds the run in which the server was started. Some programs, such as codex, do not pass the variables of their run to their servers.
 * Then a parent process has them. This guards only against mistakes: a process can leave its parents.
 */
import { DROP_VARIABLE } from "../../host/process-tree.ts";
import type { ProcessLook } from "../../host/processes/process-source.ts";
import { processes } from "../../host/processes/processes.ts";

const PARENTS_MAX = 32;

/** The variables that assign a command to the run around the server. Empty outside of runs, and if the server has them already. */
export function variablesOfRun(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if ((env[DROP_VARIABLE] ?? "") !== "") return {};
  try {
    return variablesOfParents(processes().look());
  } catch {
    // The system has no free file descriptor to look with.
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

/** The variables of mailchute in a process. Empty when the process has gone, or belongs to another user. */
function variablesOf(look: ProcessLook, pid: number): NodeJS.ProcessEnv {
  const entries = (look.environ(pid)?.toString() ?? "")
    .split("\0")
    .filter((entry) => entry.startsWith("MAILCHUTE_"))
    .map((entry) => [entry.split("=", 1)[0] ?? "", entry.slice(entry.indexOf("=") + 1)] as const);
  return Object.fromEntries(entries);
}
