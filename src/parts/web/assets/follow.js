/**
 * Follows the page of an address: by events of the server, or by asking again. Browsers allow six connections to a server in all windows
 * together, so only some windows get events; the others ask.
 */
import { DISCONNECTED, headers, request } from "./ask.js";

const STREAMS_MAX = 4;
const AGAIN_MS = 1000;
/** The server speaks each ten seconds. */
const SILENT_MS = 25_000;
/** Frees the right of this window to events; undefined while it has none. */
let free;

/** For a window that is not seen: another one may have its events. */
export function letGo() {
  free?.();
  free = undefined;
}

/**
 * Until the signal comes. @param draw gets a whole page @param path of the page @param say gets a fault, in words
 */
export async function follow(path, { draw, say, signal }) {
  let again = AGAIN_MS;
  let page;
  const seen = (next) => {
    page = next;
    draw(page);
  };
  while (!signal.aborted) {
    let fault;
    try {
      free ??= await takeRight();
      if (signal.aborted) return;
      if (free !== undefined) fault = await stream(path, { seen, now: () => page, signal });
      else {
        const { answer, value } = await request(`/api/page?path=${encodeURIComponent(path)}`);
        if (signal.aborted) return;
        fault = answer.ok ? undefined : { status: answer.status, text: value.error };
        if (answer.ok) {
          seen(value);
          again = value.again_ms;
        }
      }
    } catch {
      fault = { status: 0, text: DISCONNECTED };
    }
    if (signal.aborted) return;
    if (fault !== undefined) say(fault.text);
    if (fault?.status === 401 || fault?.status === 404) return;
    await pause(fault === undefined ? again : AGAIN_MS, signal);
  }
}

/** Reads events until the stream ends. @returns what was wrong */
async function stream(path, { seen, now, signal }) {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENT_MS);
  const either = AbortSignal.any([signal, silence.signal]);
  let lastId = now()?.id ?? "";
  try {
    const answer = await fetch(`/api/stream?path=${encodeURIComponent(path)}`, {
      headers: { ...headers(), "Last-Event-ID": lastId },
      signal: either,
    });
    if (!answer.ok) return { status: answer.status, text: (await answer.json()).error };
    let rest = "";
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return { status: 0, text: DISCONNECTED };
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENT_MS);
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const text of events) {
        const event = eventOf(text);
        lastId = event.id ?? lastId;
        if (event.name === "page") seen({ ...event.data, id: lastId });
        if (event.name === "same") seen(now());
        if (event.name === "part") seen({ ...withPart(now(), event.data), id: lastId });
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

function eventOf(text) {
  const fields = Object.fromEntries(
    text.split("\n").map((line) => {
      const at = line.indexOf(": ");
      return [line.slice(0, at), line.slice(at + 2)];
    }),
  );
  return { id: fields.id, name: fields.event, data: JSON.parse(fields.data) };
}

function withPart(page, { count, changed, ...head }) {
  const blocks = page.blocks.slice(0, count);
  for (const [at, block] of changed) blocks[at] = block;
  return { ...head, blocks };
}

/** Gives back a function that frees it; undefined: other windows have all. */
async function takeRight() {
  // Not there when the page came over plain HTTP from another machine.
  if (navigator.locks === undefined) return () => {};
  for (let n = 0; n < STREAMS_MAX; n++) {
    const taken = await new Promise((resolve) => {
      const held = (lock) => {
        if (lock === null) return resolve(undefined);
        return new Promise((end) => resolve(end));
      };
      navigator.locks
        .request(`mailchute-stream-${n}`, { ifAvailable: true }, held)
        .catch(() => resolve(undefined));
    });
    if (taken !== undefined) return taken;
  }
  return undefined;
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
