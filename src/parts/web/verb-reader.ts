/** Reads the JSON output of a verb in this process, but not too often. So a page shows the same as its command. */
import type { Context } from "../../cli/shell/command-spec.ts";
import { type BackOffByCost, backOffByCost } from "../../core/back-off.ts";
import { runVerb } from "./run-verb.ts";

const REST: BackOffByCost = { times: 20, mostMs: 60_000 };
/** The pause when a changed stamp shows that something has changed. */
const NEWS_REST: BackOffByCost = { times: 4, mostMs: 10_000 };
const KEPT_MAX = 50;

type Json = Record<string, unknown>;

export interface Asked {
  verb: string;
  subcommand?: string;
  positionals?: string[];
  options?: Readonly<Record<string, unknown>>;
  /** The least time between two readings (ms). */
  againMs: number;
  /** The state of the file that the verb reads. With a new stamp it is read again sooner. */
  stamp?: string;
}

interface Kept {
  documents: Promise<Json[]>;
  stamp: string | undefined;
  untilMs: number;
  untilNewsMs: number;
}

export class VerbReader {
  private readonly kept = new Map<string, Kept>();

  /** @param ctx the context of `web` itself */
  constructor(private readonly ctx: Context) {}

  get env(): NodeJS.ProcessEnv {
    return this.ctx.env;
  }

  /** The first document of a verb; undefined when it prints none. @throws what the verb throws */
  async read(asked: Asked): Promise<Json | undefined> {
    return (await this.readAll(asked))[0];
  }

  /** All documents of a verb that prints several. @throws what the verb throws */
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
      kept.untilMs = doneMs + Math.max(againMs, backOffByCost(tookMs, REST));
      kept.untilNewsMs = doneMs + backOffByCost(tookMs, NEWS_REST);
    };
    documents.then(note, note);
    return documents;
  }

  private async run({ verb, subcommand, positionals = [], options = {} }: Asked): Promise<Json[]> {
    const line = { verb, positionals, options, ...(subcommand !== undefined && { subcommand }) };
    return (await runVerb(this.ctx, line)).documents;
  }
}
