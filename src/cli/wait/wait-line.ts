/** What a person who waits for tasks sees on a terminal: how many have ended, and how far one is that runs. Reads only. */
import { join } from "node:path";
import { isatty } from "node:tty";
import { runOf } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { counted, countText, duration } from "../../text/render.ts";
import { processingPlaces } from "../../view/find-task.ts";
import { RunTails } from "../../view/run-tails.ts";
import { progressText } from "../../view/task-progress.ts";
import type { Context } from "../shell/command-spec.ts";
import { StatusLine } from "./status-line.ts";

const STDERR = 2;
const LOOK_MS = 250;
const BAR_CELLS = 20;

/** How the wait stands. */
export interface Standing {
  ended: number;
  failed: number;
  all: number;
  /** Whether this task is waited for. */
  isWanted: (id: string) => boolean;
}

/** Undefined when no person looks, or one who reads a log. */
export function openWaitLine(
  { json, env }: Pick<Context, "json" | "env">,
  tree: StateTree,
): WaitLine | undefined {
  const isSeen = isatty(STDERR) && !json && env["TERM"] !== "dumb";
  return isSeen ? new WaitLine(tree) : undefined;
}

export class WaitLine {
  private readonly tree: StateTree;
  private readonly line = new StatusLine();
  private readonly tails = new RunTails();
  private readonly timer: NodeJS.Timeout;
  private readonly beganMs = performance.now();
  private standing: Standing | undefined;

  constructor(tree: StateTree) {
    this.tree = tree;
    this.timer = setInterval(() => this.draw(), LOOK_MS).unref();
  }

  update(standing: Standing): void {
    this.standing = standing;
  }

  /** For notes that are printed while the line is shown. */
  beside(out: Context["out"]): Context["out"] {
    return this.line.beside(out);
  }

  close(): void {
    clearInterval(this.timer);
    this.line.hide();
  }

  private draw(): void {
    if (this.standing === undefined) return;
    this.line.show(
      waitText(this.standing, this.saying(this.standing), performance.now() - this.beganMs),
    );
  }

  /** What the task says that runs; of several the first one that says anything. */
  private saying({ isWanted }: Standing): string | undefined {
    let first: string | undefined;
    for (const { id, name, state } of processingPlaces(this.tree)) {
      if (state !== "running" || name === undefined || !isWanted(id)) continue;
      const { progress, lastLine } = this.tails.look(join(this.tree.runs, runOf(name)));
      const text = progress === undefined ? (lastLine ?? "") : progressText(progress);
      if (text !== "") return `${id}  ${text}`;
      first ??= `${id} runs`;
    }
    return first;
  }
}

/** `[#####---------------] 3 of 12 ended, 1 failed  build  40 %  tests`. Pure. */
export function waitText(
  { ended, failed, all }: Standing,
  saying: string | undefined,
  sinceMs: number,
): string {
  const what = saying ?? "nothing runs yet";
  if (all === 1) return `${what}  (${duration(sinceMs)})`;
  const filled = all === 0 ? 0 : Math.floor((ended / all) * BAR_CELLS);
  const bar = `[${"#".repeat(filled)}${"-".repeat(BAR_CELLS - filled)}]`;
  const bad = failed === 0 ? "" : `, ${countText(failed)} failed`;
  return `${bar} ${countText(ended)} of ${counted(all, "task")} ended${bad}  ${what}`;
}
