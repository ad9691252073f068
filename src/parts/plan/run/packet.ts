/** Makes the packet for a node's run: a template filled with goal, acceptance, earlier results, and values of other nodes. Pure. */
import type { KvEntry } from "../../../core/kv.ts";
import type { Phase } from "../../../core/phases.ts";
import type { NodeBrief, NodeInput, NodeType } from "../../../core/roadmap.ts";
import { cutBytes, fenced, flat } from "./markdown.ts";

/** Names of the templates: `templates/<role>.md`, or the user's own `state/templates/<role>.md`. */
export type PacketRole = "planner" | "executor" | "verifier" | "integrator" | "final-verifier";

const ROLES: Readonly<Partial<Record<NodeType, PacketRole>>> = {
  plan: "planner",
  verify: "verifier",
  integrate: "integrator",
  final_verify: "final-verifier",
};

export function roleOf(type: NodeType): PacketRole {
  return ROLES[type] ?? "executor";
}

/** How much of a value a packet shows (bytes). kv has the whole value. */
export const PREVIEW_BYTES_MAX = 2048;
/** Limit for all values of a packet together (bytes). Further inputs are only named. */
const PREVIEWS_BYTES_MAX = 64 * 1024;

export interface FinishedPhase {
  phase: string;
  /** The number of the attempt that finished the phase. */
  attempt: number;
  summary: string;
}

export interface PacketFacts {
  brief: NodeBrief;
  description: string;
  prompt: string;
  /** The JSON text of the task as it was dropped. */
  taskText: string;
  phase: Phase;
  phases: readonly Phase[];
  /** From 1. */
  attempt: number;
  /** 0 if it is not known. */
  maxAttempts: number;
  /** The error of the previous run; "" if there was none. */
  lastError: string;
  finished: readonly FinishedPhase[];
  isResultRequired: boolean;
  stateDir: string;
  runDir: string;
  resultFile: string;
  lookUp: (input: NodeInput) => KvEntry | undefined;
}

const GUIDES: Readonly<Record<Phase, string>> = {
  STRATEGIZE: "Choose the approach: what matters, what could go wrong, what you will not do.",
  SPEC: "Say exactly what must be true at the end, so that it can be checked.",
  PLAN: "Break the work into steps; name the files and the checks of each.",
  THINK: "Look for what the plan overlooks before anything is changed.",
  IMPLEMENT: "Do the work.",
  VERIFY: "Check the work against the acceptance criteria by running things, not by reading.",
  REVIEW: "Read the change as a person who must live with it, and say what is wrong with it.",
  PR: "Make the change ready to be taken over: a clean history, a description.",
  MONITOR: "Look at the effect of the change, and say whether it holds.",
};

const VARIABLE = /\{\{\s*([A-Za-z][A-Za-z0-9_]*)\s*\}\}/g;

/**
 * Replaces each `{{NAME}}` in a template once; names inside the inserted values are not replaced. Unknown names stay, and a
 * note at the end of the packet lists them.
 */
export function renderPacket(template: string, facts: PacketFacts): string {
  const values = variablesOf(facts);
  const unknown = new Set<string>();
  const text = template.replace(VARIABLE, (whole, name: string) => {
    const value = values[name.toUpperCase()];
    if (value === undefined) unknown.add(name);
    return value?.() ?? whole;
  });
  const body = `${text.replace(/\n{3,}/g, "\n\n").trimEnd()}\n`;
  if (unknown.size === 0) return body;
  return `${body}\n> Note: the template of this packet names ${[...unknown].map((name) => `{{${name}}}`).join(", ")}, which mailchute does not know. Known are: ${Object.keys(values).join(", ")}.\n`;
}

function variablesOf(facts: PacketFacts): Record<string, () => string> {
  const { brief } = facts;
  const said = (text: string | undefined): string =>
    text === undefined || text.trim() === "" ? "(not given)" : text.trimEnd();
  return {
    NODE_ID: () => brief.id,
    TYPE: () => brief.type,
    TITLE: () => flat(brief.title),
    PARENT: () => brief.parent ?? "(none)",
    GOAL: () => said(brief.goal ?? facts.description),
    DESCRIPTION: () => said(facts.description),
    PROMPT: () => facts.prompt.trimEnd(),
    ACCEPTANCE: () =>
      brief.acceptance.length === 0
        ? "- (none given)"
        : brief.acceptance.map((one) => `- ${flat(one)}`).join("\n"),
    RESUME_CONTEXT: () => resumeContext(facts),
    NODE_INPUTS: () => nodeInputs(brief.inputs, facts.lookUp),
    TASK: () => fenced(facts.taskText, "json"),
    PHASE: () => facts.phase,
    PHASE_GUIDE: () => GUIDES[facts.phase],
    PHASES: () => facts.phases.map((one) => (one === facts.phase ? `**${one}**` : one)).join(" → "),
    ATTEMPT: () => String(facts.attempt),
    MAX_ATTEMPTS: () => (facts.maxAttempts === 0 ? "?" : String(facts.maxAttempts)),
    RESULT_FORMAT: () => resultFormat(facts),
    RESULT_FILE: () => facts.resultFile,
    RUN_DIR: () => facts.runDir,
    STATE_DIR: () => facts.stateDir,
  };
}

function resumeContext(facts: PacketFacts): string {
  const { attempt, maxAttempts, lastError, finished, brief } = facts;
  const lines = [`- Attempt ${attempt}${maxAttempts === 0 ? "" : ` of ${maxAttempts}`}`];
  if (lastError !== "")
    lines.push("- The run before did not succeed. It said:", "", preview(lastError), "");
  for (const { phase, attempt: of, summary } of finished) {
    lines.push(`- ${phase} is finished (attempt ${of})${summary === "" ? "" : ":"}`);
    if (summary !== "") lines.push("", preview(summary), "");
  }
  for (const { question, answer } of brief.answers ?? [])
    lines.push("- You asked:", "", preview(question), "", "  The answer:", "", preview(answer), "");
  if (lines.length === 1 && attempt === 1) lines.push("- Nothing was done before.");
  return lines.join("\n").trimEnd();
}

function nodeInputs(
  inputs: readonly NodeInput[],
  lookUp: (input: NodeInput) => KvEntry | undefined,
): string {
  if (inputs.length === 0) return "- (none)";
  let leftBytes = PREVIEWS_BYTES_MAX;
  const items = inputs.map((input) => {
    const as = input.as === undefined ? "" : ` (as ${flat(input.as)})`;
    const ref = `- ${input.nodeId}:${input.key}${as}`;
    const entry = lookUp(input);
    if (entry === undefined) return ref;
    const { value } = entry;
    const shown = preview(typeof value === "string" ? value : JSON.stringify(value, null, 2));
    const bytes = Buffer.byteLength(shown);
    if (bytes > leftBytes) return `${ref} (not shown here: read it with \`mailchute kv get\`)`;
    leftBytes -= bytes;
    return `${ref}\n\n${shown}\n`;
  });
  return items.join("\n").trimEnd();
}

/** A shortened value inside a list item. */
function preview(text: string): string {
  return fenced(cutBytes(text, PREVIEW_BYTES_MAX), "text", 2);
}

/** The example is deliberately not valid JSON, so that a program that only prints it back has not reported a result. */
function resultFormat({ isResultRequired, brief, resultFile }: PacketFacts): string {
  const example = [
    "<result>",
    "{",
    '  "status": "success" | "fail" | "checkpoint",',
    '  "summary": "one or two sentences: what was done, or why it could not be",',
    '  "filesChanged": ["path", …],',
    '  "commandsRun": ["command", …],',
    '  "errors": ["…"],',
    '  "confidence": 0.0 to 1.0,',
    '  "outputs": { "ctx.name": any JSON for later nodes },',
    '  "next": {',
    '    "addNodes": [{ "id": "…", "type": "task", "title": "…", "parent": "…", "dependencies": ["…"], "acceptance": ["…"] }],',
    '    "setStatus": [{ "id": "…", "status": "open" }]',
    "  },",
    '  "checkpoint": { "question": "…", "context": "…", "options": ["…", …] }',
    "}",
    "</result>",
  ].join("\n");
  return [
    isResultRequired
      ? "End by printing exactly one block of this form on stdout. Without it the run counts as failed."
      : "You may end by printing one block of this form on stdout.",
    `Everything but \`status\` may be left out. The same object may be written into \`${resultFile}\` instead.`,
    "",
    fenced(example),
    "",
    "- `fail`: it could not be done; `summary` says why. It is tried again while attempts are left.",
    "- `checkpoint`: only a person can decide. Ask one question; the answer is in the next packet.",
    "- `next` changes the plan: ids of new nodes are letters, digits, `.`, `_`, `-`.",
    ...(brief.type === "plan"
      ? [`- New nodes of this plan have \`"parent": ${JSON.stringify(brief.id)}\`.`]
      : []),
  ].join("\n");
}
