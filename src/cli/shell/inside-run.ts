/** Commands inside the run of an agent: it speaks through its own folder, and steers nothing. */
import fs from "node:fs";
import { join, resolve } from "node:path";
import { ErrIo, ErrTaskExists, MailchuteError, messageOf, systemCode } from "../../core/errors.ts";
import { syncDir } from "../../host/documents.ts";
import { DROP_VARIABLE, STATE_VARIABLE } from "../../host/process-tree.ts";
import type { Context } from "./command-spec.ts";

/** The folder of the run that calls, when it uses its own state tree; undefined outside of a run. */
export function dropOf({ env, stateDir }: Pick<Context, "env" | "stateDir">): string | undefined {
  const drop = env[DROP_VARIABLE];
  const state = env[STATE_VARIABLE];
  if (drop === undefined || drop === "" || state === undefined) return undefined;
  return resolve(state) === stateDir ? drop : undefined;
}

/** A verb that is for people and their programs was called inside a run. */
export function insideRun(verb: string, hint: string): MailchuteError {
  return new MailchuteError("ErrInsideRun", `a run of an agent may not use \`mailchute ${verb}\``, {
    phase: verb,
    hint,
  });
}

/**
 * Leaves a task in the folder of the run; the worker outside submits it.
 * @returns "unchanged" when the same task is there already
 * @throws ErrTaskExists, ErrIo
 */
export function dropTask(drop: string, id: string, text: string): "submitted" | "unchanged" {
  const path = join(drop, `${id}.json`);
  const staged = join(drop, `.${id}.${process.pid}`);
  try {
    fs.writeFileSync(staged, text, { mode: 0o600, flush: true });
    fs.linkSync(staged, path);
    syncDir(drop);
    return "submitted";
  } catch (error) {
    if (systemCode(error) === "EEXIST") {
      if (textOf(path) === text) return "unchanged";
      throw new ErrTaskExists(`this run has dropped another task ${JSON.stringify(id)}`, {
        id,
        path,
        phase: "enqueue",
      });
    }
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

function textOf(path: string): string | undefined {
  try {
    return fs.readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
