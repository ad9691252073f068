/**
 * Reads the variables that a task names in `env_from`. It reads them at each start, so that the next run uses a changed secret. Values
 * are never written to disk: the task, the journals and the records hold the references.
 */
import { messageOf } from "../core/errors.ts";
import { type AttemptOutcome, type Failed, failed } from "../core/outcome.ts";
import type { Settings } from "../core/settings.ts";
import type { Task } from "../core/task.ts";
import { lookInto } from "../host/regular-file.ts";

/** The largest size of a variable (bytes): Linux starts no program with a longer one. */
const VALUE_BYTES_MAX = 128 * 1024 - 256;
const READABLE_BY_OTHERS = 0o004;
/** A shorter value is not removed from texts, because it would match everywhere. */
const HIDDEN_CHARS_MIN = 4;

/** @returns the variables, or the outcome of the attempt when one cannot be read */
export function readSecrets(
  { env_from: from = {} }: Pick<Task, "env_from">,
  settings: Pick<Settings, "allow_open_secrets">,
  ours: NodeJS.ProcessEnv = process.env,
): { variables: Record<string, string> } | { outcome: Failed } {
  const variables: Record<string, string> = {};
  for (const [name, reference] of Object.entries(from)) {
    try {
      variables[name] = readOne(reference, settings, ours);
    } catch (error) {
      const message = `env_from.${name}: ${reference}: ${messageOf(error)}`;
      return { outcome: failed("environment", "ErrEnvironment", message) };
    }
  }
  return { variables };
}

/** @throws an error that says what is wrong, without the value */
function readOne(
  reference: string,
  { allow_open_secrets: isOpenAllowed }: Pick<Settings, "allow_open_secrets">,
  ours: NodeJS.ProcessEnv,
): string {
  const at = reference.indexOf(":");
  const where = reference.slice(at + 1);
  if (reference.slice(0, at) === "env") {
    const value = ours[where];
    if (value === undefined) throw new Error("the worker has no such variable");
    return value;
  }
  const { stats, bytes } = lookInto(where, { isNamed: true, bytesMax: VALUE_BYTES_MAX });
  if ((stats.mode & READABLE_BY_OTHERS) !== 0 && !isOpenAllowed)
    throw new Error("others can read that file: chmod o-r it, or set allow_open_secrets: true");
  if (!stats.isFile()) throw new Error("that is not a regular file");
  if (bytes === undefined) throw new Error("that file is too long for a variable");
  const value = bytes.toString().replace(/\r?\n$/, "");
  if (value.includes("\u0000")) throw new Error("that file holds a zero byte");
  return value;
}

/** Removes the values from the texts that a record will hold about the failure. Files that programs write are not filtered. */
export function withoutSecrets(outcome: AttemptOutcome, values: readonly string[]): AttemptOutcome {
  if (values.length === 0 || outcome.kind === "completed") return outcome;
  const hide = (text: string): string => hideSecrets(text, values);
  const message = hide(outcome.message);
  if (outcome.kind !== "failed" || outcome.lastWords === undefined) return { ...outcome, message };
  return { ...outcome, message, lastWords: hide(outcome.lastWords) };
}

export function hideSecrets(text: string, values: readonly string[]): string {
  const hidden = values.filter((value) => value.length >= HIDDEN_CHARS_MIN);
  return hidden.reduce((left, value) => left.replaceAll(value, "***"), text);
}
