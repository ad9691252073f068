/** The commands of `chat`: turns a line into an action, or explains why it is no command. Also checks what an agent proposes. Pure. */

import { ErrUsage } from "../../cli/shell/command-spec.ts";
import { WORKERS_MAX } from "../../core/limits.ts";
import { explainBadId } from "../../core/names.ts";
import { suggest } from "../../core/suggest.ts";

export type Action =
  /** A command for the supervisor. */
  | { kind: "send"; command: string; args: Record<string, unknown> }
  /** A verb of the command line that only reads. */
  | { kind: "look"; verb: "status" | "ls" | "logs"; words: string[] }
  | { kind: "retry"; id: string }
  | { kind: "help" }
  | { kind: "exit" };

interface SlashCommand {
  usage: string;
  help: string;
  /** Which ids completion offers. */
  ids?: "live" | "failed" | "any";
  /** Which words completion offers. */
  words?: readonly string[];
  /** @throws ErrUsage */
  parse(words: readonly string[]): Action;
}

const STATES = ["waiting", "ready", "held", "running", "done", "failed"];

export const SLASH_COMMANDS: Readonly<Record<string, SlashCommand>> = {
  pause: {
    usage: "/pause",
    help: "start no new tasks; running tasks complete",
    parse: (words) => send("pause", words),
  },
  resume: { usage: "/resume", help: "go on", parse: (words) => send("resume", words) },
  workers: {
    usage: "/workers N",
    help: "change the number of slots",
    parse(words) {
      const [text] = exactly(words, 1, "workers");
      const workers = /^\d{1,5}$/.test(text ?? "") ? Number(text) : Number.NaN;
      if (!(workers <= WORKERS_MAX))
        throw new ErrUsage(
          `/workers needs a whole number from 0 to ${WORKERS_MAX}, found ${text === undefined ? "none" : JSON.stringify(text)}`,
          "usage: /workers N",
        );
      return { kind: "send", command: "set-workers", args: { workers } };
    },
  },
  replan: {
    usage: "/replan",
    help: "reopen the plan",
    parse: (words) => send("replan", words),
  },
  cancel: {
    usage: "/cancel ID [final]",
    help: "stop a task and put it back; with final: end it for good",
    ids: "live",
    parse(words) {
      const isFinal = words[1] === "final" || words[1] === "--final";
      const [id] = exactly(isFinal ? words.slice(0, 1) : words, 1, "cancel");
      const node = idOf(id, "cancel");
      return {
        kind: "send",
        command: "cancel",
        args: isFinal ? { node, final: true } : { node },
      };
    },
  },
  retry: {
    usage: "/retry ID",
    help: "put a failed task back into the inbox",
    ids: "failed",
    parse: (words) => ({ kind: "retry", id: idOf(exactly(words, 1, "retry")[0], "retry") }),
  },
  status: {
    usage: "/status",
    help: "what runs, what waits, and why nothing moves",
    parse(words) {
      exactly(words, 0, "status");
      return { kind: "look", verb: "status", words: [] };
    },
  },
  ls: {
    usage: "/ls [STATE]",
    help: `list tasks; STATE: ${STATES.join(", ")}`,
    words: STATES,
    parse(words) {
      if (words.length === 0) return { kind: "look", verb: "ls", words: [] };
      const [state = ""] = exactly(words, 1, "ls");
      if (!STATES.includes(state)) {
        const near = suggest(state, STATES);
        throw new ErrUsage(
          `/ls knows no state ${JSON.stringify(state)}`,
          near === undefined ? `it is one of: ${STATES.join(", ")}` : `did you mean /ls ${near}?`,
        );
      }
      return { kind: "look", verb: "ls", words: ["--state-is", state] };
    },
  },
  logs: {
    usage: "/logs ID",
    help: "show the output of a task's program",
    ids: "any",
    parse: (words) => ({
      kind: "look",
      verb: "logs",
      words: [idOf(exactly(words, 1, "logs")[0], "logs")],
    }),
  },
  help: { usage: "/help", help: "this list", parse: () => ({ kind: "help" }) },
  exit: { usage: "/exit", help: "leave; Ctrl-D does the same", parse: () => ({ kind: "exit" }) },
};

/** Other names of a command. */
const ALIASES: Readonly<Record<string, string>> = {
  quit: "exit",
  "set-workers": "workers",
  "?": "help",
};

/** @param line begins with a slash. @throws ErrUsage with a suggestion */
export function parseSlash(line: string): Action {
  const [head = "", ...words] = line.trim().slice(1).split(/\s+/);
  const name = Object.hasOwn(ALIASES, head) ? (ALIASES[head] ?? head) : head;
  const command = Object.hasOwn(SLASH_COMMANDS, name) ? SLASH_COMMANDS[name] : undefined;
  if (command !== undefined) return command.parse(words);
  const near = suggest(head, Object.keys(SLASH_COMMANDS));
  throw new ErrUsage(
    `there is no command ${JSON.stringify(`/${head.slice(0, 40)}`)}`,
    near === undefined ? "/help lists all commands" : `did you mean /${near}?`,
  );
}

/** Suggests `/pause` for `pause`: the person may have forgotten the slash. */
export function suggestSlash(text: string): string | undefined {
  const [head = ""] = text.split(/\s+/);
  return Object.hasOwn(SLASH_COMMANDS, head.toLowerCase()) ? `/${text}` : undefined;
}

function send(command: string, words: readonly string[]): Action {
  exactly(words, 0, command);
  return { kind: "send", command, args: {} };
}

function exactly(words: readonly string[], count: number, name: string): readonly string[] {
  if (words.length <= count) return words;
  throw new ErrUsage(
    `/${name} does not know what to do with ${JSON.stringify(words.slice(count).join(" "))}`,
    `usage: ${SLASH_COMMANDS[name]?.usage ?? `/${name}`}`,
  );
}

function idOf(id: string | undefined, name: string): string {
  const usage = `usage: ${SLASH_COMMANDS[name]?.usage ?? `/${name} ID`}`;
  if (id === undefined) throw new ErrUsage(`/${name} needs the id of a task`, usage);
  const fault = explainBadId(id);
  if (fault !== undefined) throw new ErrUsage(`${JSON.stringify(id)} is no id: ${fault}`, usage);
  return id;
}
