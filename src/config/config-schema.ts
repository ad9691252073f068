/** The JSON Schema of `config.yaml`. */

import { optional } from "../codec/schema.ts";
import {
  CALLBACK_FIELDS,
  CacheSchema,
  CHECK_FIELDS,
  LAND_FIELDS,
  LimitNames,
  NonEmpty,
  PermissionsSchema,
  Programs,
  RUN_LIMITS,
  RunLimitsSchema,
  TASK_BUDGET,
  Usd,
  Whole,
} from "../codec/shared-fields.ts";
import { type SchemaOptions, type TProperties, Type } from "../codec/typebox.ts";
import {
  BATCH_CONCURRENCY_MAX,
  BURST_MAX,
  LIMIT_NAME,
  MAX_ATTEMPTS_MAX,
  TIMER_MS_MAX,
  WORKERS_MAX,
} from "../core/limits.ts";
import { NOTIFY_FORMATS, NOTIFY_TOPICS } from "../core/notify-settings.ts";
import { PHASES } from "../core/phases.ts";
import { RATE_PATTERN } from "../core/rate.ts";
import { AGENT_KINDS } from "../core/settings.ts";

const Count = (minimum: number, maximum: number, description: string) =>
  Type.Integer({ minimum, maximum, description });
const Ms = (minimum: number, description: string) => Count(minimum, TIMER_MS_MAX, description);
const Bytes = (minimum: number, description: string) =>
  Count(minimum, Number.MAX_SAFE_INTEGER, description);
const Days = (description: string) => Type.Number({ minimum: 0, maximum: 36_500, description });
const OneOf = (words: readonly string[], options: SchemaOptions = {}) =>
  Type.Union(
    words.map((word) => Type.Literal(word)),
    options,
  );
const Texts = (description?: string) =>
  Type.Array(NonEmpty, description === undefined ? {} : { description });
const Strict = { additionalProperties: false } as const;
/** An object of settings. All of them are optional. */
const Settings = (properties: TProperties, options: SchemaOptions = {}) =>
  Type.Object(optional(properties), { ...options, ...Strict });

const DAY_BUDGET = {
  day_usd: Usd("US dollars on a day of UTC; above it a person is asked; 0 = no limit"),
  day_hard_usd: Usd("US dollars on a day; above it runs are interrupted; 0 = no limit"),
  day_tokens: Whole("tokens on a day; 0 = no limit"),
  day_hard_tokens: Whole("tokens on a day; above them runs are interrupted; 0 = no limit"),
  day_turns: Whole("turns on a day; 0 = no limit"),
  day_hard_turns: Whole("turns on a day; above them runs are interrupted; 0 = no limit"),
  day_time_ms: Whole("time of all runs on a day; 0 = no limit"),
  day_hard_time_ms: Whole("time on a day; above it runs are interrupted; 0 = no limit"),
};

/** Of an account or a machine. */
const SHORT_NAME = "^[a-z0-9][a-z0-9-]{0,31}$";
const ShortName = Type.String({ pattern: SHORT_NAME });

/** From the root, or from the home directory. */
const Place = Type.String({ pattern: "^(?:/|~/)[^\\u0000]*$" });
const SandboxSchema = Type.Union(
  [
    Type.Literal("open"),
    Settings({
      write: Type.Array(Place),
      read_deny: Type.Array(Place),
      network: Type.Union([
        OneOf(["open", "none"]),
        Type.Object({ allow: Type.Array(NonEmpty, { minItems: 1 }) }, Strict),
      ]),
      missing: OneOf(["refuse", "open"]),
    }),
  ],
  { description: "walls around programs, setup and checks: open (none), or what they may do" },
);

const AgentSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 128 }),
    kind: Type.Union(
      [
        ...AGENT_KINDS.map((kind) => Type.Literal(kind)),
        Type.String({ minLength: 1, maxLength: 64 }),
      ],
      { description: `${AGENT_KINDS.join(", ")}, or a kind that a plugin brings` },
    ),
    ...optional({
      settings: Type.Record(Type.String(), Type.Unknown(), {
        description: "settings for the kind of a plugin",
      }),
      program: NonEmpty,
      args: Type.Array(Type.String({ pattern: "^[^\\u0000]*$" })),
      command: Type.Array(NonEmpty, {
        minItems: 1,
        description: "of an acp agent: its program and arguments",
      }),
      screen: Type.Array(Type.String({ minLength: 1 }), {
        minItems: 1,
        description: "what attach opens, with {session} in place of the id",
      }),
      auth_method: { ...NonEmpty, description: "of an acp agent: how it logs in" },
      trust: OneOf(["end_turn"], {
        description: "of an acp agent: its word is enough, and its tasks need no checks",
      }),
      module: NonEmpty,
      types: Texts(),
      capabilities: Texts(),
      default: Type.Boolean(),
      timeout_ms: Ms(1, "longest run of this agent's tasks"),
      slots: Count(0, WORKERS_MAX, "how many of its tasks may be in work at once"),
      usual_memory_bytes: Bytes(0, "what its runs need at their peak, until their records tell"),
      fallback: Type.Array(NonEmpty, {
        maxItems: 16,
        uniqueItems: true,
        description: "agents that take its tasks over, in this order, while it is at its limit",
      }),
      model: NonEmpty,
      effort: { ...NonEmpty, description: "of claude and codex: low, medium, high, …" },
      mode: OneOf(["exec", "app-server"], {
        description:
          "of a codex: one `codex exec` a run (default), or one `codex app-server`, which takes messages while it runs",
      }),
      where: Type.String({
        pattern: SHORT_NAME,
        description: "of a remote agent: the machines at which its tasks run; default: any",
      }),
      as: Type.String({
        minLength: 1,
        maxLength: 128,
        description: "of a remote agent: its name there; default: the same",
      }),
      env: Type.Record(Type.String(), Type.String(), { description: "variables of its program" }),
      account: Type.String({
        pattern: SHORT_NAME,
        description: "whose quota it uses; default: default",
      }),
      accounts: Type.Array(ShortName, {
        minItems: 1,
        uniqueItems: true,
        description: "several accounts instead, the best first: while one is closed, the next one",
      }),
      permissions: PermissionsSchema,
      mcp: Type.Record(
        Type.String({ pattern: "^[A-Za-z0-9_-]{1,64}$" }),
        Type.Object({ command: Type.Array(NonEmpty, { minItems: 1 }) }, Strict),
        { description: "by name: MCP servers that a coding agent starts", ...Strict },
      ),
      meter: Type.Union([Type.Boolean(), Settings({ record: Type.Boolean(), replay: NonEmpty })], {
        description: "counts what its program asks of the services of its models",
      }),
      budget: Type.Object(optional({ ...TASK_BUDGET, ...DAY_BUDGET }), {
        ...Strict,
        description: "how much each of its tasks, and all of them on a day, may spend",
      }),
      run_limits: RunLimitsSchema,
      sandbox: SandboxSchema,
      idle_ms: Ms(
        1000,
        "a coding agent that is silent for so long, with no tool running, is stopped",
      ),
      background_ms: Ms(1000, "how long it may wait for a background task after its work"),
      worktree: OneOf(["auto", "none"], {
        description: "auto: its tasks run in git worktrees of their own; default: none",
      }),
      setup: Programs("programs that make a new worktree ready, each of which must exit with 0"),
      cache: CacheSchema,
      ...CHECK_FIELDS,
      ...LAND_FIELDS,
      phases: Type.Array(OneOf(PHASES), {
        minItems: 1,
        uniqueItems: true,
        description:
          "phases of its work on nodes of the plan, in order; default: by the node's type",
      }),
      result: OneOf(["required", "optional"], {
        description:
          "whether a program's run of a node must end with a <result>; default: required",
      }),
    }),
  },
  Strict,
);

const PluginSchema = Type.Union([
  NonEmpty,
  Type.Object(
    { path: NonEmpty, ...optional({ settings: Type.Record(Type.String(), Type.Unknown()) }) },
    Strict,
  ),
]);

const AccountSchema = Settings({
  env: Type.Record(Type.String(), Type.String(), {
    description: "variables that lead a program to this login, such as CODEX_HOME",
  }),
  reserve_pct: Count(0, 99, "this much of each window of the quota is left to its owner"),
  meter: Type.Boolean({ description: "its agents have a meter, unless they say otherwise" }),
});

const Slots = Count(0, WORKERS_MAX, "how many of its tasks may be in work at once");
const GroupSchema = Settings({ slots: Slots, limits: LimitNames, ...CALLBACK_FIELDS });

const ClusterMachineSchema = Settings({
  serves: Type.Array(ShortName),
  sends: Type.Array(ShortName),
});

const LimitSchema = Type.Union(
  [
    Slots,
    Settings({
      slots: Slots,
      rate: Type.String({
        pattern: RATE_PATTERN,
        description: "starts of runs in a time, such as 60/min; s, min, h or d",
      }),
      burst: Count(1, BURST_MAX, "so many of these starts may come at once; default: 1"),
    }),
  ],
  { description: "a number of slots, or slots, rate (60/min; s, min, h or d) and burst" },
);

const PriceSchema = Type.Object(
  {
    input_usd: Usd("US dollars for a million input tokens"),
    output_usd: Usd("US dollars for a million output tokens"),
    ...optional({ cached_input_usd: Usd("the same for cached input; default: input_usd") }),
  },
  Strict,
);

const NotifySchema = Type.Object(
  {
    name: ShortName,
    ...optional({
      command: Type.Array(NonEmpty, { minItems: 1, description: "a program and its arguments" }),
      url: NonEmpty,
      format: OneOf(NOTIFY_FORMATS, {
        description: "what is posted to the url; default: webhook",
      }),
      secret_env: { ...NonEmpty, description: "the variable with the secret that signs a webhook" },
      token_env: { ...NonEmpty, description: "the variable with a token for the url" },
      on: Type.Array(OneOf(NOTIFY_TOPICS), {
        minItems: 1,
        uniqueItems: true,
        description: "of what; default: all but drained and morning",
      }),
      at: Type.String({
        pattern: "^(?:[01]\\d|2[0-3]):[0-5]\\d$",
        description: "when the morning report comes, as 07:00",
      }),
      every_ms: Ms(0, "between two messages; what happens in between is one message"),
    }),
  },
  Strict,
);

/** The JSON Schema of `config.yaml`. */
export const ConfigSchema = Settings(
  {
    workers: Count(0, WORKERS_MAX, "slots over all worker processes"),
    processes: Count(1, 64, "worker processes"),
    durability: OneOf(["power", "process"], {
      description: "what acknowledged work survives: a power cut, or the death of any process",
    }),
    retention: Settings({
      outbox_days: Days("results are kept this long"),
      failed_days: Days("failed tasks are kept this long"),
      journal_days: Days("rotated journals are kept this long"),
      journal_bytes_max: Bytes(0, "most that all rotated journals together may have"),
      evidence_days: Days(
        "evidence of nodes that are no longer in the plan, and of earlier runs, is kept this long",
      ),
      landed_days: Days("refs, files and saves of landed work are kept this long"),
      saves_days: Days("work that was saved from worktrees is kept this long"),
      cache_days: Days(
        "what setup has made for several worktrees is kept this long after its last use",
      ),
    }),
    retry: Settings({
      max_attempts: Count(1, MAX_ATTEMPTS_MAX, "N means N runs"),
      backoff_ms: Ms(0, "wait before the second run; doubles each time"),
      backoff_max_ms: Ms(0, "longest wait between two runs"),
    }),
    lease_ttl_ms: Ms(
      100,
      "how long a worker may be silent when it cannot be seen whether it lives",
    ),
    heartbeat_ms: Ms(10, "how often a worker renews its lease"),
    stall_ms: Ms(
      0,
      "a worker that lives but has not moved for this long is ended, unless a function of a task runs in it; 0 = never",
    ),
    settle_ms: Ms(0, "a file that does not parse is refused after this long without a change"),
    grace_ms: Ms(0, "time from SIGTERM to SIGKILL"),
    until_grace_ms: Ms(0, "how long landings still start after the time of run --until"),
    landing: Settings({
      batch: Count(1, 100, "most works that are brought together and checked once as they land"),
    }),
    timeout_ms: Ms(0, "longest run of a task without timeout_ms; 0 = no limit"),
    sweep_ms: Ms(10, "longest wait before all folders are scanned again"),
    output_bytes_max: Bytes(1024, "a run that writes more into its logs and its folder is stopped"),
    run_limits: Settings(RUN_LIMITS, {
      description: "how much the programs of one run may use, unless its task or its agent says it",
    }),
    sandbox: SandboxSchema,
    batch_bytes_max: Bytes(1024, "a larger batch is refused"),
    batch_results_bytes_max: Bytes(1024, "a batch with larger results ends with an error"),
    batch_concurrency: Count(
      1,
      BATCH_CONCURRENCY_MAX,
      "lines of a batch that run at once, if their agent is a function",
    ),
    free_bytes_min: Bytes(
      0,
      "nothing new starts while the disk has less free than this, or than an eighth of its size if that is less; 0 = no limit",
    ),
    free_memory_min: Bytes(
      0,
      "runs that need much memory wait while less than this would be left; 0 = memory is not looked at",
    ),
    allow_open_secrets: Type.Boolean({
      description: "files of env_from that all users can read are used, too",
    }),
    env_allow: Texts("variables that programs get beside PATH, HOME and the like"),
    roots: Texts("directories under which cwd and worktree must lie"),
    worktrees_dir: { ...NonEmpty, description: "where worktrees of tasks are made" },
    worktree_ignored_may_go: Texts(
      "ignored files that keep no worktree, such as node_modules/; patterns as in a .gitignore",
    ),
    mail_enabled: Type.Boolean({ description: "true: agents are woken for their mail" }),
    accept_mail_from: Texts('projects whose agents may write to yours, beside your own; "*": all'),
    orchestrator: Type.String({
      pattern: "^(?:[^:]+:){0,2}[A-Za-z0-9_](?:[A-Za-z0-9._/-]*[A-Za-z0-9_])?$",
      description: "the agent that is told how others end: a name, or an address",
    }),
    spawn: Settings({
      depth_max: Count(
        0,
        100,
        "how deep agents spawn each other; 1: only people and your agents do",
      ),
      agents_max: Count(0, 10_000, "spawned agents of a scope that may be there at once"),
      per_hour_max: Count(0, 10_000, "agents that may be spawned in a scope within an hour"),
      archive_ms: Ms(0, "a spawned agent without work and mail for so long is archived; 0 = never"),
    }),
    data: { ...NonEmpty, description: "where the mail of all scopes is kept" },
    uids: Type.Array(Type.Integer({ minimum: 0 }), {
      description: "users, beside you and root, whose files are accepted",
    }),
    mailbox_enabled: Type.Boolean({
      description: "false: the task mailbox is not touched; only commands are taken",
    }),
    plugins: Type.Array(PluginSchema, {
      description: "modules or packages of yours that bring kinds of agents, gates, verbs, pages",
    }),
    agents: Type.Array(AgentSchema),
    accounts: Type.Record(ShortName, AccountSchema, {
      description: "by name, as agents name them",
    }),
    groups: Type.Record(NonEmpty, GroupSchema, {
      description: "by name, as tasks give it in group",
    }),
    limits: Type.Record(Type.String({ pattern: LIMIT_NAME }), LimitSchema, {
      description: "by name, as tasks and groups give them in limits",
    }),
    schedules: Type.Record(Type.String(), Type.Unknown(), {
      description: "by name: the fields of a file in schedules/, see docs/schedules.md",
    }),
    ...CALLBACK_FIELDS,
    budgets: Settings(DAY_BUDGET, {
      description: "how much all coding agents of this tree may spend",
    }),
    notify: Type.Array(NotifySchema, { description: "whom mailchute tells what happens" }),
    web: Settings(
      {
        public_url: Type.String({
          pattern: "^(https://[^/\\s]+)?$",
          description:
            "https://NAME[:PORT] under which people open the pages; messages get links to it",
        }),
      },
      { description: "the pages for a browser" },
    ),
    cluster: Settings(
      {
        servers: Type.Array(NonEmpty, {
          description: "addresses of NATS servers; none: it works alone",
        }),
        bridge: Type.Boolean({ description: "true: run starts the bridge, and keeps it" }),
        name: Type.String({
          pattern: "^(?:[a-z0-9][a-z0-9-]{0,31})?$",
          description: "the name of this machine; default: that of the host",
        }),
        serves: Type.Array(ShortName, {
          description: "what tasks of others may name in where, to run here; none: it only sends",
        }),
        groups: Type.Record(NonEmpty, ShortName, {
          description: "by name: the groups whose tasks run at other machines, and their targets",
        }),
        accept: Texts("agents of this machine that may work for others"),
        accept_fields: Texts("fields of tasks of others that are taken, such as exec"),
        slots: Count(0, WORKERS_MAX, "how many tasks of others may be here at once"),
        credentials: Type.String({
          description: "a file with credentials for the servers, or with the seed of an nkey",
        }),
        tls: Settings({
          ca: Type.String({
            description: "a file with the authority of the servers' certificates",
          }),
          cert: Type.String({ description: "a file with a certificate of this machine" }),
          key: Type.String({ description: "a file with the key of that certificate" }),
        }),
        machines: Type.Record(ShortName, ClusterMachineSchema, {
          description: "by name: the machines for which cluster init makes rights and streams",
        }),
        replicas: Count(1, 5, "on how many servers each message is kept"),
        ack_wait_ms: Ms(
          1000,
          "after so long without a sign of life a task is given to another machine",
        ),
      },
      { description: "how this tree works together with other machines" },
    ),
    prices: Type.Record(Type.String(), PriceSchema, {
      description: "by model, for programs that give no price themselves",
    }),
  },
  { $id: "config", title: "mailchute config.yaml" },
);
