/** What a node's run reports at its end: the content of `<result>{…}</result>` with all fields filled in. Pure. */
import type { NodeStatus, RoadmapNode } from "./roadmap.ts";

export type EnvelopeStatus = "success" | "fail" | "checkpoint";

/** A question that only a person can answer; the node waits for it. */
export interface Checkpoint {
  question: string;
  context: string;
  options: string[];
  /** After this time without an answer (ms), `default` is taken as the answer. */
  timeout_ms?: number;
  default?: string;
}

/** A node that a run adds to the plan. Fields that are left out get the defaults of the plan. */
export type EnvelopeNode = Pick<
  RoadmapNode,
  | "id"
  | "type"
  | "title"
  | "parent"
  | "dependencies"
  | "max_attempts"
  | "inputs"
  | "goal"
  | "prompt"
  | "acceptance"
  | "verify"
  | "exec"
  | "agent"
  | "role"
  | "capabilities"
  | "cwd"
  | "env"
  | "timeout_ms"
  | "payload"
> &
  Partial<Pick<RoadmapNode, "priority" | "status">>;

export interface Envelope {
  status: EnvelopeStatus;
  summary: string;
  filesChanged: string[];
  commandsRun: string[];
  errors: string[];
  next: { addNodes: EnvelopeNode[]; setStatus: { id: string; status: NodeStatus }[] };
  /** Set when `status` is "checkpoint". */
  checkpoint?: Checkpoint;
  /** From 0 to 1. */
  confidence?: number;
  /** Values to put under the node's own keys in kv. */
  outputs: Record<string, unknown>;
  /** Further output of the run: its `output` member, a handler's return value, or the end of its stdout. */
  output?: unknown;
  /** Fields of the result that are not listed here. */
  extra?: Record<string, unknown>;
}

export function newEnvelope(status: EnvelopeStatus, summary: string): Envelope {
  return {
    status,
    summary,
    filesChanged: [],
    commandsRun: [],
    errors: [],
    next: { addNodes: [], setStatus: [] },
    outputs: {},
  };
}

/**
 * Merges the envelopes of several phases of one run, which are given in order. The last one decides `status` and `errors`;
 * other lists and values are put together.
 */
export function mergeEnvelopes(envelopes: readonly Envelope[]): Envelope {
  const last = envelopes.at(-1) ?? newEnvelope("success", "");
  const nodes = new Map<string, EnvelopeNode>();
  const statuses = new Map<string, NodeStatus>();
  for (const { next } of envelopes) {
    for (const node of next.addNodes) nodes.set(node.id, node);
    for (const { id, status } of next.setStatus) statuses.set(id, status);
  }
  return {
    ...last,
    summary: envelopes.findLast(({ summary }) => summary !== "")?.summary ?? "",
    filesChanged: unique(envelopes.flatMap(({ filesChanged }) => filesChanged)),
    commandsRun: envelopes.flatMap(({ commandsRun }) => commandsRun),
    errors: last.errors,
    next: {
      addNodes: [...nodes.values()],
      setStatus: [...statuses].map(([id, status]) => ({ id, status })),
    },
    outputs: Object.assign({}, ...envelopes.map(({ outputs }) => outputs)),
  };
}

/** Why the run did not succeed, in one sentence; "" when the envelope does not say. */
export function errorOf(envelope: Envelope): string {
  return envelope.summary !== "" ? envelope.summary : (envelope.errors[0] ?? "");
}

function unique(words: readonly string[]): string[] {
  return [...new Set(words)];
}
