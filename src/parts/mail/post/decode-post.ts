/** Decodes a file of `post/inbox`: a message that any program may send. */
import { JsonFault, parseObject } from "../../../codec/json.ts";
import { compileCheck, optional, shorten } from "../../../codec/schema.ts";
import { Type } from "../../../codec/typebox.ts";
import { compact } from "../../../core/compact.ts";
import { ErrInvalidMessage } from "../../../core/errors.ts";
import { HUMAN, type Scope } from "../scope/scope.ts";
import type { Draft } from "../send/send.ts";
import { TIMES, type When } from "../store/message.ts";

const Text = Type.String({ minLength: 1, maxLength: 1024 });

const PostSchema = Type.Object(
  {
    from_agent: Text,
    content: Type.String({ minLength: 1 }),
    ...optional({
      id: Text,
      project: Text,
      branch: Text,
      to: Type.Union([Text, Type.Array(Text)], { description: "a name or a list of names" }),
      type: Type.String({ pattern: "^[a-z][a-z0-9_-]{0,31}$", description: "a word" }),
      thread: Text,
      reply_to: Text,
      when: Type.Union(
        TIMES.map((time) => Type.Literal(time)),
        { description: TIMES.join(", ") },
      ),
      requires_human: Type.Boolean(),
    }),
  },
  { $id: "message", title: "mailchute message", additionalProperties: true },
);

const check = compileCheck(PostSchema);

interface Post {
  from_agent: string;
  content: string;
  id?: string;
  project?: string;
  branch?: string;
  to?: string | string[];
  type?: string;
  thread?: string;
  reply_to?: string;
  when?: When;
  requires_human?: boolean;
}

/**
 * @param id by the name of the file
 * @param home the scope of a message that names none
 * @throws ErrInvalidMessage; its `cause` is a JsonFault when the text is not valid JSON
 */
export function decodePost(bytes: Buffer, id: string, home: Scope): Draft & { id: string } {
  const fail = (message: string, found?: unknown): never => {
    throw new ErrInvalidMessage(message, {
      id,
      phase: "post",
      hint: "see docs/messages.md",
      found,
    });
  };
  let value: Record<string, unknown>;
  try {
    ({ value } = parseObject(bytes));
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    throw new ErrInvalidMessage(`${error.message} (byte ${error.offset})`, {
      id,
      phase: "post",
      offset: error.offset,
      cause: error,
    });
  }
  const fault = check(value);
  if (fault !== undefined) fail(fault.message, fault.found);
  const post = value as unknown as Post;
  if (post.id !== undefined && post.id !== id)
    fail(`the body says id ${shorten(post.id)} but the file is named ${id}`);
  if (post.from_agent.toLowerCase() === HUMAN)
    fail(`a file cannot speak as ${HUMAN}: only a person does, with \`mailchute say\``);
  const { project = home.project, branch = home.branch, to = [] } = post;
  const { type, thread, reply_to: replyTo, when, requires_human: requiresHuman } = post;
  return {
    id,
    scope: { project, branch },
    from: post.from_agent,
    via: "file",
    to: Array.isArray(to) ? to : [to],
    text: post.content,
    ...compact({ type, thread, replyTo, when, requiresHuman }),
  };
}
