/** Opens a descriptor of this process a second time, so that its flags do not change for other processes that have it open. */
import fs from "node:fs";
import { hostKind } from "./host-kind.ts";

/** @returns a descriptor to write that never waits; undefined where the system has none */
export function openAnew(fd: number): number | undefined {
  if (hostKind() !== "proc") return undefined;
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = fs.constants;
  try {
    return fs.openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return undefined;
  }
}
