/** Offers records of settled tasks as resources of the Model Context Protocol: `mailchute://results/ID`. */
import { isObject } from "../../core/json-object.ts";
import { type Answer, fail, INVALID_PARAMS, REFUSED, RESOURCE_NOT_FOUND } from "./json-rpc.ts";
import type { Said } from "./run-verb.ts";

const PREFIX = "mailchute://results/";
const MIME = "application/json";
/** At most this many of the latest done and failed tasks each are listed. A client reads older results by their ids. */
const LISTED_MAX = 50;

export const RESULT_TEMPLATE = {
  uriTemplate: `${PREFIX}{id}`,
  name: "result",
  description: "The record of a task that has settled: its result, or why it failed.",
  mimeType: MIME,
};

/** Runs a verb that answers with one JSON document. */
export type RunJson = (argv: readonly string[]) => Promise<Said>;

interface Row {
  id: string;
  title: string | null;
  state: string;
}

/** The results of the tasks that settled last. */
export async function listResults(run: RunJson): Promise<Answer> {
  const resources: object[] = [];
  for (const state of ["done", "failed"]) {
    const said = await run(["ls", `--state-is=${state}`, `--limit=${LISTED_MAX}`]);
    const known = documentIn(said);
    if (known === undefined) return refuse(said);
    for (const { id, title, state: now } of known["tasks"] as Row[])
      resources.push({
        uri: `${PREFIX}${encodeURIComponent(id)}`,
        name: id,
        title: title ?? id,
        description: now,
        mimeType: MIME,
      });
  }
  return { result: { resources } };
}

export async function readResult(uri: unknown, run: RunJson): Promise<Answer> {
  const id = idIn(uri);
  if (id === undefined)
    return fail(INVALID_PARAMS, `${String(uri)} is no address of a result: use ${PREFIX}ID`);
  const said = await run(["show", id]);
  const known = documentIn(said);
  if (known === undefined) return said.isCut ? refuse(said) : missing(explain(said));
  if (!isObject(known["record"]))
    return missing(`task ${id} has not settled: it is ${String(known["state"])}`);
  // The same document as in the file of the record.
  const text = JSON.stringify({ ...known["record"], task: known["task"] }, undefined, 2);
  return { result: { contents: [{ uri, mimeType: MIME, text }] } };
}

function idIn(uri: unknown): string | undefined {
  if (typeof uri !== "string" || !uri.startsWith(PREFIX)) return undefined;
  try {
    const id = decodeURIComponent(uri.slice(PREFIX.length));
    return id === "" || id.startsWith("-") || id.includes("\0") ? undefined : id;
  } catch {
    return undefined;
  }
}

function documentIn({ code, isCut, stdout }: Said): Record<string, unknown> | undefined {
  return code === 0 && !isCut ? (JSON.parse(stdout) as Record<string, unknown>) : undefined;
}

function missing(text: string): Answer {
  return fail(RESOURCE_NOT_FOUND, text);
}

function refuse(said: Said): Answer {
  return fail(REFUSED, said.isCut ? "the answer is too long: use the tools" : explain(said));
}

/** The error of a verb: with --json it is one JSON document on stderr. */
function explain({ stderr }: Said): string {
  try {
    const { error } = JSON.parse(stderr) as { error: { message: string; hint: string } };
    return `${error.message}: ${error.hint}`;
  } catch {
    return stderr.trimEnd();
  }
}
