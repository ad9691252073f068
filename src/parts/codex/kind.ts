/** Agents of kind `codex`: one `codex exec` for each run. */
import os from "node:os";
import { join } from "node:path";
import type { CodingKind } from "../../agents/coding-kind.ts";
import type { AgentProgram } from "../../agents/stream/agent-program.ts";
import type { TurnFault } from "../../agents/stream/facts.ts";
import { StreamAgent } from "../../agents/stream/stream-agent.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { execArgv, isForeignVariable, isPromptOnStdin, writableFolders } from "./command-line.ts";
import { readLastWords } from "./fault.ts";
import { findRollout } from "./find-rollout.ts";
import { newCodexExecReader } from "./read-exec-line.ts";
import { newCodexRolloutReader } from "./read-rollout-line.ts";

export const codexProgram: AgentProgram = {
  newReader: newCodexExecReader,
  argv: execArgv,
  input: (packet) => (isPromptOnStdin(packet) ? { kind: "text", text: packet } : { kind: "none" }),
  isForeignVariable,
  faultOfLastWords,
  writableFolders: (settings) => writableFolders(settings.permissions, process.env),
  keepsSessionId: true,
  sideStream: {
    find: (settings, sessionId) => findRollout(codexHomeOf(settings), sessionId),
    newReader: newCodexRolloutReader,
  },
};

export const codex: CodingKind = {
  make: (settings) => new StreamAgent(settings, codexProgram),
  newReader: () => codexProgram.newReader(),
  takesMessages: false,
};

function codexHomeOf({ env }: AgentSettings): string {
  const home = env?.["HOME"] ?? process.env["HOME"] ?? os.homedir();
  return env?.["CODEX_HOME"] ?? join(home, ".codex");
}

function faultOfLastWords(lastWords: string): TurnFault | undefined {
  for (const fact of readLastWords(lastWords))
    if (fact.fact === "turn_ended") return fact.end.fault;
  return undefined;
}
