/** Lists the kinds of agents besides `exec` and `module`. Workers use them, and so do commands that show runs. */
import type { AgentKindEntry, AgentPlace, CodingKind } from "../agents/coding-kind.ts";

const CODING_KINDS: readonly AgentKindEntry<CodingKind>[] = [
  { kind: "claude", load: async () => (await import("../parts/claude/kind.ts")).claude },
  { kind: "codex", load: async () => (await import("../parts/codex/kind.ts")).codex },
  { kind: "acp", load: async () => (await import("../parts/acp/kind.ts")).acp },
  { kind: "remote", load: async () => (await import("../parts/cluster/kind.ts")).remote },
];

export const agentKinds = (place: AgentPlace): readonly AgentKindEntry[] => [
  ...CODING_KINDS,
  { kind: "other", load: async () => (await import("../parts/plugins/load.ts")).kindsIn(place) },
];

/** Undefined for a kind that is not built in, or is no coding agent. */
export async function loadKind(kind: string): Promise<CodingKind | undefined> {
  return await CODING_KINDS.find((entry) => entry.kind === kind)?.load();
}
