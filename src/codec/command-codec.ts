/** Decodes the bytes of a command file. */

import type { Command, CommandName, LimitTarget } from "../core/command.ts";
import { COMMAND_NAMES } from "../core/command.ts";
import { ErrInvalidCommand } from "../core/errors.ts";
import { BURST_MAX, WORKERS_MAX } from "../core/limits.ts";
import { explainBadId } from "../core/names.ts";
import { RATE_PATTERN } from "../core/rate.ts";
import { JsonFault, parseObject } from "./json.ts";
import { compileCheck, optional, shapeOf, shorten } from "./schema.ts";
import { Type } from "./typebox.ts";

const Text = Type.String({ minLength: 1, maxLength: 256 });
/** The longest text for an agent. */
const TEXT_CHARS_MAX = 32 * 1024;
const Workers = Type.Integer({ minimum: 0, maximum: WORKERS_MAX });

export const CommandSchema = Type.Object(
  {
    ...optional({ id: Type.String({ minLength: 1 }) }),
    command: Type.String({ description: COMMAND_NAMES.join(", ") }),
    ...optional({
      args: Type.Object(
        optional({
          workers: Workers,
          node: Text,
          id: Text,
          final: Type.Boolean(),
          drain: Type.Boolean(),
          group: Text,
          limit: Text,
          slots: Workers,
          rate: Type.String({ pattern: RATE_PATTERN, description: "a rate such as 60/min" }),
          burst: Type.Integer({ minimum: 1, maximum: BURST_MAX }),
          paused: Type.Boolean(),
          reset: Type.Boolean(),
          text: Type.String({ minLength: 1 }),
          was: Type.String({ pattern: "^[0-9a-f]{64}$", description: "a SHA-256 in hex" }),
        }),
        { additionalProperties: true },
      ),
      final: Type.Boolean({ description: "with cancel: end the task for good" }),
      expires_at: Type.Union(
        [
          Type.Integer({ minimum: 0, maximum: 253402300799 }),
          Type.String({ minLength: 10, maxLength: 40 }),
        ],
        {
          description: "unix seconds or ISO 8601; after that the command is refused",
        },
      ),
      created_at: Type.Integer({ minimum: 0, maximum: 253402300799 }),
    }),
  },
  { $id: "command", title: "mailchute command", additionalProperties: true },
);

const check = compileCheck(CommandSchema);

/** Other spellings of command names. */
const ALIASES: ReadonlyMap<string, CommandName> = new Map([
  ["set_workers", "set-workers"],
  ["replan_now", "replan"],
]);

/** @throws ErrInvalidCommand; its `cause` is a JsonFault when the text is not valid JSON */
export function decodeCommand(bytes: Buffer, id: string): Command {
  let value: Record<string, unknown>;
  try {
    ({ value } = parseObject(bytes));
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    throw new ErrInvalidCommand(`${error.message} (byte ${error.offset})`, {
      id,
      offset: error.offset,
      cause: error,
    });
  }
  return checkCommand(value, id);
}

/** @throws ErrInvalidCommand */
export function checkCommand(value: Record<string, unknown>, id: string): Command {
  const fail = (
    message: string,
    hint = "see `mailchute schema command`",
    found?: unknown,
  ): never => {
    throw new ErrInvalidCommand(message, { id, hint, found });
  };
  const fault = check(value);
  if (fault !== undefined) fail(fault.message, undefined, fault.found);
  const badId = explainBadId(id);
  if (badId !== undefined) fail(`bad id ${shorten(id)}: ${badId}`);
  if (value["id"] !== undefined && value["id"] !== id)
    fail(`the body says id ${shorten(value["id"])} but the file is named ${id}`);
  const raw = value["command"] as string;
  const name = ALIASES.get(raw) ?? COMMAND_NAMES.find((known) => known === raw);
  if (name === undefined)
    return fail(`unknown command ${shorten(raw)}`, `use one of: ${COMMAND_NAMES.join(", ")}`);
  const args = (value["args"] ?? {}) as Record<string, unknown>;
  const command: Command = { id, command: name, args: {} };
  const target = args["node"] ?? args["id"];
  if (name === "set-workers") {
    if (typeof args["workers"] !== "number")
      return fail("set-workers needs args.workers, a whole number");
    command.args.workers = args["workers"];
  }
  if (name === "cancel" || name === "interrupt" || name === "edit" || name === "retry") {
    if (typeof target !== "string")
      return fail(`${name} needs args.node, the id of a task or node`);
    // mailchute looks for files whose names contain the target, so it must hold no slash and no NUL.
    if (/[/\0]/.test(target)) return fail(`args.node: ${shorten(target)} is no id`);
    command.args.node = target;
    command.args.final = (args["final"] ?? value["final"]) === true;
    const { text, was } = args;
    if (name === "interrupt" && typeof text === "string") {
      if (text.length > TEXT_CHARS_MAX)
        return fail(`args.text: ${text.length} characters, the limit is ${TEXT_CHARS_MAX}`);
      command.args.text = text;
    }
    if (name === "edit") {
      if (typeof text !== "string" || typeof was !== "string")
        return fail("edit needs args.text, the whole task, and args.was");
      command.args.text = text;
      command.args.was = was;
    }
  }
  if (name === "set-limit") {
    const limit = limitTargetOf(args);
    if (typeof limit === "string") return fail(limit);
    command.args.limit = limit;
  }
  if (name === "stop") command.args.drain = args["drain"] === true;
  const expires = value["expires_at"];
  if (expires !== undefined) {
    const ms = typeof expires === "number" ? expires * 1000 : Date.parse(expires as string);
    if (!Number.isFinite(ms))
      return fail(`expires_at: expected a time, found ${shapeOf(expires)}`, undefined, expires);
    command.expiresAtMs = ms;
  }
  return command;
}

/** The arguments of `set-limit`, or a text that says what is wrong with them. */
function limitTargetOf(args: Record<string, unknown>): LimitTarget | string {
  const { group, limit } = args;
  if ((group === undefined) === (limit === undefined))
    return "set-limit needs args.group or args.limit, and not both";
  const kind = group === undefined ? "limit" : "group";
  const allowed = kind === "group" ? ["slots", "paused"] : ["slots", "rate", "burst"];
  const given = ["slots", "paused", "rate", "burst"].filter((one) => args[one] !== undefined);
  const wrong = given.find((one) => !allowed.includes(one));
  if (wrong !== undefined) return `a ${kind} has no ${wrong}`;
  const isReset = args["reset"] === true;
  if (isReset === given.length > 0)
    return `set-limit needs one of args.${[...allowed, "reset"].join(", args.")}`;
  const change = Object.fromEntries(given.map((one) => [one, args[one]]));
  return { kind, name: (group ?? limit) as string, ...change, ...(isReset ? { reset: true } : {}) };
}
