/** All settings with their built-in values and units. Pure; reading them from files and the environment is elsewhere. */
import { WORKERS_MAX } from "./limits.ts";
import type { Phase } from "./phases.ts";

export type AgentKind = "exec" | "module" | "codex" | "claude";

/** Kinds of coding agents: a program of the user's, by default of the same name. */
export const CODING_AGENTS = ["claude", "codex"] as const satisfies readonly AgentKind[];

export interface AgentSettings {
  name: string;
  kind: AgentKind;
  /** Program of an `exec` agent: name or path. */
  program?: string;
  args?: string[];
  /** Module of a `module` agent: path, relative to `config.yaml`. */
  module?: string;
  types?: string[];
  capabilities?: string[];
  default?: boolean;
  timeout_ms?: number;
  /** Phases of its work on nodes of the plan, in order; left out = by the node's type. */
  phases?: Phase[];
  /** Of a coding agent: the model; left out = the program's own choice. */
  model?: string;
  /** Variables that its program gets. */
  env?: Record<string, string>;
  /** Whose quota it uses; left out = `default`. */
  account?: string;
  /** What it may do without a person. */
  permissions?: Permissions;
  /** How much each task of it, and all of them on a day, may spend. */
  budget?: AgentBudget;
  /** Stopped when it is silent for so long and no tool runs (ms). */
  idle_ms?: number;
  /** How long it may wait for a background task after its work (ms). */
  background_ms?: number;
  /** Whether a node's run must end with a `<result>`: `required` for programs unless it is set. */
  result?: "required" | "optional";
}

/** How much a task may spend over all its runs. 0 or left out = no limit. */
export interface TaskBudget {
  /** US dollars. Above it a person is asked before another turn or run begins. */
  soft_usd?: number;
  /** US dollars. Above it a run is interrupted, and a person is asked. */
  hard_usd?: number;
  /** Input and output. Asked like `soft_usd`; so are the two below. */
  tokens?: number;
  turns?: number;
  time_ms?: number;
}

/** The same for a day of UTC. */
export interface DayBudget {
  day_usd?: number;
  day_hard_usd?: number;
  day_tokens?: number;
  day_turns?: number;
  day_time_ms?: number;
}

export type AgentBudget = TaskBudget & DayBudget;

/** `read`: look only. `edit`: change files and run commands in its folder. `full`: everything, without a sandbox. */
export interface Permissions {
  mode: "read" | "edit" | "full";
  /** Tools that are allowed beside those of the mode, in the program's own words. */
  allow?: string[];
}

export interface Settings {
  /** Slots over all worker processes of this supervisor. */
  workers: number;
  processes: number;
  durability: "power" | "process";
  /** How long settled records and what belongs to them is kept (days). */
  retention: {
    outbox_days: number;
    failed_days: number;
    /** Journals that were rotated away. */
    journal_days: number;
    /** So much of them at most, all together (bytes). */
    journal_bytes_max: number;
    /** Evidence of nodes that the plan has no more, and of earlier runs of those it has. */
    evidence_days: number;
  };
  retry: { max_attempts: number; backoff_ms: number; backoff_max_ms: number };
  /** How long a silent lease is respected (ms). */
  lease_ttl_ms: number;
  heartbeat_ms: number;
  /** A file that does not parse is refused after it was quiet for this long (ms). */
  settle_ms: number;
  /** From SIGTERM to SIGKILL (ms). */
  grace_ms: number;
  /** Longest run of a task that sets no `timeout_ms` (ms); 0 = no limit. */
  timeout_ms: number;
  /** Longest wait between two looks at everything (ms). */
  sweep_ms: number;
  /** A run that writes more than this into its logs and its folder is stopped (bytes). */
  output_bytes_max: number;
  /** A batch above this size is refused unread (bytes). */
  batch_bytes_max: number;
  /** A batch whose results have more than this ends with an error (bytes). */
  batch_results_bytes_max: number;
  /** Lines of a batch that run at once, when functions run them; programs share the worker's slots. */
  batch_concurrency: number;
  /** Nothing new starts while the disk has less free (bytes); of a small disk, less than an eighth. 0 = whatever is free. */
  free_bytes_min: number;
  /** Variables of our own environment that programs get, beside PATH, HOME and the like. */
  env_allow: string[];
  /** Directories under which `cwd` and `worktree` must lie. */
  roots: string[];
  /** Owners whose files are accepted, beside our own uid and root. */
  uids: number[];
  /** False: the task mailbox is left alone. */
  mailbox_enabled: boolean;
  agents: AgentSettings[];
  /** How much all coding agents of this tree may spend. */
  budgets: Required<DayBudget>;
  /** By model, for programs that give no price themselves. */
  prices: Record<string, Price>;
}

/** US dollars for a million tokens. */
export interface Price {
  input_usd: number;
  cached_input_usd?: number;
  output_usd: number;
}

export const DEFAULT_SETTINGS: Settings = {
  workers: 3,
  processes: 1,
  durability: "power",
  retention: {
    outbox_days: 7,
    failed_days: 30,
    journal_days: 30,
    journal_bytes_max: 4 * 1024 * 1024 * 1024,
    evidence_days: 90,
  },
  retry: { max_attempts: 3, backoff_ms: 1000, backoff_max_ms: 300_000 },
  lease_ttl_ms: 4 * 60 * 60 * 1000,
  heartbeat_ms: 5000,
  settle_ms: 2000,
  grace_ms: 5000,
  timeout_ms: 0,
  sweep_ms: 2000,
  output_bytes_max: 1024 * 1024 * 1024,
  batch_bytes_max: 1024 * 1024 * 1024,
  batch_results_bytes_max: 4 * 1024 * 1024 * 1024,
  batch_concurrency: 64,
  free_bytes_min: 128 * 1024 * 1024,
  env_allow: [],
  roots: ["/"],
  uids: [],
  mailbox_enabled: true,
  agents: [],
  budgets: { day_usd: 0, day_hard_usd: 0, day_tokens: 0, day_turns: 0, day_time_ms: 0 },
  prices: {},
};

export type SettingSource = "flag" | "environment" | "config.yaml" | "built-in";

/** Relations that no single field can check. @returns the fault, or undefined */
export function explainBadSettings(s: Settings): string | undefined {
  if (s.heartbeat_ms * 2 > s.lease_ttl_ms)
    return "lease_ttl_ms must be at least twice heartbeat_ms, or live tasks would be taken for dead";
  if (s.retry.backoff_ms > s.retry.backoff_max_ms)
    return "retry.backoff_ms must not be above retry.backoff_max_ms";
  const { day_usd: soft, day_hard_usd: hard } = s.budgets;
  if (hard > 0 && soft > hard) return "budgets.day_usd must not be above budgets.day_hard_usd";
  if (s.workers > WORKERS_MAX) return `workers must not be above ${WORKERS_MAX}`;
  const names = new Set<string>();
  for (const agent of s.agents) {
    if (names.has(agent.name))
      return `agents: the name ${JSON.stringify(agent.name)} is there twice`;
    names.add(agent.name);
    const fault = explainBadAgent(agent);
    if (fault !== undefined) return `agents: ${fault}`;
  }
  return undefined;
}

/** What an agent lacks, by its kind. @returns the fault, or undefined */
export function explainBadAgent({
  name,
  kind,
  program,
  module,
}: AgentSettings): string | undefined {
  if (kind === "exec" && program === undefined)
    return `${name} is of kind exec and needs a program`;
  if (kind === "module" && module === undefined)
    return `${name} is of kind module and needs a module`;
  return undefined;
}
