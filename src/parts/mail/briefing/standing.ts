/** Writes the standing instructions of an agent in a tree with mail: who it is, who the other agents are, and how to write to them. Pure. */
import { cut, safe } from "../../../text/render.ts";
import type { AgentRecord } from "../agents/agents.ts";
import { type Address, formatAddress } from "../scope/scope.ts";

const LINES_MAX = 20;
/** Limit for the lines about the other agents together (bytes). */
const BYTES_MAX = 1400;
const TASK_CHARS_MAX = 60;

const HOW = [
  "- `mailchute say TEXT --to NAME` writes to one of them, or to `human`, a person; `--reply-to ID` says what it answers",
  "- `mailchute ask QUESTION` asks a person, with `--to NAME` an agent; `--wait` prints the answer",
  "- `mailchute mail --ack` prints your unread mail, and marks it as read",
];

/** @param agents the agents of the scope, sorted by name @param orchestrator its address */
export function standingText(
  own: Address,
  agents: readonly AgentRecord[],
  orchestrator: string | undefined,
): string {
  const isOrchestrator = (one: Address): boolean => formatAddress(one) === orchestrator;
  const others = agents.filter(({ name }) => name !== own.name);
  // If there are too many agents, the text names the most important ones.
  const rank = (one: AgentRecord): number =>
    isOrchestrator(one) ? 0 : one.status === "busy" ? 1 : 2;
  const lines = others
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, LINES_MAX)
    .map((one) => lineOf(one, isOrchestrator(one)));
  const shown = lines.slice(0, fitting(lines, BYTES_MAX));
  const more = others.length - shown.length;
  const role = isOrchestrator(own) ? ", its orchestrator: you are told how the others end" : "";
  const scope = safe(`${own.project}:${own.branch}`);
  return [
    `You are the agent ${own.name} in the scope ${scope}${role}.`,
    others.length === 0 ? "No other agent is there." : "The other agents there:",
    ...shown,
    ...(more === 0 ? [] : [`- ${more} more: \`mailchute agents\``]),
    "",
    ...HOW,
  ].join("\n");
}

function lineOf({ name, type, status, task }: AgentRecord, isOrchestrator: boolean): string {
  const what = [safe(type), safe(status), ...(isOrchestrator ? ["the orchestrator"] : [])];
  const work = task === "" ? "" : `: ${cut(safe(task), TASK_CHARS_MAX)}`;
  return `- ${name} (${what.join(", ")})${work}`;
}

/** How many of the first lines fit into `bytesMax` bytes together. */
export function fitting(lines: readonly string[], bytesMax: number): number {
  let bytes = 0;
  const over = lines.findIndex((line) => {
    bytes += Buffer.byteLength(line) + 1;
    return bytes > bytesMax;
  });
  return over === -1 ? lines.length : over;
}
