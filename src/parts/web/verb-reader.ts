/** Reads what a verb of the command line prints as JSON, in this process, and not too often: so a page cannot differ from its command. */
import type { Context } from "../../cli/shell/command-spec.ts";
import { type RestRule, restAfter } from "../../core/rest.ts";
import { runVerb } from "./run-verb.ts";

const REST: RestRule = { times: 20, mostMs: 60_000 };
/** When it is known that something has changed. */
const NEWS_REST: RestRule = { times: 4, mostMs: 10_000 };
const KEPT_MAX = 50;

type Json = Record<string, unknown>;

export interface Asked {
  verb: string;
  subcommand?: string;
  positionals?: string[];
  options?: Readonly<Record<string, unknown>>;
  /** The least time between two readings (ms). */
  againMs: number;
  /** Names the state of the file that is read: one that has changed is read again sooner. */
  stamp?: string;
}

interface Kept {
  documents: Promise<Json[]>;
  stamp: string | undefined;
  untilMs: number;
  untilNewsMs: number;
}

export class VerbReader {
  private readonly ctx: Context;
  private readonly kept = new Map<string, Kept>();

  /** @param ctx of `web` itself */
  constructor(ctx: Context) {
    this.ctx = ctx;
  }

  get env(): NodeJS.ProcessEnv {
    return this.ctx.env;
  }

  /** Undefined when it prints nothing. @throws what the verb throws */
  async read(asked: Asked): Promise<Json | undefined> {
    return (await this.readAll(asked))[0];
  }

  /** Of a verb that prints several documents. @throws what the verb throws */
  readAll(asked: Asked): Promise<Json[]> {
    const { againMs, stamp, ...line } = asked;
    const key = JSON.stringify(line);
    const nowMs = performance.now();
    const before = this.kept.get(key);
    if (before !== undefined) {
      const { untilMs, untilNewsMs } = before;
      if (nowMs < (stamp === before.stamp ? untilMs : untilNewsMs)) return before.documents;
    }
    const never = Number.POSITIVE_INFINITY;
    const documents = this.run(asked);
    const kept: Kept = { documents, stamp, untilMs: never, untilNewsMs: never };
    this.kept.delete(key);
    this.kept.set(key, kept);
    const [oldest] = this.kept.keys();
    if (oldest !== undefined && this.kept.size > KEPT_MAX) this.kept.delete(oldest);
    const note = (): void => {
      const doneMs = performance.now();
      const tookMs = doneMs - nowMs;
      kept.untilMs = doneMs + Math.max(againMs, restAfter(tookMs, REST));
      kept.untilNewsMs = doneMs + restAfter(tookMs, NEWS_REST);
    };
    documents.then(note, note);
    return documents;
  }

  private async run({ verb, subcommand, positionals = [], options = {} }: Asked): Promise<Json[]> {
    const line = { verb, positionals, options, ...(subcommand !== undefined && { subcommand }) };
    return (await runVerb(this.ctx, line)).documents;
  }
}
