/** Every verb with its summary and a function that loads its module. The list itself loads no module. */
import { suggest } from "../../core/suggest.ts";
import { type CommandModule, type CommandSpec, ErrUsage } from "./command-spec.ts";

export interface RegistryEntry {
  group: string;
  summary: string;
  load(): Promise<CommandModule>;
  /** Set when a run of an agent may not use the verb: what the run should do instead. */
  insteadInRun?: string;
  /** Left out of the overview. */
  hidden?: boolean;
}

const ASK = "end the run with a result that says what you need; a person steers the pool";
const NODES = "name new nodes in next.addNodes of your <result>";

const control = (): Promise<CommandModule> => import("../commands/control.ts");

/** Verbs of plugins are added: see `foreign-verbs.ts`. */
export const REGISTRY: Record<string, RegistryEntry> = {
  init: {
    group: "Start",
    summary: "make a state tree; --sample adds a small plan",
    load: () => import("../commands/init.ts"),
  },
  run: {
    group: "Start",
    insteadInRun: ASK,
    summary: "run the supervisor with its pool in the foreground",
    load: () => import("../commands/run.ts"),
  },
  worker: {
    group: "Start",
    insteadInRun: ASK,
    summary: "run one more worker process on the same state",
    load: () => import("../commands/worker.ts"),
  },
  bridge: {
    group: "Start",
    insteadInRun: ASK,
    summary: "carry tasks between this state tree and other machines",
    load: () => import("../../parts/cluster/verbs/bridge.ts"),
  },
  cluster: {
    group: "Start",
    insteadInRun: ASK,
    summary: "show the machines that work together, or drain one",
    load: () => import("../../parts/cluster/verbs/cluster.ts"),
  },
  demo: {
    group: "Start",
    summary: "see it work on a temporary state tree",
    load: () => import("../../parts/demo/command.ts"),
  },

  enqueue: {
    group: "Tasks",
    summary: "put tasks into the inbox",
    load: () => import("../commands/enqueue.ts"),
  },
  list: {
    group: "Tasks",
    summary: "Markdown lists as plans: how far their boxes are",
    load: () => import("../../parts/list/command.ts"),
  },
  wait: {
    group: "Tasks",
    summary: "wait until tasks have settled",
    load: () => import("../commands/wait.ts"),
  },
  schedule: {
    group: "Tasks",
    insteadInRun: ASK,
    summary: "tasks that are repeated: when they run, pause, resume, run one now",
    load: () => import("../../parts/schedules/command.ts"),
  },
  retry: {
    group: "Tasks",
    insteadInRun: ASK,
    summary: "put failed tasks back into the inbox",
    load: () => import("../commands/retry.ts"),
  },
  say: {
    group: "Tasks",
    summary: "tell a coding agent something, also while it runs",
    load: () => import("../commands/say.ts"),
  },
  attach: {
    group: "Tasks",
    insteadInRun: ASK,
    summary: "take over a task's session on the agent's own screen, and give it back",
    load: () => import("../commands/attach.ts"),
  },
  continue: {
    group: "Tasks",
    insteadInRun: ASK,
    summary: "a new task in the session of a finished one",
    load: () => import("../commands/continue.ts"),
  },
  cancel: {
    group: "Tasks",
    insteadInRun: ASK,
    summary: "end tasks for good, waiting or running",
    load: control,
  },

  roadmap: {
    group: "Plan",
    summary: "check the plan, show it, say what comes next",
    load: () => import("../../parts/plan/verbs/roadmap.ts"),
  },
  node: {
    group: "Plan",
    insteadInRun: NODES,
    summary: "add nodes to the plan, change them and their status",
    load: () => import("../../parts/plan/verbs/node.ts"),
  },
  dep: {
    group: "Plan",
    insteadInRun: NODES,
    summary: "what a node of the plan waits for",
    load: () => import("../../parts/plan/verbs/dep.ts"),
  },
  answer: {
    group: "Plan",
    insteadInRun: ASK,
    summary: "answer a node, a budget or an agent that waits for a person",
    load: () => import("../commands/answer.ts"),
  },
  kv: {
    group: "Plan",
    summary: "values that nodes leave for each other",
    load: () => import("../commands/kv.ts"),
  },

  status: {
    group: "Look",
    summary: "what runs, what waits, and why nothing moves",
    load: () => import("../commands/status.ts"),
  },
  top: {
    group: "Look",
    summary: "the pool on a screen that follows it, with keys",
    load: () => import("../../parts/top/command.ts"),
  },
  web: {
    group: "Look",
    summary: "the pool, its tasks and their logs in a browser on this machine",
    load: () => import("../../parts/web/command.ts"),
  },
  ls: { group: "Look", summary: "list tasks", load: () => import("../commands/ls.ts") },
  show: {
    group: "Look",
    summary: "everything known about a task",
    load: () => import("../commands/show.ts"),
  },
  logs: {
    group: "Look",
    summary: "a task's output, also while it runs",
    load: () => import("../commands/logs.ts"),
  },
  events: {
    group: "Look",
    summary: "lifecycle events as JSON lines",
    load: () => import("../commands/events.ts"),
  },

  cost: {
    group: "Look",
    summary: "tokens and money that coding agents used",
    load: () => import("../../parts/costs/command.ts"),
  },
  why: {
    group: "Look",
    summary: "why a task is where it is, and what would move it",
    load: () => import("../../parts/why/command.ts"),
  },
  report: {
    group: "Look",
    summary: "what happened in a night, and what to do next",
    load: () => import("../../parts/report/command.ts"),
  },
  stats: {
    group: "Look",
    summary: "how many tasks ended, how long they waited and ran",
    load: () => import("../../parts/stats/command.ts"),
  },
  metrics: {
    group: "Look",
    summary: "the numbers of the pool for Prometheus, or for a file of node_exporter",
    load: () => import("../../parts/metrics/command.ts"),
  },

  notify: {
    group: "Look",
    insteadInRun: ASK,
    summary: "whom mailchute tells what happens; notify test tries it",
    load: () => import("../../parts/notify/command.ts"),
  },

  ask: {
    group: "Mail",
    summary: "ask a person or an agent, and wait for the answer",
    load: () => import("../../parts/mail/verbs/ask.ts"),
  },
  spawn: {
    group: "Mail",
    summary: "a new agent with the settings of another one, and a task for it",
    load: () => import("../../parts/mail/verbs/spawn.ts"),
  },
  messages: {
    group: "Mail",
    summary: "what agents and people of a scope say to each other",
    load: () => import("../../parts/mail/verbs/messages.ts"),
  },
  mail: {
    group: "Mail",
    summary: "unread mail of an agent, or of you",
    load: () => import("../../parts/mail/verbs/mail.ts"),
  },
  agents: {
    group: "Mail",
    summary: "agents of a scope, and how much unread mail each has",
    load: () => import("../../parts/mail/verbs/agents.ts"),
  },
  release: {
    group: "Mail",
    insteadInRun: ASK,
    summary: "pass on mail of other projects, which is held for you",
    load: () => import("../../parts/mail/verbs/release.ts"),
  },
  interrupt: {
    group: "Mail",
    insteadInRun: ASK,
    summary: "stop what an agent does now; it goes on with your text",
    load: () => import("../../parts/mail/verbs/interrupt.ts"),
  },
  mcp: {
    group: "Mail",
    summary: "an MCP server, so that any agent can look, have mail and give tasks",
    load: () => import("../../parts/mcp/command.ts"),
  },
  watch: {
    group: "Mail",
    summary: "what happens among the agents of a scope, as it happens",
    load: () => import("../../parts/mail/verbs/watch.ts"),
  },
  archive: {
    group: "Mail",
    insteadInRun: ASK,
    summary: "take agents off the list, whose names are free then",
    load: () => import("../../parts/mail/verbs/archive.ts"),
  },

  pause: { group: "Steer", insteadInRun: ASK, summary: "claim nothing new", load: control },
  resume: { group: "Steer", insteadInRun: ASK, summary: "go on claiming", load: control },
  "set-workers": {
    group: "Steer",
    insteadInRun: ASK,
    summary: "change the number of slots",
    load: control,
  },
  edit: {
    group: "Steer",
    insteadInRun: ASK,
    summary: "change a task that waits: priority, time, dependencies, or all in your editor",
    load: () => import("../commands/edit.ts"),
  },
  urgent: {
    group: "Steer",
    insteadInRun: ASK,
    summary: "let waiting tasks start next",
    load: () => import("../commands/edit.ts"),
  },
  group: {
    group: "Steer",
    insteadInRun: ASK,
    summary: "groups of tasks: how many of each run, more or fewer at once, pause",
    load: () => import("../../parts/groups/command.ts"),
  },
  limit: {
    group: "Steer",
    insteadInRun: ASK,
    summary: "limits that groups share, and rates: what they are now, change them",
    load: () => import("../../parts/groups/command.ts"),
  },
  replan: {
    group: "Steer",
    insteadInRun: ASK,
    summary: "plan again from the roadmap now",
    load: control,
  },
  stop: {
    group: "Steer",
    insteadInRun: ASK,
    summary: "stop the supervisor",
    load: () => import("../commands/stop.ts"),
  },
  control: {
    group: "Steer",
    insteadInRun: ASK,
    summary: "enqueue a control command and print its id",
    load: control,
  },
  chat: {
    group: "Steer",
    insteadInRun: ASK,
    summary: "a prompt that steers the supervisor",
    load: () => import("../../parts/chat/command.ts"),
  },

  review: {
    group: "Repository",
    summary: "what a task has changed, and how far its landing is",
    load: () => import("../../parts/landing/verbs/review.ts"),
  },
  land: {
    group: "Repository",
    insteadInRun: ASK,
    summary: "bring the work of a task into its target branch",
    load: () => import("../../parts/landing/verbs/land.ts"),
  },
  prove: {
    group: "Repository",
    summary: "what a landing has proven; --again tries it once more",
    load: () => import("../../parts/landing/verbs/prove.ts"),
  },
  reject: {
    group: "Repository",
    insteadInRun: ASK,
    summary: "give the work of a task back to its agent, with a text",
    load: () => import("../../parts/landing/verbs/reject.ts"),
  },
  worktrees: {
    group: "Repository",
    summary: "worktrees of tasks: what each holds, and why it stays",
    load: () => import("../../parts/worktrees/verbs/worktrees.ts"),
  },
  rescue: {
    group: "Repository",
    summary: "bring back work that was saved from worktrees",
    load: () => import("../../parts/worktrees/verbs/rescue.ts"),
  },
  health: {
    group: "Upkeep",
    summary: "by exit code: whether the pool is well",
    load: () => import("../../parts/health/command.ts"),
  },
  service: {
    group: "Upkeep",
    insteadInRun: ASK,
    summary: "let systemd start the pool with the machine, and watch it",
    load: () => import("../../parts/service/command.ts"),
  },
  doctor: {
    group: "Upkeep",
    summary: "check the machine, the mailbox and the settings",
    load: () => import("../../parts/doctor/command.ts"),
  },
  recover: {
    group: "Upkeep",
    insteadInRun: ASK,
    summary: "take back what dead processes left",
    load: () => import("../commands/recover.ts"),
  },
  clean: {
    group: "Upkeep",
    insteadInRun: ASK,
    summary: "remove what is past its retention",
    load: () => import("../commands/clean.ts"),
  },
  trees: {
    group: "Upkeep",
    summary: "names of state trees, for --state NAME and status --all",
    load: () => import("../commands/trees.ts"),
  },
  config: {
    group: "Upkeep",
    summary: "each setting with its source",
    load: () => import("../commands/config.ts"),
  },
  schema: {
    group: "Upkeep",
    summary: "print a JSON Schema",
    load: () => import("../commands/schema.ts"),
  },
  completion: {
    group: "Upkeep",
    summary: "print a completion script for a shell",
    load: () => import("../commands/completion.ts"),
  },
  help: {
    group: "Upkeep",
    summary: "help on a command",
    load: () => import("../commands/help.ts"),
  },
};

function findEntry(verb: string): RegistryEntry | undefined {
  return Object.hasOwn(REGISTRY, verb) ? REGISTRY[verb] : undefined;
}

/** The declaration of a verb. @throws ErrUsage when there is no such verb */
export async function loadCommand(verb: string): Promise<CommandSpec> {
  const entry = findEntry(verb);
  if (entry === undefined) {
    const near = suggest(verb, Object.keys(REGISTRY));
    throw new ErrUsage(
      `there is no command ${JSON.stringify(verb)}`,
      near === undefined
        ? "`mailchute help` lists all commands"
        : `did you mean "mailchute ${near}"?`,
    );
  }
  const module = await entry.load();
  const spec = module.commands?.[verb] ?? module.command;
  if (spec === undefined) throw new Error(`the module of ${verb} exports no command`);
  return spec;
}
