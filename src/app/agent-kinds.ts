/** Lists the kinds of agents besides `exec` and `module`. Workers use them, and commands that show runs. */
import type { AgentKindEntry } from "../agents/registry.ts";
import type { ReadLine } from "../agents/stream/facts.ts";
import { claude } from "../parts/claude/kind.ts";
import { codex } from "../parts/codex/kind.ts";

export const AGENT_KINDS: readonly AgentKindEntry[] = [claude, codex];

/** Makes a reader for the output stream of this kind of agent; undefined for a kind that is not built in. */
export function newReaderOf(kind: string): ReadLine | undefined {
  return AGENT_KINDS.find((entry) => entry.kind === kind)?.newReader?.();
}

/** Whether a running agent of this kind can receive messages. */
export function takesMessages(kind: string): boolean {
  return AGENT_KINDS.find((entry) => entry.kind === kind)?.takesMessages === true;
}
