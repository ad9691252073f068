/** What a person at the terminal sees of a run: a line for each event, and below them how far it is. */
import type { StateTree } from "../../core/state-tree.ts";
import type { Context } from "../shell/command-spec.ts";
import { LiveLines } from "../text/live-lines.ts";
import { openWaitLine, type Standing, type WaitLine } from "./wait-line.ts";

/** With more tasks at work none is asked what it says. */
const LOOKED_AT_MAX = 200;

/** As the supervisor tells it: numbers of tasks. */
interface Progress {
  completed: number;
  failed: number;
  skipped: number;
  left: number;
  accepted: number;
  isAllKnown: boolean;
}

export class RunLines {
  /** For all else that is printed while it runs. */
  readonly out: Context["out"];
  private readonly line: WaitLine | undefined;
  private live: LiveLines | undefined;

  /** @param hasEnd it ends by itself, so that it can be said how far it is */
  constructor(ctx: Context, tree: StateTree, hasEnd: boolean) {
    this.line = hasEnd ? openWaitLine(ctx, tree) : undefined;
    this.out = this.line?.beside(ctx.out) ?? ctx.out;
  }

  /** @param events path of the journal */
  follow(events: string, progress: () => Progress): void {
    this.live = new LiveLines(events, (event) => this.out.note(event));
    this.line?.follow(() => standingOf(progress()));
  }

  close(): void {
    this.live?.close();
    this.line?.close();
  }
}

/** Undefined before there is anything to do. Pure. */
export function standingOf(progress: Progress): Standing | undefined {
  const { completed, failed, skipped, left, accepted, isAllKnown } = progress;
  const ended = completed + failed + skipped;
  if (ended + left === 0) return undefined;
  const standing = { ended, failed, skipped, all: ended + left, isAllKnown };
  return accepted > LOOKED_AT_MAX ? standing : { ...standing, isWanted: () => true };
}
