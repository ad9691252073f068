/** The kinds of agents beside `exec` and `module`, for workers and for those who look. */
import type { AgentKindEntry } from "../agents/registry.ts";
import type { ReadLine } from "../agents/stream/facts.ts";
import { claude } from "../parts/claude/kind.ts";
import { codex } from "../parts/codex/kind.ts";

export const AGENT_KINDS: readonly AgentKindEntry[] = [claude, codex];

/** Reads the stream of a run of this kind; undefined when the kind is not built in. */
export function newReaderOf(kind: string): ReadLine | undefined {
  return AGENT_KINDS.find((entry) => entry.kind === kind)?.newReader?.();
}

/** Whether a running agent of this kind is given messages. */
export function takesMessages(kind: string): boolean {
  return AGENT_KINDS.find((entry) => entry.kind === kind)?.takesMessages === true;
}
