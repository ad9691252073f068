/** Commands inside the run of an agent. A run may drop files into its own folder, but cannot steer the pool. */
import fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ErrIo, ErrTaskExists, MailchuteError, messageOf, systemCode } from "../../core/errors.ts";
import { readDocument, syncDir } from "../../host/documents.ts";
import { DROP_VARIABLE, STATE_VARIABLE } from "../../host/process-tree.ts";
import { tryReadText, writeAnew } from "../../host/regular-file.ts";
import type { Context } from "./command-spec.ts";

/** How long a command waits for the worker outside to carry out its request (ms). The worker looks every 200 ms. */
const ANSWER_MS = 30_000;
const LOOK_MS = 20;

/** The folder of the run that calls this command, if it uses the run's own state tree; undefined outside of a run. */
export function dropOf({ env, stateDir }: Pick<Context, "env" | "stateDir">): string | undefined {
  const drop = env[DROP_VARIABLE];
  const state = env[STATE_VARIABLE];
  if (drop === undefined || drop === "" || state === undefined) return undefined;
  return resolve(state) === stateDir ? drop : undefined;
}

/** The error for a verb that a run may not use: it is for people and their programs. */
export function insideRun(verb: string, hint: string): MailchuteError {
  return new MailchuteError("ErrInsideRun", `a run of an agent may not use \`mailchute ${verb}\``, {
    phase: verb,
    hint,
  });
}

/**
 * Leaves a task in the folder of the run; the worker outside submits it.
 * @returns "unchanged" when the same task is already there
 * @throws ErrTaskExists, ErrIo
 */
export function dropTask(drop: string, id: string, text: string): "submitted" | "unchanged" {
  return leave(drop, { id, ending: ".json", text });
}

/**
 * Asks the worker outside for something that a run cannot do itself, and waits for its answer.
 * @param id a new id
 * @param request its `ending` says which part takes the file
 * @returns undefined when no answer came in time. The file stays, and the worker will take it
 * @throws MailchuteError when it is refused, ErrIo
 */
export async function askOutside(
  { env }: Pick<Context, "env">,
  drop: string,
  id: string,
  request: { ending: string; body: object },
): Promise<Record<string, unknown> | undefined> {
  const { ending, body } = request;
  leave(drop, { id, ending, text: `${JSON.stringify(body)}\n` });
  const answer = join(dirname(env["MAILCHUTE_RESULT_FILE"] ?? ""), "answers", `${id}.json`);
  const untilMs = performance.now() + ANSWER_MS;
  for (;;) {
    const found = readDocument<Record<string, unknown>>(answer);
    if (found !== undefined) return accepted(found);
    if (performance.now() > untilMs) return undefined;
    await pause(LOOK_MS);
  }
}

/** @throws MailchuteError with the reason of the worker */
function accepted(found: Record<string, unknown>): Record<string, unknown> {
  const error = found["error"] as Partial<Record<string, string>> | undefined;
  if (error === undefined) return found;
  const { code = "ErrInvalidMessage", message = "it was refused", hint } = error;
  throw new MailchuteError(code, message, hint === undefined ? {} : { hint });
}

/** @throws ErrTaskExists, ErrIo */
function leave(
  drop: string,
  { id, ending, text }: { id: string; ending: string; text: string },
): "submitted" | "unchanged" {
  const path = join(drop, `${id}${ending}`);
  const staged = join(drop, `.${id}.${process.pid}`);
  try {
    writeAnew(staged, text, { isDurable: true });
    fs.linkSync(staged, path);
    syncLeft(drop);
    return "submitted";
  } catch (error) {
    if (systemCode(error) === "EEXIST") {
      if (tryReadText(path) === text) return "unchanged";
      throw new ErrTaskExists(`this run has dropped another task ${JSON.stringify(id)}`, {
        id,
        path,
        phase: "enqueue",
      });
    }
    if (systemCode(error) === "ENOENT")
      throw new ErrIo("the run has ended, and nothing is taken from its programs any more", {
        id,
        path: drop,
        phase: "enqueue",
        hint: "a program that outlives its run cannot speak for it: end it with the run",
      });
    throw new ErrIo(`the run's folder does not take the task: ${messageOf(error)}`, {
      id,
      path: drop,
      phase: "enqueue",
      hint: "end the run with an error, so that it is tried again",
      cause: error,
    });
  } finally {
    fs.rmSync(staged, { force: true });
  }
}

/** If the run has just ended, its folder was moved away with the file in it. The worker takes the file from there. */
function syncLeft(drop: string): void {
  try {
    syncDir(drop);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
  }
}
