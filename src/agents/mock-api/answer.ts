/** Carries out one step on a connection: answers, refuses, waits, or misbehaves as the step says. */
import type { ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { Asked, Format, StreamEvent } from "./format.ts";
import type { Step } from "./script.ts";

const EVENT_STREAM = { "content-type": "text/event-stream", "cache-control": "no-cache" };
const JSON_BODY = { "content-type": "application/json" };

/** Bytes that are neither an event nor JSON nor UTF-8. */
const GARBAGE = Buffer.from(
  'event: ?\ndata: {"type": \u0000\n\n\xff\xfe not a stream \x80\n\n',
  "latin1",
);

/** Resolves when the answer is sent; for a step that hangs, at once. */
export async function answer(
  response: ServerResponse,
  format: Format,
  asked: Asked,
  step: Step,
): Promise<void> {
  if (step.hang) return;
  if (step.delayMs !== undefined) await wait(step.delayMs);
  if (response.destroyed) return;
  if (step.garbage) {
    response.writeHead(200, { ...EVENT_STREAM, ...step.headers }).end(GARBAGE);
    return;
  }
  const isRefused = step.status !== undefined || step.usageLimit !== undefined;
  if (isRefused && !(step.inStream && asked.isStream)) {
    const { status, headers, body } = format.refusal(step, Date.now());
    response.writeHead(status, { ...JSON_BODY, ...headers, ...step.headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
    return;
  }
  const headers = { ...format.windowHeaders(step.windows ?? {}, false), ...step.headers };
  if (asked.isStream) {
    response.writeHead(200, { ...EVENT_STREAM, ...headers });
    const events = eventsOf(format, asked, step, isRefused).map(pieceOf);
    if (format.lastLine !== undefined && !isRefused) events.push(format.lastLine);
    await sendEvents(response, events, step);
  } else {
    const body = Buffer.from(JSON.stringify(format.plain(step, asked)));
    const half = body.subarray(0, body.length / 2);
    const { length } = step.half === true ? half : body;
    response.writeHead(200, { ...JSON_BODY, "content-length": length, ...headers });
    if (step.cut) response.write(half, () => drop(response, step));
    else response.end(step.half === true ? half : body);
  }
}

function eventsOf(format: Format, asked: Asked, step: Step, isRefused: boolean): StreamEvent[] {
  const events = format.events(step, asked);
  if (!isRefused) return events;
  return [...events.slice(0, 1), format.errorEvent(format.refusal(step, Date.now()))];
}

function pieceOf(event: StreamEvent): string {
  const { type } = event;
  const name = typeof type === "string" ? `event: ${type}\n` : "";
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

/** A cut answer ends within an event, after the first half of its events. */
async function sendEvents(
  response: ServerResponse,
  events: readonly string[],
  step: Step,
): Promise<void> {
  const isHalf = step.cut === true || step.cut === "reset" || step.half === true;
  const pieces = events.slice(0, isHalf ? Math.ceil(events.length / 2) : events.length);
  if (step.eventDelayMs !== undefined)
    for (const piece of pieces.splice(0)) {
      await wait(step.eventDelayMs);
      response.write(piece);
    }
  const text = pieces.join("");
  if (step.cut) response.write(text.slice(0, -8), () => drop(response, step));
  else response.end(text);
}

function drop(response: ServerResponse, { cut }: Step): void {
  if (cut === "reset") response.socket?.resetAndDestroy();
  else response.destroy();
}
