/** What the tree of a task knows of its run at another machine. Pure. */
import type { RunNews } from "./messages.ts";

export interface Begun {
  machine: string;
  /** When the run began (epoch ms, by our clock); null while the task waits there, and when its machine does not say it. */
  beganMs: number | null;
  run: RunNews | undefined;
}

/** A beginning that has moved by less is the same, because the delay of the network varies (ms). */
const SAME_MS = 5000;

/** @param run the report of the machine; undefined when it only says that it has the task. @param wallMs epoch ms */
export function begunOf(
  before: Begun | undefined,
  machine: string,
  run: RunNews | undefined,
  wallMs: number,
): Begun {
  const known = before?.machine === machine ? before : undefined;
  if (run === undefined) return known ?? { machine, beganMs: null, run };
  const saidMs = run.ran_ms === null ? null : wallMs - run.ran_ms;
  const knownMs = known?.beganMs ?? null;
  const isSame = knownMs !== null && saidMs !== null && Math.abs(knownMs - saidMs) < SAME_MS;
  return { machine, beganMs: isSame ? knownMs : saidMs, run };
}
