/**
 * The tools of the MCP server. Each tool is a verb of the command line, so it has the same checks and the same effect. Tools that start
 * programs or steer the pool are offered only if a person allows them.
 */
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { compileCheck, optional, shorten } from "../../codec/schema.ts";
import { type TProperties, type TSchema, Type } from "../../codec/typebox.ts";
import { isObject } from "../../core/json-object.ts";
import { NODE_STATUSES } from "../../core/roadmap.ts";
import { LISTED_STATES } from "../../view/page-of-tasks.ts";

/** Groups of tools that a person may allow. All clients may look, use mail, and enqueue tasks for agents of the settings. */
export const GROUPS = ["exec", "control"] as const;
export type Group = (typeof GROUPS)[number];

export interface Tool {
  spec: { name: string; description: string; inputSchema: TSchema };
  /** Undefined: the tool is always offered. */
  group: Group | undefined;
  /** True if it makes a task: the number of tasks is limited. */
  makesTask: boolean;
  verb: string;
  /** Exit codes that count as a success. */
  okCodes: readonly number[];
  /** Which end of a long answer is kept. */
  keeps: "first" | "last";
  /** What is wrong with these arguments; undefined when they are right. */
  check: (args: unknown) => { message: string } | undefined;
  /** The words after the verb. @param name the sender name of a client outside of runs */
  words: (args: Args, name: string | undefined) => string[];
}

/** Arguments that match the tool's input schema. */
export interface Args {
  [key: string]: string | number | boolean | string[] | undefined;
}

/** Longest time of one call of `wait` (s): clients give up after a minute. */
const WAIT_S_MAX = 50;

const Id = Type.String({ pattern: "^[^-\\u0000][^\\u0000]*$", maxLength: 256 });
const Text = Type.String({ minLength: 1, maxLength: 65_536, pattern: "^[^\\u0000]*$" });
const Texts = Type.Array(Text, { minItems: 1, maxItems: 100 });
const TIME = "^[0-9][0-9A-Za-z:.-]*$";
const Ids = Type.Array(Id, { minItems: 1, maxItems: 100 });

/** One of these words. The schema lists them, and so does the error for another one. */
function oneOf(words: readonly string[]): TSchema {
  const description = `one of ${words.join(", ")}`;
  return Type.Union(
    words.map((word) => Type.Literal(word)),
    { description },
  );
}

interface Draft {
  input?: TProperties;
  optional?: TProperties;
  group?: Group;
  makesTask?: boolean;
  okCodes?: readonly number[];
  keeps?: Tool["keeps"];
  words?: Tool["words"];
}

function tool(name: string, verb: string, description: string, draft: Draft = {}): Tool {
  const { group, input = {}, makesTask = false, words = () => [] } = draft;
  const { okCodes = [EXIT.ok], keeps = "first" } = draft;
  const schema = Type.Object(
    { ...input, ...optional(draft.optional ?? {}) },
    { additionalProperties: false },
  );
  const spec = { name, description, inputSchema: schema };
  const checkValues = compileCheck(schema);
  const check: Tool["check"] = (args) => checkNames(name, schema, args) ?? checkValues(args);
  return { spec, group, makesTask, verb, okCodes, keeps, check, words };
}

/** A model guesses names from other tools, and can mend its call when it hears the right ones. */
function checkNames(
  name: string,
  { properties }: TSchema,
  args: unknown,
): ReturnType<Tool["check"]> {
  const unknown = Object.keys(isObject(args) ? args : {}).find(
    (key) => !Object.hasOwn(properties, key),
  );
  if (unknown === undefined) return undefined;
  const known = Object.keys(properties).join(", ");
  const names = known === "" ? "it takes no arguments" : `its arguments are ${known}`;
  return { message: `${name} has no argument ${shorten(unknown)}: ${names}` };
}

/** A text as an argument. A space before a leading dash keeps it from being read as an option. */
function text(value: Args[string]): string {
  const word = String(value);
  return word.startsWith("-") ? ` ${word}` : word;
}

/** `--name=value` for each argument that is given. */
function given(args: Args, names: readonly string[]): string[] {
  return names.flatMap((name) => {
    const value = args[name];
    const option = `--${name.replaceAll("_", "-")}`;
    if (value === undefined || value === false) return [];
    if (value === true) return [option];
    return (Array.isArray(value) ? value : [value]).map((one) => `${option}=${text(one)}`);
  });
}

const list = (value: Args[string]): string[] => (Array.isArray(value) ? value : []);
const from = (name: string | undefined): string[] => (name === undefined ? [] : [`--from=${name}`]);

export const TOOLS: readonly Tool[] = [
  tool("status", "status", "What runs, what waits, and why nothing moves."),
  tool("tasks", "ls", "Lists tasks.", {
    optional: {
      state_is: oneOf([...LISTED_STATES, "skipped", "cancelled"]),
      limit: Type.Integer({ minimum: 1, maximum: 1000 }),
    },
    words: (args) => given(args, ["state_is", "limit"]),
  }),
  tool("task", "show", "Everything known about a task.", {
    input: { id: Id },
    words: ({ id }) => [text(id)],
  }),
  tool(
    "log",
    "logs",
    "The output of a task, or the conversation of a coding agent's task: the last of it when it is long.",
    { input: { id: Id }, keeps: "last", words: ({ id }) => [text(id)] },
  ),
  tool("wait", "wait", `Waits until tasks have ended, at most ${WAIT_S_MAX} seconds.`, {
    input: { ids: Ids },
    optional: { seconds: Type.Integer({ minimum: 1, maximum: WAIT_S_MAX }) },
    words: ({ ids, seconds = WAIT_S_MAX }) => [...list(ids), `--timeout=${String(seconds)}s`],
  }),
  tool("report", "report", "What happened, what waits for a person, and what to do next.", {
    optional: {
      since: Type.String({
        description: "a time such as 22:00, or a duration such as 12h",
        pattern: TIME,
      }),
    },
    words: (args) => given(args, ["since"]),
  }),
  tool("plan", "roadmap", "The plan as a tree with its statuses, or the part below one node.", {
    optional: { id: Id },
    words: ({ id }) => ["show", ...(id === undefined ? [] : [text(id)])],
  }),
  tool("plan_next", "roadmap", "The nodes that would start now, and why the others wait.", {
    okCodes: [EXIT.ok, EXIT.notFound],
    words: () => ["next", "--explain"],
  }),
  tool("agents", "agents", "The agents of this scope, and their unread mail."),
  tool("why_task", "why", "Why a task or a node of the plan has not ended, or how it failed.", {
    input: { id: Id },
    words: ({ id }) => [text(id)],
  }),
  tool("why", "agents", "When an agent was woken and by whom, and why its mail waits.", {
    input: { name: Id },
    words: ({ name }) => ["why", text(name)],
  }),
  tool(
    "say",
    "say",
    "Writes to agents by name, or to `human`. It is kept until they have read it.",
    {
      input: { to: Ids, text: Text },
      optional: {
        reply_to: Id,
        thread: Id,
        needs_human: Type.Boolean({ description: "true: a person has to see it" }),
      },
      words: (args, name) => [
        text(args["text"]),
        ...given(args, ["to", "reply_to", "thread", "needs_human"]),
        ...from(name),
      ],
    },
  ),
  tool("ask", "ask", "Asks a person, or an agent. The answer comes as mail.", {
    input: { question: Text },
    optional: { to: Id },
    words: (args, name) => [text(args["question"]), ...given(args, ["to"]), ...from(name)],
  }),
  tool("mail", "mail", "Your unread mail. With ack it counts as read: set it when you read it.", {
    optional: { ack: Type.Boolean() },
    words: (args, name) => [...(name === undefined ? [] : [name]), ...given(args, ["ack"])],
  }),
  tool("messages", "messages", "What was said in this scope.", {
    optional: { last: Type.Integer({ minimum: 1, maximum: 1000 }), mentions: Id, thread: Id },
    words: (args) => given({ last: 20, ...args }, ["last", "mentions", "thread"]),
  }),
  tool("enqueue", "enqueue", "Gives an agent of config.yaml a task. Prints its id.", {
    input: { agent: Id, prompt: Text },
    optional: { title: Text },
    makesTask: true,
    words: (args) => given(args, ["agent", "prompt", "title"]),
  }),
  tool("enqueue_program", "enqueue", "Runs a program as a task. Prints its id.", {
    input: { argv: Type.Array(Type.String({ pattern: "^[^\\u0000]*$" }), { minItems: 1 }) },
    optional: { cwd: Text, title: Text },
    group: "exec",
    makesTask: true,
    words: (args) => [...given(args, ["cwd", "title"]), "--", ...list(args["argv"])],
  }),
  tool(
    "spawn",
    "spawn",
    "Makes a new agent with the settings of another one, and gives it a task.",
    {
      input: { agent: Id, task: Text },
      optional: { name: Id, context: Text },
      group: "control",
      makesTask: true,
      words: (args, name) => [
        text(args["agent"]),
        text(args["task"]),
        ...given(args, ["name", "context"]),
        ...from(name),
        "--detach",
      ],
    },
  ),
  tool("interrupt", "interrupt", "Ends what an agent does now; it goes on with this text.", {
    input: { name: Id, text: Text },
    group: "control",
    words: (args) => [text(args["name"]), text(args["text"]), "--wait"],
  }),
  tool("answer", "answer", "Answers a question for a person.", {
    input: { id: Id, text: Text },
    group: "control",
    words: (args) => [text(args["id"]), text(args["text"])],
  }),
  tool("cancel", "cancel", "Ends tasks for good, waiting or running.", {
    input: { ids: Ids },
    group: "control",
    words: ({ ids }) => [...list(ids), "--wait"],
  }),
  tool("retry", "retry", "Puts failed tasks back into the inbox.", {
    input: { ids: Ids },
    group: "control",
    words: ({ ids }) => list(ids),
  }),
  tool("plan_add", "node", "Adds a task to the plan. Prints its id.", {
    input: { id: Id, title: Text },
    optional: { prompt: Text, agent: Id, parent: Id, after: Ids, acceptance: Texts },
    group: "control",
    makesTask: true,
    words: (args) => [
      "add",
      text(args["id"]),
      ...given(args, ["title", "prompt", "agent", "parent", "after", "acceptance"]),
    ],
  }),
  tool("plan_status", "node", "Changes the status of a node of the plan.", {
    input: { id: Id, status: oneOf([...NODE_STATUSES, "pending"]) },
    group: "control",
    words: ({ id, status }) => ["set-status", text(id), text(status)],
  }),
  tool("plan_reset", "roadmap", "Opens done and failed nodes of the plan again.", {
    optional: {
      ids: Type.Array(Id, { maxItems: 100, description: "all nodes if left out" }),
      failed: Type.Boolean({ description: "true: only failed ones" }),
      downstream: Type.Boolean({ description: "true: also what depends on them" }),
    },
    group: "control",
    words: (args) => ["reset", ...list(args["ids"]), ...given(args, ["failed", "downstream"])],
  }),
  tool("pause", "pause", "Nothing new starts.", { group: "control", words: () => ["--wait"] }),
  tool("resume", "resume", "Tasks start again.", { group: "control", words: () => ["--wait"] }),
];
