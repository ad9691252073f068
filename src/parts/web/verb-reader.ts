/** Reads what a verb of the command line prints as JSON, in this process, and not too often: so a page cannot differ from its command. */
import type { Context } from "../../cli/shell/command-spec.ts";
import { runVerb } from "./run-verb.ts";

/** Reading again may take this share of a core; and this one when it is known that something has changed. */
const SHARE = 0.05;
const NEWS_SHARE = 0.25;
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
      kept.untilMs = doneMs + Math.max(againMs, tookMs / SHARE);
      kept.untilNewsMs = doneMs + tookMs / NEWS_SHARE;
    };
    documents.then(note, note);
    return documents;
  }

  private async run({ verb, subcommand, positionals = [], options = {} }: Asked): Promise<Json[]> {
    const line = { verb, positionals, options, ...(subcommand !== undefined && { subcommand }) };
    return (await runVerb(this.ctx, line)).documents;
  }
}
