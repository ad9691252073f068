/** The result of one check of `doctor`. */
import { describeError } from "../../cli/shell/error-text.ts";

export interface CheckResult {
  name: string;
  status: "ok" | "warn" | "fail";
  message: string;
  /** What to do about it; undefined when it is ok. */
  do?: string;
}

export function ok(name: string, message: string): CheckResult {
  return { name, status: "ok", message };
}

export function warned(name: string, message: string, todo: string): CheckResult {
  return { name, status: "warn", message, do: todo };
}

export function failing(name: string, message: string, todo: string): CheckResult {
  return { name, status: "fail", message, do: todo };
}

/** A check that ended with an error. */
export function failed(name: string, error: unknown): CheckResult {
  const { message, path, hint } = describeError(error);
  return failing(
    name,
    path === undefined ? message : `${path}: ${message}`,
    hint ?? "mend it and run mailchute doctor again",
  );
}
