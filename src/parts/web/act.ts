/**
 * Carries out what a page asks for: runs the verb of the command line in this process, and collects its output. So a page has the
 * same checks and the same effects, and writes nothing itself.
 */
import type { Context } from "../../cli/shell/command-spec.ts";
import { describeError, type ErrorReport } from "../../cli/shell/error-text.ts";
import { existingTree } from "../../cli/shell/options.ts";
import { MailchuteError } from "../../core/errors.ts";
import { resultText } from "../../text/command-result.ts";
import { counted } from "../../text/render.ts";
import { pageOfTasks } from "../../view/page-of-tasks.ts";
import { shown } from "./page.ts";
import { runVerb } from "./run-verb.ts";
import { type All, lineOf, type Wish } from "./verbs.ts";

/** One request acts on at most this many tasks of a list, because it writes files while other requests wait. */
const SOME = 20;

export interface Told {
  id: string;
  error: ErrorReport;
}

/** `next`: where the next request goes on in the list; left out at its end. */
export type Outcome = { said: string } | { done: number; refused: Told[]; next?: string };

export class Actor {
  /** @param ctx the context of `web` itself */
  constructor(private readonly ctx: Context) {}

  /** @throws what the verb throws */
  async act(wish: Wish): Promise<Outcome> {
    const { all } = wish;
    if (all !== undefined) return await this.actOnSome(wish, all);
    const line = lineOf(wish);
    const { documents, notes } = await runVerb(this.ctx, line);
    const [document] = documents;
    if (document === undefined) return { said: ["written", ...notes].map(shown).join("; ") };
    const { refused } = document as { refused?: Partial<Told>[] };
    const only = refused?.length === 1 && line.positionals.length === 1 ? refused[0] : undefined;
    if (only !== undefined) throw errorOf(toldOf(only));
    return { said: [textOf(line.verb, document), ...notes].map(shown).join("; ") };
  }

  private async actOnSome(wish: Wish, { state, q, after }: All): Promise<Outcome> {
    const tree = existingTree(this.ctx);
    const page = await pageOfTasks(tree, { state, limit: SOME, idPrefix: q, after });
    const ids = page.rows.map(({ id }) => id);
    const next = page.next === undefined ? {} : { next: page.next };
    const [only, ...others] = ids;
    if (only === undefined) return { done: 0, refused: [], ...next };
    try {
      const { documents } = await runVerb(this.ctx, lineOf(wish, ids));
      const { refused = [] } = documents[0] as { refused?: Partial<Told>[] };
      const told = refused.map((one) => toldOf(one));
      return { done: ids.length - told.length, refused: told, ...next };
    } catch (error) {
      // For a single task the verb throws when it refuses. Any other error, such as one of the disk, concerns all tasks.
      if (others.length > 0 || !(error instanceof MailchuteError)) throw error;
      return { done: 0, refused: [{ id: shown(only), error: describeError(error) }], ...next };
    }
  }
}

/** A refused command names the task in its arguments. */
function toldOf({ id, error, ...more }: Partial<Told> & { args?: { node?: string } }): Told {
  const report = error ?? { code: "ErrBug", message: "refused without a reason" };
  return { id: shown(id ?? more.args?.node ?? ""), error: report };
}

function errorOf({ error: { code, message, ...more } }: Told): MailchuteError {
  return new MailchuteError(code, message, more);
}

/** The result of a verb, for people. */
function textOf(verb: string, document: Record<string, unknown>): string {
  const { result, sent, refused, retried, id } = document;
  const count = (list: unknown): number => (Array.isArray(list) ? list.length : 0);
  if (retried !== undefined || sent !== undefined) {
    const what = retried === undefined ? "taken up" : "retried";
    const more = count(refused) === 0 ? "" : `, ${count(refused)} refused`;
    return `${counted(count(retried ?? sent), "task")} ${what}${more}`;
  }
  if (result !== undefined) return resultText(result as Record<string, unknown>);
  if (verb === "answer") return "answered";
  return typeof id === "string" ? `${id} waits in the inbox` : "done";
}
