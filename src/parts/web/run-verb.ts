/** Runs a verb of the command line in this process, and collects its JSON output. It has the same checks and the same effects. */
import type { Context, Output } from "../../cli/shell/command-spec.ts";
import { dropOf, insideRun } from "../../cli/shell/inside-run.ts";
import { parseArguments } from "../../cli/shell/parse.ts";
import { loadCommand, REGISTRY } from "../../cli/shell/registry.ts";

/** A command line as values. It is not parsed, so no text of a page is ever taken for an option. */
export interface Line {
  verb: string;
  /** The second word of a two-word command. */
  subcommand?: string;
  positionals: string[];
  options: Readonly<Record<string, unknown>>;
}

export interface Said {
  documents: Record<string, unknown>[];
  notes: string[];
}

/** @param ctx the context of `web` itself. @throws what the verb throws */
export async function runVerb(ctx: Context, line: Line): Promise<Said> {
  const { verb, subcommand = "", positionals, options } = line;
  const spec = await loadCommand(verb);
  const { insteadInRun } = REGISTRY[verb] ?? {};
  if (insteadInRun !== undefined && dropOf(ctx) !== undefined) throw insideRun(verb, insteadInRun);
  const words = subcommand === "" ? [] : [subcommand];
  const { values } = parseArguments(verb, words, spec.options);
  const said: Said = { documents: [], notes: [] };
  await spec.run({
    ...ctx,
    json: true,
    options: { ...values, ...options } as Context["options"],
    positionals,
    subcommand,
    rest: undefined,
    out: collect(said),
  });
  return said;
}

function collect({ documents, notes }: Said): Output {
  return {
    line: () => undefined,
    json: (value) => documents.push(value as Record<string, unknown>),
    // Verbs that print a stream write their lines of JSON with `raw`.
    raw: async (text) => {
      if (typeof text !== "string") return;
      for (const line of text.split("\n"))
        if (line !== "") documents.push(JSON.parse(line) as Record<string, unknown>);
    },
    // With --json no verb writes bytes to stderr.
    rawError: async () => {},
    note: (text) => notes.push(text),
  };
}
