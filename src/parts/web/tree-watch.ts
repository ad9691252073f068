/**
 * Notices changes in a state tree, for all streams together. It compares the times of folders and files. That takes about ten calls
 * each round, however many files change. A watcher of the system would get an event for each file, and none when a folder is
 * replaced.
 */
import { join } from "node:path";
import type { StateTree } from "../../core/state-tree.ts";
import { stampOf } from "../../view/kept.ts";

const ROUND_MS = 50;

export class TreeWatch {
  private readonly paths: readonly string[];
  private timer: NodeJS.Timeout | undefined;
  private stamps = "";

  /** @param more gives further paths in each round */
  constructor(
    tree: StateTree,
    private readonly onChange: () => void,
    private readonly more: () => Iterable<string>,
  ) {
    this.paths = pathsOf(tree);
  }

  start(): void {
    if (this.timer !== undefined) return;
    this.stamps = this.look();
    this.timer = setInterval(() => {
      const now = this.look();
      if (now === this.stamps) return;
      this.stamps = now;
      this.onChange();
    }, ROUND_MS);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private look(): string {
    let text = "";
    for (const path of this.paths) text += `${stampOf(path)} `;
    for (const path of this.more()) text += `${stampOf(path)} `;
    return text;
  }
}

/** The paths to compare. A folder changes when a name in it comes or goes, and a file when it is written. */
function pathsOf(tree: StateTree): string[] {
  const trays = ["inbox", "processing", "outbox", "failed"];
  const { dir, mailbox, control, runs, roadmap, supervisor, controlState, metrics, alerts } = tree;
  return [
    dir,
    ...trays.map((name) => join(mailbox, name)),
    join(control, "inbox"),
    join(control, "outbox"),
    join(dir, "questions", "open"),
    runs,
    roadmap,
    supervisor,
    controlState,
    metrics,
    alerts,
  ];
}
