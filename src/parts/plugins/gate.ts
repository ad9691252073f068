/** Makes of a plugin's function a gate that always answers: one that throws, hangs or answers with something else is closed. */
import { Script } from "node:vm";
import type { ClosedGate, GateFacts } from "../../core/documents.ts";
import { messageOf } from "../../core/errors.ts";
import { closedGate } from "../../core/gates.ts";
import { isObject } from "../../core/json-object.ts";
import type { LoadedGate, OwnSettings, PluginGate } from "../../plugin.ts";

/** How long a gate may think (ms). */
const ANSWER_MS_MAX = 50;
/** The same for the second try, after this process got less of the processor than that: the machine was busy, and not the gate. */
const BUSY_ANSWER_MS_MAX = 250;
const DO_MEND = "mend the plugin; its gate is asked again by itself";

/** @param kinds the kinds of agents, by name */
export function gateOf(
  name: string,
  decide: PluginGate,
  settings: OwnSettings,
  kinds: ReadonlyMap<string, string>,
): LoadedGate {
  return {
    name,
    ask(facts, nowMs) {
      const task = { ...facts, kind: kinds.get(facts.agent) ?? "" };
      try {
        return readAnswer(
          name,
          callWithin(() => decide(task, nowMs, settings)),
          facts,
        );
      } catch (error) {
        const why = `ErrPlugin: the gate ${name} does not answer: ${messageOf(error)}`;
        return { ...closedGate(name, why, DO_MEND, { facts: [facts] }), is_broken: true };
      }
    },
  };
}

/** @throws TypeError for what is no answer */
function readAnswer(gate: string, said: unknown, facts: GateFacts): ClosedGate | undefined {
  if (said === undefined) return undefined;
  // A promise may reject, which would end this process.
  if (said instanceof Promise) said.catch(() => {});
  const { why, do: todo = "wait", until_ms: untilMs = 0 } = isObject(said) ? said : { why: said };
  if (typeof why !== "string" || typeof todo !== "string" || typeof untilMs !== "number")
    throw new TypeError("it must return undefined, a text, or { why, do, until_ms }");
  return closedGate(gate, why, todo, { facts: [facts], until_ms: untilMs });
}

const HELD = Symbol.for("mailchute.gate");
const CALL = new Script("globalThis[Symbol.for('mailchute.gate')]()");

/** Calls a function, and ends it when it takes too long, also in an endless loop: only a script of its own can be ended. */
function callWithin<T>(call: () => T): T {
  const holder = globalThis as { [HELD]?: () => T };
  holder[HELD] = call;
  const before = process.cpuUsage();
  try {
    return CALL.runInThisContext({ timeout: ANSWER_MS_MAX }) as T;
  } catch (error) {
    if (!isTimeout(error)) throw error;
    const { user, system } = process.cpuUsage(before);
    if (user + system >= ANSWER_MS_MAX * 1000) throw new Error(TOO_LONG);
    return callAgain<T>();
  } finally {
    delete holder[HELD];
  }
}

function callAgain<T>(): T {
  try {
    return CALL.runInThisContext({ timeout: BUSY_ANSWER_MS_MAX }) as T;
  } catch (error) {
    throw isTimeout(error) ? new Error(TOO_LONG) : error;
  }
}

const TOO_LONG = `it took longer than ${ANSWER_MS_MAX} ms`;

function isTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}
