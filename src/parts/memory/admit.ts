/** Decides whether a run has room in memory, and which run makes room for the others. Pure. */
import { bytesText } from "../../core/bytes-text.ts";

/** Runs that need less than this are neither counted nor held back. */
export const LIGHT_BYTES = 64 * 1024 * 1024;
/** Stalls of more than this part of the last ten seconds are pressure (%, `some avg10` of the kernel). */
const PRESSURE_MAX = 10;
/** On a small machine less must stay free: this part of its memory. */
const FREE_PART_MAX = 1 / 16;
/** An agent that has waited this long comes before all others that need memory (ms). */
const PATIENCE_MS = 30_000;

/** What the programs of a run have now. */
export interface RunMemory {
  id: string;
  lease: string;
  bytes: number;
  /** When its program started: larger is later. */
  born: number;
}

export interface MemoryLook {
  /** What programs can still get without swap (bytes). */
  freeBytes: number;
  /** All memory, or what our control group may have (bytes). */
  allBytes: number;
  /** The runs of this pool. */
  runs: readonly RunMemory[];
  /** For how much of the last ten seconds some process waited for memory (%). 0 where the kernel does not say it. */
  pressure: number;
}

/** A look at the memory of the machine; undefined when it cannot be known. */
export type LookAtMemory = () => MemoryLook | undefined;

/** Moves the usual peak of an agent up at once, and down slowly. */
export function learnPeak(usual: number | undefined, peak: number): number {
  return usual === undefined || peak > usual ? peak : usual + (peak - usual) / 8;
}

/** How much must stay free (bytes). @param wanted setting `free_memory_min` */
export function leastFree({ allBytes }: MemoryLook, wanted: number): number {
  return Math.min(wanted, Math.floor(allBytes * FREE_PART_MAX));
}

/**
 * Why a run that needs this much does not start now; undefined when it may.
 * @param growth what the running runs will take beyond what they have now (bytes)
 * @param wanted setting `free_memory_min` (bytes)
 */
export function whyNoRoom(
  need: number,
  look: MemoryLook,
  growth: number,
  wanted: number,
): string | undefined {
  const { freeBytes, pressure } = look;
  if (pressure > PRESSURE_MAX)
    return `memory is short: processes have waited for it ${Math.round(pressure)} % of the last 10 s`;
  if (freeBytes - growth - need >= leastFree(look, wanted)) return undefined;
  const others = growth > 0 ? `, and running tasks may take ${bytesText(growth)} of that` : "";
  return `its runs take ${bytesText(need)} of memory; ${bytesText(freeBytes)} are free${others}`;
}

/**
 * The runs that are put back when memory gets short, before the kernel ends one: first those that go on in their session, of them the
 * youngest, then the youngest others. One run stays.
 * @param missing how much they must free (bytes)
 * @param resumes whether a run goes on where it was
 */
export function runsToPutBack(
  runs: readonly RunMemory[],
  missing: number,
  resumes: (run: RunMemory) => boolean,
): RunMemory[] {
  const heavy = runs
    .filter(({ bytes }) => bytes >= LIGHT_BYTES)
    .toSorted((a, b) => Number(resumes(b)) - Number(resumes(a)) || b.born - a.born);
  const chosen: RunMemory[] = [];
  for (let left = missing; left > 0 && chosen.length < heavy.length - 1; ) {
    const run = heavy[chosen.length] as RunMemory;
    chosen.push(run);
    left -= run.bytes;
  }
  return chosen;
}

/** An agent whose tasks were held back. */
export interface Refused {
  sinceMs: number;
  /** When one of its tasks was last about to start. */
  askedMs: number;
  why: string;
}

/** The agent for whose room all others wait, so that small runs do not take it again and again. */
export function firstOf(refused: ReadonlyMap<string, Refused>, nowMs: number): string | undefined {
  const late = [...refused].filter(([, { sinceMs }]) => nowMs - sinceMs > PATIENCE_MS);
  return late.toSorted(([, a], [, b]) => a.sinceMs - b.sinceMs)[0]?.[0];
}
