/** What the system says of its processes: the port that `/proc` and `ps` implement. */

export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  /** 0 when it is not told. */
  session: number;
  /** 0 when it is not told. */
  threads: number;
  /** By `/proc`: clock ticks after boot. By `ps`: seconds since 1970. */
  startTicks: number;
}

export type Verdict = "alive" | "dead" | "unknown";

export interface ProcessSource {
  /** How long to wait after a look beside the usual pause, so that looks do not take most of the time (ms). */
  readonly restMs: number;
  /** Names the time since the last start of the machine. @throws the system's error when it cannot be read now */
  bootId(): string;
  /** Names the space in which pids mean the same, such as a pid namespace. @throws like `bootId` */
  pidSpace(): string;
  /** The start time of a live process (zombies are dead), or undefined. @throws the system's error when it cannot be read now */
  startOf(pid: number): number | undefined;
  /** Whether exactly this process still runs. Unknown when that cannot be read now. */
  judge(pid: number, startTicks: number): Verdict;
  /** @throws the system's error when the processes cannot be listed now */
  look(): ProcessLook;
  /**
   * Called for each program of an attempt, which leads a group of its own. Where the system hides variables, they are written down.
   * @param sinceMs by the date, before it was started
   * @returns called when it has ended; never throws
   */
  noteProgram(pid: number, variables: NodeJS.ProcessEnv, sinceMs: number): () => void;
}

/** One look at all processes. What it says of a process may be read later, when it is asked for. */
export interface ProcessLook {
  /** All processes except zombies; empty where the system lists none. */
  readonly rows: readonly ProcessRow[];
  /** The variables that a process was started with, each with a NUL after it; undefined when they may not be seen. */
  environ(pid: number): Buffer | undefined;
  /** Whether it is just being started, so that its variables do not say yet to whom it belongs. */
  isNewborn(row: ProcessRow): boolean;
  /** The name of its program; "" when it is gone. */
  nameOf(pid: number): string;
  /** Its words, each with a NUL after it. */
  argsOf(pid: number): string | undefined;
  cwdOf(pid: number): string | undefined;
}
