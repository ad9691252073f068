/** Agents of kind `codex`. Each run is one `codex exec`, or one `codex app-server`, which takes messages while it runs. */
import os from "node:os";
import { join } from "node:path";
import type { CodingKind } from "../../agents/coding-kind.ts";
import type { AgentProgram } from "../../agents/stream/agent-program.ts";
import type { ReadLine, TurnFault } from "../../agents/stream/facts.ts";
import { readObjectLine } from "../../agents/stream/json-values.ts";
import { StreamAgent } from "../../agents/stream/stream-agent.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { newAppServerReader } from "./app-server.ts";
import { AppServerDialogue } from "./app-server-dialogue.ts";
import {
  appServerArgv,
  execArgv,
  isForeignVariable,
  isPromptOnStdin,
  withWritable,
  writableFolders,
} from "./command-line.ts";
import { readLastWords } from "./fault.ts";
import { findRollout } from "./find-rollout.ts";
import { newCodexExecReader } from "./read-exec-line.ts";
import { newCodexRolloutReader, readRolloutMessage } from "./read-rollout-line.ts";

export const codexProgram: AgentProgram = {
  newReader: newCodexExecReader,
  argv: ({ settings, packet, sessionId, through }) =>
    execArgv(settings, packet, sessionId, through),
  input: ({ packet }) =>
    isPromptOnStdin(packet) ? { kind: "text", text: packet } : { kind: "none" },
  isForeignVariable,
  faultOfLastWords,
  writableFolders: (settings) => writableFolders(settings.permissions, process.env),
  withWritable,
  keepsSessionId: true,
  record: { find: rolloutOf, readMessage: readRolloutMessage },
  sideStream: { find: rolloutOf, newReader: newCodexRolloutReader },
};

export const appServerProgram: AgentProgram = {
  ...codexProgram,
  newReader: newAppServerReader,
  argv: ({ settings, through }) => appServerArgv(settings, through),
  input: (start) => ({ kind: "dialogue", dialogue: new AppServerDialogue(start) }),
  knowsMessages: true,
};

export const codex: CodingKind = {
  make: (settings) =>
    new StreamAgent(settings, isAppServer(settings) ? appServerProgram : codexProgram),
  newReader: newCodexReader,
  takesMessages: isAppServer,
  byHand: {
    argv: ({ program = "codex" }, id) => [program, "resume", id],
    homeVariable: "CODEX_HOME",
  },
};

function isAppServer({ mode }: AgentSettings): boolean {
  return mode === "app-server";
}

/** Reads the stream of a run whose mode is not known. The first line shows the mode. */
function newCodexReader(): ReadLine {
  let read: ReadLine | undefined;
  return (line) => {
    read ??= readObjectLine(line)?.["type"] === undefined ? undefined : newCodexExecReader();
    read ??= readObjectLine(line) === undefined ? undefined : newAppServerReader();
    return read === undefined ? [{ fact: "unknown", type: "no JSON" }] : read(line);
  };
}

function rolloutOf(settings: AgentSettings, sessionId: string): string | undefined {
  return findRollout(codexHomeOf(settings), sessionId);
}

function codexHomeOf({ env }: AgentSettings): string {
  const own = env?.["CODEX_HOME"] ?? process.env["CODEX_HOME"];
  return own ?? join(env?.["HOME"] ?? process.env["HOME"] ?? os.homedir(), ".codex");
}

function faultOfLastWords(lastWords: string): TurnFault | undefined {
  for (const fact of readLastWords(lastWords))
    if (fact.fact === "turn_ended") return fact.end.fault;
  return undefined;
}
