/** Finds what dead or silent processes left behind in `processing/`. */
import { type ProcessingName, parseName, parsePlainClaim } from "../../core/names.ts";
import { isRunner, processOf, wasBeside } from "../../host/identity.ts";
import type { Claim } from "../claim/claim.ts";
import { pathIn } from "../files/trays.ts";
import { recordOfSubmission } from "../find/settled-record.ts";
import type { Recoverer, RecoverStep } from "./recoverer.ts";

/** A retry or quarantine takes microseconds: one that is this old (ms) was left behind. */
const UNFINISHED_MS = 1000;

/**
 * Finds the steps of recovery that these names in `processing/` need. Changes nothing.
 * @param isStart true at the start of the only supervisor: short-lived markers are then left over
 */
export function findRecoverable(
  r: Recoverer,
  files: readonly string[],
  leaseTtlMs: number,
  isStart = false,
): RecoverStep[] {
  const nowMs = r.trays.clock.monotonicMs();
  const steps: RecoverStep[] = [];
  // A file that a power cut brought back is there in the first round.
  const isFirst = r.observer.isNew;
  r.observer.beginRound(nowMs, new Set(files));
  r.skipped = undefined;
  const silentFor = (file: string, limitMs: number, owner?: string): boolean => {
    const facts = r.trays.storage.look(pathIn(r.trays.processing, file));
    if (facts === undefined) return false;
    const isOurs = owner === undefined || facts.uid === process.getuid?.();
    // If either time changes, the sum changes.
    const signOfLifeMs = facts.mtimeMs + (isOurs ? 0 : (r.beatOf?.(owner) ?? 0));
    return r.observer.silenceMs(file, signOfLifeMs, nowMs) >= limitMs;
  };
  const verdicts = new Map<string, ReturnType<Recoverer["judge"]>>();
  const held = countHeld(files);
  const isBeside = ({ token }: ProcessingName): boolean =>
    isRunner(token) && (wasBeside(token) || (held.get(processOf(token)) ?? 0) > 1);
  // One process holds many leases: it is judged once a round.
  const isDead = (owner: string): boolean => {
    const process = processOf(owner);
    const known = verdicts.get(process) ?? r.judge(owner);
    verdicts.set(process, known);
    return known === "dead";
  };
  for (const file of files) {
    const name = parseName(file);
    if (name === undefined) {
      const id = parsePlainClaim(file);
      if (id !== undefined && silentFor(file, leaseTtlMs)) steps.push({ kind: "foreign", id });
      continue;
    }
    const claim: Claim = { name, file, path: pathIn(r.trays.processing, file) };
    switch (name.stage) {
      case "ready":
      case "hold":
        if (isFirst && recordOfSubmission(r.trays, name) !== undefined)
          steps.push({ kind: "tidy", claim });
        break;
      case "w":
        if (isDead(name.token) || r.unfinished.has(file)) {
          const reason = r.lackedMemory?.(name.token) === true ? "memory" : "dead";
          steps.push({ kind: "reclaim", claim, reason, isBeside: isBeside(name) });
        } else if (silentFor(file, leaseTtlMs, name.token))
          steps.push({ kind: "reclaim", claim, reason: "silent", isBeside: isBeside(name) });
        break;
      case "ok":
      case "err":
        if (isDead(name.token) || r.unfinished.has(file) || silentFor(file, leaseTtlMs))
          steps.push({ kind: "publish", claim });
        break;
      case "bad":
      case "again":
        if (isStart || silentFor(file, UNFINISHED_MS)) steps.push({ kind: "finish", name });
        break;
    }
  }
  return steps;
}

/** Counts how many of these claims each process holds. */
function countHeld(files: readonly string[]): Map<string, number> {
  const held = new Map<string, number>();
  for (const file of files) {
    const name = parseName(file);
    if (name?.stage !== "w") continue;
    const process = processOf(name.token);
    held.set(process, (held.get(process) ?? 0) + 1);
  }
  return held;
}
