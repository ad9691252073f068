/** What the system says about its processes: the port with one implementation for `/proc` and one for `ps`. */

export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  /** 0 when the system does not report it. */
  session: number;
  /** 0 when the system does not report it. */
  threads: number;
  /** By `/proc`: clock ticks after boot. By `ps`: seconds since 1970. */
  startTicks: number;
}

export type Verdict = "alive" | "dead" | "unknown";

export interface ProcessSource {
  /** How long to wait after a look, in addition to the usual pause, so that looks do not take most of the time (ms). */
  readonly restMs: number;
  /** Identifies the current boot of the machine. @throws the system's error when it cannot be read now */
  bootId(): string;
  /** Names the space in which a pid means the same process, such as a pid namespace. @throws like `bootId` */
  pidSpace(): string;
  /** The start time of a live process (zombies are dead), or undefined. @throws the system's error when it cannot be read now */
  startOf(pid: number): number | undefined;
  /** Whether exactly this process still runs. Unknown when that cannot be read now. */
  judge(pid: number, startTicks: number): Verdict;
  /** @throws the system's error when the processes cannot be listed now */
  look(): ProcessLook;
  /**
   * Called for each program of an attempt, which leads its own group. Where the system hides variables, this writes them down.
   * @param sinceMs a time before it was started (epoch ms)
   * @returns a function to call when it has ended; it never throws
   */
  noteProgram(pid: number, variables: NodeJS.ProcessEnv, sinceMs: number): () => void;
}

/** One look at all processes. Details of a process are read later, when the caller asks for them. */
export interface ProcessLook {
  /** All processes except zombies; empty where the system lists none. */
  readonly rows: readonly ProcessRow[];
  /** The variables that a process was started with, each with a NUL after it; undefined when this user may not read them. */
  environ(pid: number): Buffer | undefined;
  /** Whether it is just starting, so that its variables do not say yet which attempt it belongs to. */
  isNewborn(row: ProcessRow): boolean;
  /** The name of its program; "" when it is gone. */
  nameOf(pid: number): string;
  /** The words of its command line, each with a NUL after it. */
  argsOf(pid: number): string | undefined;
  cwdOf(pid: number): string | undefined;
}
