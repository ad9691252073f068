/** Agents of kind `acp`: any program that speaks the Agent Client Protocol on its standard input and output. */
import { basename } from "node:path";
import type { Assignment } from "../../agents/agent.ts";
import type { CodingKind } from "../../agents/coding-kind.ts";
import type { AgentProgram } from "../../agents/stream/agent-program.ts";
import { StreamAgent } from "../../agents/stream/stream-agent.ts";
import { explainUnjudged } from "../../core/matching.ts";
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import { AcpDialogue } from "./dialogue.ts";
import { faultOfWords } from "./fault.ts";
import { newAcpReader } from "./read-line.ts";

export const acpProgram: AgentProgram = {
  newReader: newAcpReader,
  argv: ({ settings }) => [...(settings.command ?? [])],
  input: (start) => ({ kind: "dialogue", dialogue: new AcpDialogue(start) }),
  // The marks that other agents leave for the programs of their sessions.
  isForeignVariable: (name) =>
    /^(?:CLAUDECODE$|CLAUDE_CODE_|CODEX_(?:CI|SANDBOX|SESSION|THREAD)|CURSOR_(?:AGENT|TRACE_ID)$|GEMINI_CLI$|AI_AGENT$)/.test(
      name,
    ),
  faultOfLastWords: faultOfWords,
  // It has no sandbox that we know of.
  writableFolders: () => [],
  keepsSessionId: true,
  isSilentAtLimit: true,
};

class AcpAgent extends StreamAgent {
  /** Also for tasks that were submitted before the agent was of this kind, and for nodes of the plan. */
  override async run(assignment: Assignment): Promise<AttemptOutcome> {
    const why = explainUnjudged(assignment.task, this.settings);
    if (why !== undefined) return failed("config", "ErrInvalidConfig", why, { canRetry: false });
    return await super.run(assignment);
  }
}

export const acp: CodingKind = {
  make: (settings) => new AcpAgent(settings, acpProgram),
  newReader: newAcpReader,
  takesMessages: () => true,
  byHand: {
    argv: ({ command: [program = ""] = [] }, id) =>
      basename(program) === "opencode" ? [program, "--session", id] : undefined,
  },
};
