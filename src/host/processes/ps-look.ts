/** One look by `ps`. It runs `ps` for command lines at most twice, and only when they are needed. */
import { basename } from "node:path";
import type { ProcessLook, ProcessRow } from "./process-source.ts";
import { readNotes } from "./program-notes.ts";
import { parseCommands, variablesIn } from "./ps-text.ts";
import { runCommands } from "./run-ps.ts";

/** The prefix of each variable by which we recognize our processes. */
const OURS = " MAILCHUTE_";
const LEASE = /(?:^|\0)MAILCHUTE_LEASE=[^\0]*/;
/** A process older than this (s) that is still unclear is not waited for. Its age is known to the second. */
const NEWBORN_S_MAX = 2;
/** This process becomes the parent of processes whose parent has ended. */
const INIT = 1;

/**
 * @param run prints the commands of all processes, with or without their variables; tests replace it
 * @param notesOf returns the variables that workers have noted, by pid
 */
export function psLook(
  rows: readonly ProcessRow[],
  run = runCommands,
  notesOf = readNotes,
): ProcessLook {
  const texts = new Texts(rows, run, () => notesOf(rows));
  return {
    rows,
    environ(pid) {
      const variables = texts.variablesOf(pid);
      return variables === undefined ? undefined : Buffer.from(variables, "latin1");
    },
    isNewborn({ pid, parent, startTicks }) {
      const isYoung = Date.now() / 1000 - startTicks <= NEWBORN_S_MAX;
      return texts.isTorn(pid) || (isYoung && texts.isUnclear(pid, parent));
    },
    nameOf(pid) {
      const [program = "", first = ""] = texts.full.get(pid)?.split(" ", 2) ?? [];
      // The program of a script is its interpreter.
      return basename(first.startsWith("/") ? first : program);
    },
    argsOf(pid) {
      const text = texts.full.get(pid);
      return text === undefined ? undefined : wordsOf(text);
    },
    cwdOf: () => undefined,
  };
}

/** The texts that `ps` prints of the commands. Each text is read once, at its first use. */
class Texts {
  private readonly groupOf: ReadonlyMap<number, number>;
  private fullTexts: ReadonlyMap<number, string> | undefined;
  private plainTexts: ReadonlyMap<number, string> | undefined;
  private ofGroups: ReadonlyMap<number, string> | undefined;

  constructor(
    rows: readonly ProcessRow[],
    private readonly run: typeof runCommands,
    private readonly notes: () => Map<number, string>,
  ) {
    this.groupOf = new Map(rows.map(({ pid, group }) => [pid, group]));
  }

  /** The commands, with the variables of processes that this user may read. */
  get full(): ReadonlyMap<number, string> {
    this.fullTexts ??= parseCommands(this.run(true).text);
    return this.fullTexts;
  }

  /**
   * macOS hides the variables of its own programs, such as /bin/sh. For such a process this returns the noted variables of the program that
   * leads its group, or those of a process of its group that has variables of ours.
   */
  variablesOf(pid: number): string | undefined {
    const text = this.full.get(pid);
    if (text === undefined) return undefined;
    const own = text.includes(OURS) ? this.splitOff(pid, text) : wordsOf(text);
    const group = this.groupOf.get(pid) ?? 0;
    const hasOthers = own !== undefined && !own.includes("MAILCHUTE_") && this.groups.has(group);
    return hasOthers && this.isHidden(pid, text) ? this.groups.get(group) : own;
  }

  /** Whether the process has become another program since the look began. */
  isTorn(pid: number): boolean {
    const text = this.full.get(pid);
    return (
      text?.includes(OURS) === true && this.plain.has(pid) && this.splitOff(pid, text) === undefined
    );
  }

  /** Whether the process may turn out to be one of ours, although nothing shows it yet. */
  isUnclear(pid: number, parent: number): boolean {
    const text = this.full.get(pid);
    if (text === undefined) return false;
    // Its memory cannot be read: its program is being replaced.
    if (text.startsWith("(")) return true;
    // A copy of a worker that has ended, or an orphan whose variables are not set yet.
    const isOrphan = parent === INIT || !this.full.has(parent);
    return isOrphan && (text.startsWith(`${process.execPath} `) || this.isHidden(pid, text));
  }

  private get plain(): ReadonlyMap<number, string> {
    this.plainTexts ??= parseCommands(this.run(false).text);
    return this.plainTexts;
  }

  /** The variables of groups with processes that have ours, all with the same lease. A program of ours leads a group. */
  private get groups(): ReadonlyMap<number, string> {
    this.ofGroups ??= this.findGroups();
    return this.ofGroups;
  }

  private findGroups(): Map<number, string> {
    const found = this.notes();
    const doubtful = new Set<number>();
    for (const [pid, group] of this.groupOf) {
      const text = this.full.get(pid) ?? "";
      const variables = text.includes(OURS) ? this.splitOff(pid, text) : undefined;
      if (variables?.includes("MAILCHUTE_") !== true) continue;
      const known = found.get(group);
      if (known !== undefined && leaseIn(known) !== leaseIn(variables)) doubtful.add(group);
      found.set(group, variables);
    }
    for (const group of doubtful) found.delete(group);
    return found;
  }

  private splitOff(pid: number, text: string): string | undefined {
    const command = this.plain.get(pid);
    return command === undefined ? undefined : variablesIn(text, command);
  }

  private isHidden(pid: number, text: string): boolean {
    return this.plain.get(pid) === text;
  }
}

function wordsOf(text: string): string {
  return `${text.replaceAll(" ", "\0")}\0`;
}

function leaseIn(variables: string): string {
  return LEASE.exec(variables)?.[0] ?? "";
}
