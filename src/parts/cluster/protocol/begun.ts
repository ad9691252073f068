/** What the tree that has a task knows of its run at another machine. Pure. */
import type { RunNews } from "./messages.ts";

export interface Begun {
  machine: string;
  /** Epoch ms, by our clock; null while it waits there, and when its machine does not say it. */
  beganMs: number | null;
  run: RunNews | undefined;
}

/** The network is not always equally fast: a beginning that has moved by less is the same (ms). */
const SAME_MS = 5000;

/** @param run what the machine says; undefined: only that it has the task @param wallMs epoch ms */
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
