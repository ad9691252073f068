/** The work that the tasks of these tests are made of: says that it ran, then does what the payload asks for. */
import fs from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { type HandlerContext, NoRetryError } from "../../../src/agents/handler.ts";
import type { Task } from "../../../src/core/task.ts";

export interface Payload {
  do: "ok" | "fail" | "flaky" | "wait" | "linger";
  /** File that gets a line for each run. */
  runs: string;
  /** What it returns; by default, that it ran. */
  says?: unknown;
}

export default async function handle(task: Task, context: HandlerContext): Promise<unknown> {
  const payload = task.payload as Payload | undefined;
  // A node that the plan has added by itself.
  if (payload === undefined) return { status: "success", summary: "seen" };
  fs.appendFileSync(payload.runs, `${task.id} ${context.attempt} ${context.lease}\n`);
  if (payload.do === "fail") throw new NoRetryError("as it was asked to");
  if (payload.do === "flaky" && context.attempt === 1) throw new Error("only this once");
  if (payload.do === "wait" && fs.existsSync(`${payload.runs}.wait`)) await aborted(context.signal);
  if (payload.do === "linger") await wait(LINGER_MS);
  return payload.says ?? { ran: task.id };
}

/** Long enough for some heartbeats. */
const LINGER_MS = 100;

/** Lets go when it is told to. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    if (signal.aborted) reject(signal.reason as Error);
  });
}
