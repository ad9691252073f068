/** What a person who waits for tasks sees on a terminal: how many have ended, and the progress of a running one. Reads only. */
import { join } from "node:path";
import { isatty } from "node:tty";
import { runOf } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { countText, duration } from "../../text/render.ts";
import { batchBar, readBatchProgress } from "../../view/batches.ts";
import { processingPlaces } from "../../view/find-task.ts";
import { RunTails } from "../../view/run-tails.ts";
import { bar, progressText } from "../../view/task-progress.ts";
import type { Context } from "../shell/command-spec.ts";
import { StatusLine } from "./status-line.ts";

const STDERR = 2;
const LOOK_MS = 250;

/** The progress of the wait. */
export interface WaitProgress {
  ended: number;
  failed: number;
  /** Left out: none. */
  skipped?: number;
  all: number;
  /** Whether the command waits for this task. Left out when too many tasks run to look at each. */
  isWanted?: (id: string) => boolean;
  /** False while there may be more tasks. */
  isAllKnown?: boolean;
}

/** Undefined when stderr is no terminal that can redraw a line, or with --json. */
export function openWaitLine(
  { json, env }: Pick<Context, "json" | "env">,
  tree: StateTree,
): WaitLine | undefined {
  const isSeen = isatty(STDERR) && !json && env["TERM"] !== "dumb";
  return isSeen ? new WaitLine(tree) : undefined;
}

export class WaitLine {
  private readonly line = new StatusLine();
  private readonly tails = new RunTails();
  private readonly beganMs = performance.now();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly tree: StateTree) {}

  /** @param standing called a few times a second; it returns undefined when there is nothing to show */
  follow(standing: () => WaitProgress | undefined): void {
    this.timer = setInterval(() => this.draw(standing()), LOOK_MS).unref();
    // A second Ctrl-C ends the process at once.
    process.once("exit", this.close);
  }

  /** For notes that are printed while the line is shown. */
  beside(out: Context["out"]): Context["out"] {
    return this.line.beside(out);
  }

  readonly close = (): void => {
    clearInterval(this.timer);
    process.off("exit", this.close);
    this.line.hide();
  };

  private draw(standing: WaitProgress | undefined): void {
    if (standing === undefined) this.line.hide();
    else
      this.line.show(waitText(standing, this.saying(standing), performance.now() - this.beganMs));
  }

  /** What a running task says; of several, the first one that says something. */
  private saying(standing: WaitProgress): string | undefined {
    const { isWanted } = standing;
    if (isWanted === undefined) return "";
    const hasBar = isOne(standing);
    let first: string | undefined;
    const looked = new Set<string>();
    for (const { id, name, state } of processingPlaces(this.tree)) {
      if (state !== "running" || name === undefined || !isWanted(id)) continue;
      const dir = join(this.tree.runs, runOf(name));
      looked.add(dir);
      const text = name.isBatch === true ? linesOf(dir, hasBar) : this.saidIn(dir, hasBar);
      if (text !== "") {
        first = `${id}  ${text}`;
        break;
      }
      first ??= `${id} runs`;
    }
    this.tails.keepOnly(looked);
    return first;
  }

  private saidIn(runDir: string, hasBar: boolean): string {
    const { progress, lastLine } = this.tails.look(runDir);
    return progress === undefined ? (lastLine ?? "") : progressText(progress, hasBar);
  }
}

function linesOf(runDir: string, hasBar: boolean): string {
  const progress = readBatchProgress(runDir);
  return progress === undefined ? "" : batchBar(progress, hasBar);
}

/** Whether the command waits for one task only. Then that task's own progress bar is shown. */
function isOne({ all, isAllKnown = true }: WaitProgress): boolean {
  return all === 1 && isAllKnown;
}

/** `[#####---------------] 3 of 12 ended, 1 failed  build  40 %  tests`. Pure. */
export function waitText(
  standing: WaitProgress,
  saying: string | undefined,
  sinceMs: number,
): string {
  const { ended, failed, skipped = 0, all, isAllKnown = true } = standing;
  const what = saying ?? "nothing runs";
  if (isOne(standing)) return `${what}  (${duration(sinceMs)})`;
  const bad = failed === 0 ? "" : `, ${countText(failed)} failed`;
  const left = skipped === 0 ? "" : `, ${countText(skipped)} skipped`;
  const tasks = `${countText(all, isAllKnown)} ${all === 1 ? "task" : "tasks"}`;
  return `${bar(all === 0 ? 0 : (ended / all) * 100)} ${countText(ended)} of ${tasks} ended${bad}${left}  ${what}`.trimEnd();
}
