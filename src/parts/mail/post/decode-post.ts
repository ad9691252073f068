/** Decodes a message file. Any program may drop one into `post/inbox`, and a run into its own folder. */
import { JsonFault, parseObject } from "../../../codec/json.ts";
import { compileCheck, optional, shorten } from "../../../codec/schema.ts";
import { Type } from "../../../codec/typebox.ts";
import { compact } from "../../../core/compact.ts";
import { ErrInvalidMessage } from "../../../core/errors.ts";
import { formatAddress, HUMAN, parseAddress, type Scope, sameScope } from "../scope/scope.ts";
import type { Draft } from "../send/send.ts";
import { TIMES, type When } from "../store/message.ts";

const Text = Type.String({ minLength: 1, maxLength: 1024 });

const PostSchema = Type.Object(
  {
    content: Type.String({ minLength: 1 }),
    ...optional({
      from_agent: Text,
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
  content: string;
  from_agent?: string;
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
 * Decodes a message of `post/inbox`, which names its sender.
 * @param id from the name of the file
 * @param home the scope of a message that names none
 * @param orchestrator its name or address: only its own runs speak as it
 * @throws ErrInvalidMessage; its `cause` is a JsonFault when the text is not valid JSON
 */
export function decodePost(
  bytes: Buffer,
  id: string,
  home: Scope,
  orchestrator?: string,
): Draft & { id: string } {
  const post = decode(bytes, id);
  const { project = home.project, branch = home.branch, from_agent: from = "" } = post;
  if (post.id !== undefined && post.id !== id)
    throw invalid(`the body says id ${shorten(post.id)} but the file is named ${id}`, id);
  if (from === "") throw invalid("from_agent is missing: who sends it", id);
  const name = from.toLowerCase();
  if (name === HUMAN)
    throw invalid(
      `a file cannot speak as ${HUMAN}: only a person does, with \`mailchute say\``,
      id,
    );
  const known = parseAddress(orchestrator ?? "", { project, branch });
  if (known !== undefined && formatAddress({ project, branch, name }) === formatAddress(known))
    throw invalid(
      "a file cannot speak as the orchestrator: only its own runs do, with `mailchute say`",
      id,
    );
  return { ...draftOf(post, id), scope: { project, branch }, from, via: "file" };
}

/**
 * Decodes a message of a run, which its agent sends.
 * @param id the id of the message if its body names none
 * @throws ErrInvalidMessage, like `decodePost`; also when the body names another sender
 */
export function decodeRunMessage(
  bytes: Buffer,
  id: string,
  { scope, name }: { scope: Scope; name: string },
): Draft & { id: string } {
  const post = decode(bytes, id);
  const { project = scope.project, branch = scope.branch, from_agent: from = name } = post;
  if (from.toLowerCase() !== name)
    throw invalid(
      `this run cannot speak as ${shorten(from)}: it is a run of ${name}`,
      id,
      "leave out from_agent, or --from",
    );
  if (!sameScope({ project, branch }, scope))
    throw invalid(
      `this run cannot speak in another scope than ${scope.project}:${scope.branch}`,
      id,
      "write to agents of other scopes as PROJECT:BRANCH:NAME",
    );
  if (post.when === "now")
    throw invalid(
      "a run interrupts no other agent: `now` is for people",
      id,
      "leave out when, or --when: it is read at the next step",
    );
  return { ...draftOf(post, post.id ?? id), scope, from: name, via: "run" };
}

function draftOf(post: Post, id: string) {
  const { to = [], type, thread, reply_to: replyTo, when, requires_human: requiresHuman } = post;
  return {
    id,
    to: Array.isArray(to) ? to : [to],
    text: post.content,
    ...compact({ type, thread, replyTo, when, requiresHuman }),
  };
}

/** @throws ErrInvalidMessage */
function decode(bytes: Buffer, id: string): Post {
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
  if (fault !== undefined) {
    const details = { id, phase: "post", hint: "see docs/messages.md", found: fault.found };
    throw new ErrInvalidMessage(fault.message, details);
  }
  return value as unknown as Post;
}

function invalid(message: string, id: string, hint = "see docs/messages.md"): ErrInvalidMessage {
  return new ErrInvalidMessage(message, { id, phase: "post", hint });
}
