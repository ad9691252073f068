/** Plays a stream through the reader, as a run would, and says what the run comes to. */
import { readFileSync } from "node:fs";
import type { Fact } from "../../../src/agents/stream/facts.ts";
import { judgeRun, type RunFacts } from "../../../src/agents/stream/run-outcome.ts";
import { applyFact, isRunOver, newRunState } from "../../../src/agents/stream/run-state.ts";
import { faultOfLastWords } from "../../../src/parts/claude/fault.ts";
import { newClaudeReader } from "../../../src/parts/claude/read-line.ts";

export const NOW_MS = 1_795_478_331_000;

export interface Played {
  facts: Fact[];
  isOver: boolean;
  state: ReturnType<typeof newRunState>;
  /** As "completed", "deferred 60000", "failed auth", "failed auth, for good", "fresh session". */
  outcome: string;
}

interface Ending extends Partial<RunFacts> {
  exitCode?: number;
  signal?: string;
  lastWords?: string;
  /** Uuids of the messages that we wrote. */
  sent?: readonly string[];
}

export function play(lines: readonly string[], ending: Ending = {}): Played {
  const { exitCode = 0, signal = null, lastWords = "", sent = [], ...more } = ending;
  const read = newClaudeReader();
  const state = newRunState();
  for (const uuid of sent) state.unanswered.add(uuid);
  const facts = lines.flatMap((line) => read(line));
  for (const fact of facts) applyFact(state, fact);
  const exit = { exitCode: signal === null ? exitCode : null, signal, lastWords };
  const run = { isResumed: false, wasRefused: false, nowMs: NOW_MS, faultOfLastWords, ...more };
  const verdict = judgeRun(state, exit, run);
  return { facts, isOver: isRunOver(state), state, outcome: nameOf(verdict) };
}

function nameOf(verdict: ReturnType<typeof judgeRun>): string {
  if (verdict.next === "fresh_session") return "fresh session";
  const { outcome } = verdict;
  if (outcome.kind === "deferred") return `deferred ${outcome.delayMs}`;
  if (outcome.kind !== "failed") return outcome.kind;
  return `failed ${outcome.failure}${outcome.canRetry ? "" : ", for good"}`;
}

export function sample(name: string): string[] {
  return readFileSync(new URL(`samples/${name}.jsonl`, import.meta.url), "utf8")
    .trim()
    .split("\n");
}
