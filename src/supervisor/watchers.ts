/** Watches directories for a supervisor: both inboxes always, and `processing/` while processes other than its own workers move files there. */
import { systemCode } from "../core/errors.ts";
import { DirWatcher } from "../host/dir-watcher.ts";
import type { Environment } from "./environment/environment.ts";

export class Watchers {
  private readonly inboxes: DirWatcher[];
  private processing: DirWatcher | undefined;
  watching: "events" | "polling" = "events";

  constructor(private readonly env: Environment) {
    const { trays, controlTrays, settings, facts } = env;
    const watch = (dir: string, fact: "inbox:changed" | "control:changed"): DirWatcher =>
      new DirWatcher(dir, {
        onChange: (name) => facts.emit(fact, name),
        onFallback: (error) => this.fallBack(error),
      });
    this.inboxes = [watch(controlTrays.inbox, "control:changed")];
    if (settings.mailbox_enabled) this.inboxes.push(watch(trays.inbox, "inbox:changed"));
  }

  start(): void {
    for (const watcher of this.inboxes) watcher.start();
  }

  stop(): void {
    for (const watcher of this.all()) watcher.stop();
  }

  watchProcessing(isWanted: boolean): void {
    if (!isWanted) {
      this.processing?.stop();
      this.processing = undefined;
      return;
    }
    if (this.processing !== undefined) return;
    this.processing = new DirWatcher(this.env.trays.processing, {
      onChange: () => this.env.facts.emit("processing:changed"),
      onFallback: () => {},
    });
    this.processing.start();
  }

  /** Watches again each directory that was replaced by another one of the same name. @returns true when there was one */
  rearm(): boolean {
    return this.all().filter((watcher) => watcher.rearm()).length > 0;
  }

  private all(): DirWatcher[] {
    return this.processing === undefined ? this.inboxes : [...this.inboxes, this.processing];
  }

  private fallBack(error: unknown): void {
    this.watching = "polling";
    const text = `no directory watch can be made (${systemCode(error)}); polling instead, which costs a little more and is a little slower`;
    this.env.alerts.notice(text);
    this.env.alerts.raise("polling", text);
    this.env.facts.emit("status:changed");
  }
}
