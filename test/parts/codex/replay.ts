/** Plays lines of Codex through its readers, and says what the run comes to. */
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import type { Fact } from "../../../src/agents/stream/facts.ts";
import { judgeRun, type RunFacts } from "../../../src/agents/stream/run-outcome.ts";
import { applyFact, newRunState, type RunState } from "../../../src/agents/stream/run-state.ts";
import type { AttemptOutcome } from "../../../src/core/outcome.ts";
import { AppServerReader } from "../../../src/parts/codex/app-server.ts";
import { readLastWords } from "../../../src/parts/codex/fault.ts";
import { newCodexExecReader } from "../../../src/parts/codex/read-exec-line.ts";
import { newCodexRolloutReader } from "../../../src/parts/codex/read-rollout-line.ts";

export const NOW_MS = Date.parse("2026-11-24T22:02:24Z");

/** The names of all samples of a kind, without this beginning. */
export function sampleNames(begin: RegExp): string[] {
  return fs
    .readdirSync(fileURLToPath(new URL("samples", import.meta.url)))
    .filter((name) => begin.test(name))
    .map((name) => name.replace(begin, "").replace(/\.(?:jsonl|stderr)$/, ""))
    .sort();
}

export function sampleText(name: string): string {
  return fs.readFileSync(fileURLToPath(new URL(`samples/${name}`, import.meta.url)), "utf8");
}

export function sampleLines(name: string): string[] {
  return sampleText(name)
    .split("\n")
    .filter((line) => line !== "");
}

export interface Play {
  /** Lines of `codex exec --json`. */
  exec?: readonly string[];
  appServer?: readonly string[];
  rollout?: readonly string[];
  /** The end of stderr. */
  stderr?: string;
  exitCode?: number | null;
  signal?: string;
  run?: Partial<RunFacts>;
}

export interface Played {
  facts: Fact[];
  state: RunState;
  /** `fresh_session`: it is run once more. */
  outcome: AttemptOutcome | "fresh_session";
}

export function play({ exec = [], appServer = [], rollout = [], ...how }: Play): Played {
  const readExec = newCodexExecReader();
  const server = new AppServerReader();
  const readRollout = newCodexRolloutReader();
  const facts = [
    ...exec.flatMap(readExec),
    ...appServer.flatMap((line) => server.take(line).facts),
    ...rollout.flatMap(readRollout),
  ];
  const state = newRunState();
  for (const fact of facts) applyFact(state, fact);
  if (state.turn === "none")
    for (const fact of readLastWords(how.stderr ?? "")) applyFact(state, fact);
  const exitCode = how.exitCode === undefined ? 0 : how.exitCode;
  const verdict = judgeRun(
    state,
    { exitCode, signal: how.signal ?? null, lastWords: "" },
    { isResumed: false, wasRefused: false, nowMs: NOW_MS, ...how.run },
  );
  const outcome = verdict.next === "outcome" ? verdict.outcome : verdict.next;
  return { facts, state, outcome };
}

/** The kind of an outcome; of a failed one, the kind of its failure. */
export function kindOf({ outcome }: Played): string {
  if (outcome === "fresh_session") return outcome;
  return outcome.kind === "failed" ? outcome.failure : outcome.kind;
}

export function factsOf<K extends Fact["fact"]>(
  { facts }: Played,
  kind: K,
): Extract<Fact, { fact: K }>[] {
  return facts.filter((each): each is Extract<Fact, { fact: K }> => each.fact === kind);
}
