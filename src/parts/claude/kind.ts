/** Agents of kind `claude`. Each run is one `claude -p`, which takes messages on its standard input. */
import type { CodingKind } from "../../agents/coding-kind.ts";
import type { AgentProgram } from "../../agents/stream/agent-program.ts";
import { StreamAgent } from "../../agents/stream/stream-agent.ts";
import { claudeArgv, isForeignVariable } from "./command-line.ts";
import { newClaudeDialogue } from "./dialogue.ts";
import { faultOfLastWords } from "./fault.ts";
import { newClaudeReader } from "./read-line.ts";
import { transcript } from "./transcript.ts";

export const claudeProgram: AgentProgram = {
  newReader: newClaudeReader,
  argv: ({ settings, sessionId }) => claudeArgv(settings, sessionId),
  input: () => ({ kind: "dialogue", dialogue: newClaudeDialogue() }),
  isForeignVariable,
  faultOfLastWords,
  record: transcript,
  // It has no sandbox: it could write anywhere, and `doctor` says so.
  writableFolders: () => [],
};

export const claude: CodingKind = {
  make: (settings) => new StreamAgent(settings, claudeProgram),
  newReader: () => claudeProgram.newReader(),
  takesMessages: () => true,
  byHand: {
    argv: ({ program = "claude" }, id) => [program, "--resume", id],
    homeVariable: "CLAUDE_CONFIG_DIR",
  },
};
