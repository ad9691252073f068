/** The shapes, units and default values of all settings. Pure. `config/` reads them from files and the environment. */

import type { AgentBudget, DayBudget } from "./budget.ts";
import type { CallbackFields } from "./callback.ts";
import type { LandFields } from "./landing.ts";
import type { NotifySettings } from "./notify-settings.ts";
import type { Phase } from "./phases.ts";
import { NO_RUN_LIMITS, type RunLimits, type TreeLimits } from "./run-limits.ts";
import type { SandboxSettings } from "./sandbox.ts";
import type { CacheFields } from "./setup-cache.ts";
import type { GroupSettings, LimitSettings } from "./task-limits.ts";

/** The built-in kinds of agents. `remote`: its tasks run at other machines. */
export const AGENT_KINDS = ["exec", "module", "codex", "claude", "acp", "remote"] as const;
export type AgentKind = (typeof AGENT_KINDS)[number];

/** The kinds of coding agents with a program of the same name, which the user has installed. */
export const CODING_AGENTS = ["claude", "codex"] as const satisfies readonly AgentKind[];
const CODING_KINDS: ReadonlySet<string> = new Set<AgentKind>([...CODING_AGENTS, "acp"]);

/** Whether the agent is a program that works in a session with a model. */
export function isCoding({ kind }: Pick<AgentSettings, "kind">): boolean {
  return CODING_KINDS.has(kind);
}

/** Whether tasks of this agent are calls of a function in the worker process, and not programs. */
export function isFunction({ kind }: Pick<AgentSettings, "kind">): boolean {
  return kind === "module" || !AGENT_KINDS.some((one) => one === kind);
}

export interface AgentSettings extends LandFields {
  name: string;
  /** Built in, or the name of a kind that a plugin brings. */
  kind: AgentKind | (string & Record<never, never>);
  /** Settings for the kind of a plugin, which checks them. */
  settings?: Record<string, unknown>;
  /** How many of its tasks may be in work at once. Default: as many as there are slots. */
  slots?: number;
  /** What its runs need at their peak, until their records tell (bytes). Default: 2 GiB for a coding agent, else 0. */
  usual_memory_bytes?: number;
  /** Program of an `exec` agent: name or path. */
  program?: string;
  args?: string[];
  /** The program of an `acp` agent, with its arguments. */
  command?: string[];
  /** How an `acp` agent logs in: one of the methods that its program offers. */
  auth_method?: string;
  /** What `attach` opens, with `{session}` in the place of the session's id. When left out, the kind knows. */
  screen?: string[];
  /** `end_turn`: the word of an `acp` agent is enough, and its tasks need no checks. */
  trust?: "end_turn";
  /** Module of a `module` agent: path, relative to `config.yaml`. */
  module?: string;
  types?: string[];
  capabilities?: string[];
  default?: boolean;
  timeout_ms?: number;
  /** The phases of its work on nodes of the plan, in order. When left out, the type of the node decides. */
  phases?: Phase[];
  /** The agents that take its tasks over, the first one first, while it is at its limit, paused or over its budget. */
  fallback?: string[];
  /** The model of a coding agent. When left out, the program chooses. */
  model?: string;
  /** How much the model of a claude or codex agent thinks, as the program calls it. When left out, the program chooses. */
  effort?: string;
  /** How a codex agent runs: `codex exec`, the default, or `codex app-server`, which takes messages while it runs. */
  mode?: "exec" | "app-server";
  /** The target of a remote agent: its tasks run on machines that serve this target. Default: `any`. */
  where?: string;
  /** The name of the agent on those machines. Default: the same. */
  as?: string;
  /** Environment variables of its program. */
  env?: Record<string, string>;
  /** The account whose quota it uses. Default: `default`. */
  account?: string;
  /** Several accounts in place of one, the best first. While one is closed, the agent works with the next one. */
  accounts?: string[];
  /** What it may do without asking a person. */
  permissions?: Permissions;
  /** Servers of the Model Context Protocol that it starts, by name: programs with their arguments. */
  mcp?: Record<string, { command: string[] }>;
  /** Counts what its program asks of the services of its models. `false`: does not, and its addresses stay. */
  meter?: boolean | MeterSettings;
  /** How much each of its tasks may spend, and all of them together on one day. */
  budget?: AgentBudget;
  /** How much the programs of one of its runs may use. */
  run_limits?: RunLimits;
  /** The walls around its programs, its setup and its checks. Default: those of the tree. */
  sandbox?: SandboxSettings;
  /** mailchute stops it when it is silent for this long and no tool runs (ms). */
  idle_ms?: number;
  /** `auto`: its tasks run in git worktrees of their own. */
  worktree?: "auto" | "none";
  /** Programs that make a new worktree ready: one with its arguments, or a list of them. */
  setup?: string[] | string[][];
  /** What `setup` makes, and worktrees with the same key share. */
  cache?: CacheFields;
  /** Checks for tasks without checks of their own: programs that must exit with 0, and files that must exist. */
  verify?: string[] | string[][];
  expect_files?: string[];
  /** How long it may wait for a background task after its work (ms). */
  background_ms?: number;
  /** Whether a node's run must end with a `<result>`. Default for programs: `required`. */
  result?: "required" | "optional";
}

/** `read`: may only read. `edit`: may change files and run commands in its folder. `full`: may do anything, without a sandbox. */
export interface Permissions {
  mode: "read" | "edit" | "full";
  /** Names of tools, as the program calls them, that are allowed besides those of the mode. */
  allow?: string[];
}

export interface MeterSettings {
  /** Keeps the bodies of requests and answers, in the folder of each run. */
  record?: boolean;
  /** Answers from this record, in place of the services: path, relative to `config.yaml`. */
  replay?: string;
}

/** Whether the requests of its runs are counted. */
export function isMetered({ meter }: Pick<AgentSettings, "meter">): boolean {
  return meter !== undefined && meter !== false;
}

/** Whether its runs have costs: they count for accounts and budgets. */
export function hasCosts(agent: Pick<AgentSettings, "kind" | "meter">): boolean {
  return isCoding(agent) || isMetered(agent);
}

/** An account that agents name. An account that the settings do not list has no variables and no reserve. */
export interface AccountSettings {
  /** Variables that lead a program to its login, such as `CODEX_HOME`. They win over those of the agent. */
  env?: Record<string, string>;
  /** This much of each window of its quota is left to its owner (percent). */
  reserve_pct?: number;
  /** Whether its agents that do not say it themselves have a meter. */
  meter?: boolean;
}

/** All settings. Its callbacks are for tasks without callbacks of their own and of their group. */
export interface Settings extends Required<CallbackFields> {
  /** Slots in all worker processes of this supervisor together. */
  workers: number;
  processes: number;
  durability: "power" | "process";
  /** How long settled records and their files are kept (days). */
  retention: {
    outbox_days: number;
    failed_days: number;
    /** For rotated journals. */
    journal_days: number;
    /** All rotated journals together may have at most this size (bytes). */
    journal_bytes_max: number;
    /** For evidence of nodes that are no longer in the plan, and of earlier runs of nodes that are. */
    evidence_days: number;
    /** For the remains of landed work: its commits from before the rebase, saves, and files in `landings/`. */
    landed_days: number;
    /** For saves of worktrees, which may hold work that is nowhere else. */
    saves_days: number;
    /** For folders that `setup` has made, after their last use. */
    cache_days: number;
  };
  retry: { max_attempts: number; backoff_ms: number; backoff_max_ms: number };
  /** How long a worker may be silent when mailchute cannot see whether it lives (ms). Then its task is taken back. */
  lease_ttl_ms: number;
  heartbeat_ms: number;
  /** A process that lives but has not moved for this long is ended (a worker) or told of (the supervisor) (ms); 0 = never. */
  stall_ms: number;
  /** A file that does not parse is refused when it has not changed for this long (ms). */
  settle_ms: number;
  /** Time between SIGTERM and SIGKILL (ms). */
  grace_ms: number;
  /** How long landings, reviews and fixes of completed work still start after the time of `run --until` (ms). */
  until_grace_ms: number;
  /** At most so many works are brought together and checked once. 1: each work is checked alone. */
  landing: { batch: number };
  /** Longest run of a task that sets no `timeout_ms` (ms); 0 = no limit. */
  timeout_ms: number;
  /** Longest time between two scans of all folders (ms). */
  sweep_ms: number;
  /** A run is stopped when it has written more than this into its logs and its folder (bytes). */
  output_bytes_max: number;
  /** How much the programs of one run may use, where neither its task nor its agent says it. 0 = no limit. */
  run_limits: TreeLimits;
  /** The walls around programs, where the agent does not say it. Default: `open`. */
  sandbox: SandboxSettings;
  /** A batch above this size is refused unread (bytes). */
  batch_bytes_max: number;
  /** A batch fails when its results are larger than this (bytes). */
  batch_results_bytes_max: number;
  /** How many lines of a batch run at once when their agents are functions. Programs share the slots of the worker. */
  batch_concurrency: number;
  /** No task starts while the disk has less free (bytes), or less than an eighth of a small disk. 0 = no limit. */
  free_bytes_min: number;
  /** No run that needs much memory starts when less than this would be left (bytes). 0 = memory is not looked at. */
  free_memory_min: number;
  /** Environment variables that mailchute passes to programs, besides PATH, HOME and similar ones. */
  env_allow: string[];
  /** True: mailchute reads a file of `env_from` even when all users can read it. */
  allow_open_secrets: boolean;
  /** Directories under which `cwd` and `worktree` must lie. */
  roots: string[];
  /** Where worktrees of tasks are made: a path, relative to the state tree. */
  worktrees_dir: string;
  /** Patterns as in a `.gitignore`. An ignored file that matches one does not stop the removal of its worktree. */
  worktree_ignored_may_go: string[];
  /** True: the supervisor takes messages from `post/`, and wakes coding agents for their mail. */
  mail_enabled: boolean;
  /** Other projects whose agents may write to the agents of this tree; "*": all projects. */
  accept_mail_from: string[];
  /** The agent that learns how the other agents end: its name, or its address in another scope. */
  orchestrator: string;
  /** How many agents may be spawned in a scope. */
  spawn: {
    /** How deep: 1 = only people and agents of the settings may spawn. */
    depth_max: number;
    /** How many may exist at once. */
    agents_max: number;
    /** How many within an hour. */
    per_hour_max: number;
    /** An agent that has had no work and no mail for this long is archived (ms). 0 = never. */
    archive_ms: number;
  };
  /** Where mail is kept: a path, relative to the state tree; "" = one directory for all trees of this user. */
  data: string;
  /** Ids of users whose files are accepted, besides root and the user that runs mailchute. */
  uids: number[];
  /** False: mailchute does not touch the task mailbox. */
  mailbox_enabled: boolean;
  plugins: PluginSettings[];
  agents: AgentSettings[];
  /** By name. */
  accounts: Record<string, AccountSettings>;
  /** By name. */
  groups: Record<string, GroupSettings>;
  /** By name. A number means this many slots. */
  limits: Record<string, number | LimitSettings>;
  /** By name: the fields of a schedule. */
  schedules: Record<string, unknown>;
  /** How much all coding agents of this state tree may spend. */
  budgets: Required<DayBudget>;
  /** Who gets notifications of what happens. */
  notify: NotifySettings[];
  web: {
    /** The address under which people open the pages from elsewhere; "": messages have no links. */
    public_url: string;
  };
  cluster: ClusterSettings;
  /** The prices of models, for programs that report no cost themselves. */
  prices: Record<string, Price>;
}

/** A plugin to load. Only a person names one: code of a plugin may do everything that this process may. */
export interface PluginSettings {
  /** An absolute path, or the name of a package, which is looked for from the state tree upwards. */
  path: string;
  settings?: Record<string, unknown>;
}

/** How this tree works together with other machines. */
export interface ClusterSettings {
  /** Addresses of NATS servers. Empty: this tree works alone. */
  servers: string[];
  /** Whether `run` starts a bridge, and keeps it running. */
  bridge: boolean;
  /** The name of this machine; "" = that of the host. */
  name: string;
  /** This machine runs tasks of others that are sent to these names or to its own name. Empty: it only sends. */
  serves: string[];
  /** Groups whose tasks are sent, by name, with their targets. The agents of these tasks do not matter. */
  groups: Record<string, string>;
  /** The agents of this machine that may work for other machines. */
  accept: string[];
  /** Fields that are accepted from tasks of other machines, besides what to do and how long it may take. */
  accept_fields: string[];
  /** How many tasks of other machines may be here at once. */
  slots: number;
  /** A file with credentials for the servers, or with the seed of an nkey; "" = none. */
  credentials: string;
  /** Files with the authority that signed the servers' certificates, and with the certificate of this machine. "" = none. */
  tls: { ca: string; cert: string; key: string };
  /** Machines by name: `cluster init` sets up their rights and streams here. Empty: each machine may do everything. */
  machines: Record<string, ClusterMachine>;
  /** On how many servers each message is kept. */
  replicas: number;
  /** When a machine shows no sign of life for this long, its task goes to another machine (ms). */
  ack_wait_ms: number;
}

export interface ClusterMachine {
  /** The targets whose tasks it runs. */
  serves?: string[];
  /** The targets that it sends tasks to. */
  sends?: string[];
}

/** US dollars for one million tokens. */
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
    landed_days: 30,
    saves_days: 180,
    cache_days: 14,
  },
  retry: { max_attempts: 3, backoff_ms: 1000, backoff_max_ms: 300_000 },
  lease_ttl_ms: 4 * 60 * 60 * 1000,
  heartbeat_ms: 5000,
  stall_ms: 60_000,
  settle_ms: 2000,
  grace_ms: 5000,
  until_grace_ms: 30 * 60 * 1000,
  landing: { batch: 8 },
  timeout_ms: 0,
  sweep_ms: 2000,
  output_bytes_max: 1024 * 1024 * 1024,
  run_limits: NO_RUN_LIMITS,
  batch_bytes_max: 1024 * 1024 * 1024,
  batch_results_bytes_max: 4 * 1024 * 1024 * 1024,
  batch_concurrency: 64,
  free_bytes_min: 128 * 1024 * 1024,
  free_memory_min: 512 * 1024 * 1024,
  sandbox: "open",
  env_allow: [],
  allow_open_secrets: false,
  roots: ["/"],
  worktrees_dir: "worktrees",
  worktree_ignored_may_go: [],
  mail_enabled: false,
  accept_mail_from: [],
  orchestrator: "june",
  spawn: { depth_max: 3, agents_max: 16, per_hour_max: 30, archive_ms: 60 * 60 * 1000 },
  data: "",
  uids: [],
  mailbox_enabled: true,
  plugins: [],
  agents: [],
  accounts: {},
  groups: {},
  limits: {},
  schedules: {},
  on_success: "none",
  on_failure: "none",
  on_settled: "none",
  budgets: {
    day_usd: 0,
    day_hard_usd: 0,
    day_tokens: 0,
    day_hard_tokens: 0,
    day_turns: 0,
    day_hard_turns: 0,
    day_time_ms: 0,
    day_hard_time_ms: 0,
  },
  notify: [],
  web: { public_url: "" },
  cluster: {
    servers: [],
    bridge: false,
    name: "",
    serves: [],
    groups: {},
    accept: [],
    accept_fields: [],
    slots: 4,
    credentials: "",
    tls: { ca: "", cert: "", key: "" },
    machines: {},
    replicas: 1,
    ack_wait_ms: 30_000,
  },
  prices: {},
};

export type SettingSource = "flag" | "environment" | "config.yaml" | "built-in";
