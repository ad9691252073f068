/**
 * The tools of the MCP server: each is a verb of the command line, so it has the same checks and the same effect. Those that start
 * programs or steer the pool are there only when a person allows them.
 */
import { compileCheck, optional } from "../../codec/schema.ts";
import { type TProperties, type TSchema, Type } from "../../codec/typebox.ts";

/** What a person may allow beside looking, mail, and tasks for agents of the settings. */
export const GROUPS = ["exec", "control"] as const;
export type Group = (typeof GROUPS)[number];

export interface Tool {
  spec: { name: string; description: string; inputSchema: TSchema };
  /** Undefined: it is always there. */
  group: Group | undefined;
  /** It makes a task, of which there is a limit. */
  makesTask: boolean;
  verb: string;
  /** What is wrong with these arguments; undefined: nothing. */
  check: (args: unknown) => { message: string } | undefined;
  /** The words after the verb. @param name under which a client speaks that is no run */
  words: (args: Args, name: string | undefined) => string[];
}

/** As the input of the tool says. */
export interface Args {
  [key: string]: string | number | boolean | string[] | undefined;
}

/** Longest time of one call of `wait` (s): clients give up after a minute. */
const WAIT_S_MAX = 50;

const Id = Type.String({ pattern: "^[^-\\u0000][^\\u0000]*$", maxLength: 256 });
const Text = Type.String({ minLength: 1, maxLength: 65_536, pattern: "^[^\\u0000]*$" });
const Ids = Type.Array(Id, { minItems: 1, maxItems: 100 });

interface Draft {
  input?: TProperties;
  optional?: TProperties;
  group?: Group;
  makesTask?: boolean;
  words?: Tool["words"];
}

function tool(name: string, verb: string, description: string, draft: Draft = {}): Tool {
  const { group, input = {}, makesTask = false, words = () => [] } = draft;
  const schema = Type.Object(
    { ...input, ...optional(draft.optional ?? {}) },
    { additionalProperties: false },
  );
  const spec = { name, description, inputSchema: schema };
  return { spec, group, makesTask, verb, check: compileCheck(schema), words };
}

/** A text that begins with a dash is no option: so it does not begin with one. */
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
      state_is: Type.String({ description: "waiting, ready, held, running, done or failed" }),
      limit: Type.Integer({ minimum: 1, maximum: 1000 }),
    },
    words: (args) => given(args, ["state_is", "limit"]),
  }),
  tool("task", "show", "Everything known about a task.", {
    input: { id: Id },
    words: ({ id }) => [text(id)],
  }),
  tool("log", "logs", "The output of a task, or the conversation of a coding agent's task.", {
    input: { id: Id },
    words: ({ id }) => [text(id)],
  }),
  tool("wait", "wait", `Waits until tasks have ended, at most ${WAIT_S_MAX} seconds.`, {
    input: { ids: Ids },
    optional: { seconds: Type.Integer({ minimum: 1, maximum: WAIT_S_MAX }) },
    words: ({ ids, seconds = WAIT_S_MAX }) => [...list(ids), `--timeout=${String(seconds)}s`],
  }),
  tool("agents", "agents", "The agents of this scope, and their unread mail."),
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
  tool("pause", "pause", "Nothing new starts.", { group: "control", words: () => ["--wait"] }),
  tool("resume", "resume", "Tasks start again.", { group: "control", words: () => ["--wait"] }),
];
