/**
 * Carries out the requests of a run. The worker does this outside the sandbox, in the name of the agent whose lease the run has. After a
 * crash a request may come twice. The second one changes nothing.
 */
import { ErrInvalidMessage } from "../../../core/errors.ts";
import { parseObject } from "../../../core/json-object.ts";
import type { RequestPlace, RunRequest } from "../../../worker/request-taker.ts";
import { decodeRunMessage } from "../post/decode-post.ts";
import { send } from "../send/send.ts";
import { moveCursor } from "../store/cursors.ts";
import { MessageReader } from "../store/read-messages.ts";
import { ask } from "./ask.ts";
import { type RunSender, senderOf } from "./run-sender.ts";
import { takeSpawn } from "./spawn.ts";

/** @throws ErrInvalidMessage, ErrMailboxDir, a system error */
export async function takeRequest(place: RequestPlace, request: RunRequest): Promise<object> {
  const sender = await senderOf(place, request);
  const fields = parseObject(request.bytes.toString());
  if (fields?.["ack"] !== undefined) return acknowledge(sender, fields, request.id);
  if (fields?.["spawn"] !== undefined) return await takeSpawn(place, request, sender, fields);
  const { cause, hops, name, scope, store } = sender;
  const draft = decodeRunMessage(request.bytes, request.id, { scope, name });
  const own = { ...draft, cause, hops };
  const sent =
    fields?.["ask"] === true
      ? ask({ stateDir: place.tree.dir, store }, own, Date.now())
      : send(store, own, Date.now());
  return { id: sent.id, to: sent.to, is_new: sent.isNew };
}

/** Notes that the run has read its mail up to a number. @throws ErrInvalidMessage */
function acknowledge(
  { folder, name }: RunSender,
  { ack, reader = name }: Record<string, unknown>,
  id: string,
): object {
  if (reader !== name)
    throw new ErrInvalidMessage(`this run reads the mail of ${name}, and of no other`, {
      id,
      phase: "ack",
      hint: "leave out the name",
    });
  const { last } = MessageReader.atEnd(folder);
  const isKnown = typeof ack === "number" && Number.isInteger(ack) && ack > 0 && ack <= last;
  if (!isKnown)
    throw new ErrInvalidMessage("`ack` is no number of a message of this scope", {
      id,
      phase: "ack",
      hint: "use `mailchute mail --ack`",
    });
  moveCursor(folder, name, ack, { by: "ack", atMs: Date.now() });
  return { reader: name, upto: ack };
}
