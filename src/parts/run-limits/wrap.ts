/**
 * The command line that sets limits and then becomes the program. Pure. It uses /bin/sh and only its built-in commands, because
 * `prlimit` is not everywhere and cannot enter a control group.
 */

/** Limits that the system enforces. */
export interface SystemLimits {
  cpuS?: number;
  fileBytes?: number;
  /** The most processes and threads of the user. */
  userProcesses?: number;
  /** True: when memory is short, the kernel kills this program before mailchute. */
  isFirstToGo?: boolean;
  /** The file of a control group that takes a pid. */
  groupFile?: string;
}

/** Time from SIGXCPU to SIGKILL (s). */
const CPU_GRACE_S = 5;
/** `ulimit -f` counts these (bytes), as POSIX says. */
const BLOCK = 512;
const SHELL = "/bin/sh";
const SCORE = 500;

/** @param env the environment of the program. A shell may drop variables with unusual names, so `env` sets them again */
export function wrapProgram(
  argv: readonly string[],
  limits: SystemLimits,
  env: NodeJS.ProcessEnv,
): string[] {
  const lines = linesOf(limits);
  if (lines.length === 0) return [...argv];
  const odd = Object.entries(env).filter(
    ([name, value]) => value !== undefined && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name),
  );
  const program =
    odd.length === 0 ? argv : ["env", ...odd.map(([name, value]) => `${name}=${value}`), ...argv];
  return [SHELL, "-c", [...lines, 'exec "$@"'].join("\n"), SHELL, ...program];
}

/** A tighter limit that is in force stays, because a shell cannot raise it. The shell's message about that is dropped. */
function linesOf(limits: SystemLimits): string[] {
  const { cpuS, fileBytes, userProcesses: processes, isFirstToGo, groupFile } = limits;
  const lines: string[] = [];
  if (groupFile !== undefined) lines.push(`echo $$ >${quote(groupFile)} || exit 75`);
  if (isFirstToGo === true) lines.push(`{ echo ${SCORE} >/proc/self/oom_score_adj; } 2>/dev/null`);
  if (cpuS !== undefined)
    lines.push(`{ ulimit -S -t ${cpuS}; ulimit -H -t ${cpuS + CPU_GRACE_S}; } 2>/dev/null`);
  if (fileBytes !== undefined)
    lines.push(`{ ulimit -f ${Math.ceil(fileBytes / BLOCK)}; } 2>/dev/null`);
  // bash and the shell of macOS say -u, dash says -p.
  if (processes !== undefined)
    lines.push(`{ ulimit -u ${processes} || ulimit -p ${processes}; } 2>/dev/null`);
  return lines;
}

function quote(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
