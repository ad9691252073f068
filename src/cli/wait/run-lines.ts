/** What a person at the terminal sees of a run: a line for each event, and below them the progress. */
import type { StateTree } from "../../core/state-tree.ts";
import type { Context } from "../shell/command-spec.ts";
import { LiveLines } from "../text/live-lines.ts";
import { openWaitLine, type WaitLine, type WaitProgress } from "./wait-line.ts";

/** With more tasks in work than this, it does not read what they say. */
const LOOKED_AT_MAX = 200;

/** Numbers of tasks, from the supervisor. */
interface Progress {
  completed: number;
  failed: number;
  skipped: number;
  left: number;
  accepted: number;
  isAllKnown: boolean;
}

export class RunLines {
  /** The output for everything else that is printed during the run. */
  readonly out: Context["out"];
  private readonly line: WaitLine | undefined;
  private live: LiveLines | undefined;

  /** @param hasEnd true when the run ends by itself. Only then it can show its progress */
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

/** The progress of a run; undefined before there is any task. Pure. */
export function standingOf(progress: Progress): WaitProgress | undefined {
  const { completed, failed, skipped, left, accepted, isAllKnown } = progress;
  const ended = completed + failed + skipped;
  if (ended + left === 0) return undefined;
  const standing = { ended, failed, skipped, all: ended + left, isAllKnown };
  return accepted > LOOKED_AT_MAX ? standing : { ...standing, isWanted: () => true };
}
