/** Sends free text to a configured agent, which may answer with slash commands only. Runs none of these commands. */

import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { StopSignal } from "../../agents/agent.ts";
import { ExecAgent } from "../../agents/exec-agent.ts";
import { renderStatus } from "../../cli/commands/status.ts";
import type { Context } from "../../cli/shell/command-spec.ts";
import { treeOf } from "../../cli/shell/options.ts";
import { messageOf } from "../../core/errors.ts";
import { errorText } from "../../core/outcome.ts";
import type { AgentSettings, Settings } from "../../core/settings.ts";
import { takeSnapshot } from "../../view/snapshot-reader.ts";
import { type Action, parseSlash, SLASH_COMMANDS } from "./slash-commands.ts";

/** Time limit for agents that set none (ms). */
const TIMEOUT_MS = 120_000;
/** How many commands an agent may propose. One that proposes more has misunderstood the request. */
const PROPOSALS_MAX = 20;
const REMARKS_MAX = 20;

export interface Proposal {
  /** Well-formed commands, each as text and as an action. */
  commands: { line: string; action: Action }[];
  /** Lines that begin with a slash but are not accepted, with the reason. */
  refused: { line: string; reason: string }[];
  /** Other lines: they are shown to the person and never run. */
  remarks: string[];
}

/** The agent for free text: the one that is named, else the default agent, else the first one. All must be of kind exec. */
export function findChatAgent(
  agents: readonly AgentSettings[],
  wanted: string | undefined,
): AgentSettings | undefined {
  const able = agents.filter((agent) => agent.kind === "exec");
  if (wanted !== undefined) return able.find((agent) => agent.name === wanted);
  return able.find((agent) => agent.default === true) ?? able[0];
}

/** @returns the agent's proposal, or a text for people that says why it made none */
export async function propose(
  ctx: Context,
  agent: AgentSettings,
  settings: Settings,
  text: string,
  signal: AbortSignal,
): Promise<Proposal | string> {
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-chat-"));
  const stop = new StopSignal();
  signal.addEventListener("abort", () => stop.stop("stop"), { once: true });
  try {
    const outcome = await new ExecAgent({ ...agent, meter: false }).run({
      task: { id: "chat", prompt: packet(ctx, text), timeout_ms: agent.timeout_ms ?? TIMEOUT_MS },
      taskText: "",
      attempt: 1,
      lease: `chat.1.${process.pid}`,
      claimFile: "",
      runDir: dir,
      stateDir: ctx.stateDir,
      settings,
      stop,
      usage: {},
      onProgress: () => {},
      onStuck: () => {},
    });
    if (outcome.kind === "completed") return readProposal(outcome.output);
    if (outcome.kind === "released") return "it was stopped";
    return outcome.kind === "failed" ? errorText(outcome) : outcome.message;
  } catch (error) {
    return messageOf(error);
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

/** Checks an agent's output line by line. */
export function readProposal(output: unknown): Proposal {
  const proposal: Proposal = { commands: [], refused: [], remarks: [] };
  const text = typeof output === "string" ? output : "";
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (line === "" || line.startsWith("```")) continue;
    if (!line.startsWith("/")) {
      if (proposal.remarks.length < REMARKS_MAX) proposal.remarks.push(line);
      continue;
    }
    try {
      const action = parseSlash(line);
      if (proposal.commands.length < PROPOSALS_MAX) proposal.commands.push({ line, action });
      else proposal.refused.push({ line, reason: `more than ${PROPOSALS_MAX} commands at once` });
    } catch (error) {
      proposal.refused.push({ line, reason: messageOf(error) });
    }
  }
  return proposal;
}

function packet(ctx: Context, text: string): string {
  const status = renderStatus(takeSnapshot(treeOf(ctx), Date.now()), {
    colour: false,
    columns: 100,
    isTerminal: false,
    stateFrom: ctx.stateFrom,
  });
  return [
    "You help a person to steer a pool of workers. Answer with commands from this list only, one a line, nothing else.",
    "They are shown to the person and run only after a confirmation.",
    "",
    ...Object.values(SLASH_COMMANDS).map(({ usage, help }) => `${usage}  ${help}`),
    "",
    "Status of the pool:",
    "",
    ...status,
    "",
    "The person says:",
    "",
    text,
  ].join("\n");
}
