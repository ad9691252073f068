/** Notifies people by a program or a url while a supervisor runs. Does nothing without the setting `notify`. */
import { messageOf, systemCode } from "../../core/errors.ts";
import type { Part } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import type { Notifier } from "./notifier.ts";
import { type Places, placesNow } from "./notify-state.ts";

/** Time between two looks at the journals (ms). */
const LOOK_MS = 1000;

class NotifyPart implements Part {
  private readonly isOn: boolean;
  private notifier: Notifier | undefined;
  /** Where the journals ended before the first task of this run. A tree that has never notified is read from there. */
  private readonly from: Places | undefined;
  private opening: Promise<void> | undefined;
  private lookAtMs = 0;
  private isBusy = false;

  constructor(private readonly host: Pick<PartHost, "env" | "queue">) {
    this.isOn = host.env.settings.notify.length > 0;
    const { facts, tree } = host.env;
    this.from = this.isOn ? placesNow(tree) : undefined;
    if (this.isOn) facts.on("task:settled", () => (this.isBusy = true));
  }

  /** The first tick opens the files and not `start`, because a dry run has no ticks and must make no files. */
  work({ nowMs }: Tick): void {
    if (!this.isOn || nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    if (this.notifier === undefined) return void this.open();
    try {
      this.noteBusy();
      this.notifier.look(this.isDrained());
    } catch (error) {
      this.tell(error);
    }
  }

  nextMs(): number {
    return this.isOn ? this.lookAtMs : NEVER;
  }

  async finish(limitMs: number): Promise<void> {
    if (!this.isOn) return;
    await this.open();
    try {
      this.noteBusy();
      await this.notifier?.finish(this.isDrained(), limitMs);
    } catch (error) {
      this.tell(error);
    }
  }

  close(): void {
    this.notifier?.close();
  }

  /** Loads the code and opens the files. If the files cannot be read, the next call tries again. */
  private open(): Promise<void> {
    this.opening ??= this.openNow().finally(() => (this.opening = undefined));
    return this.opening;
  }

  private async openNow(): Promise<void> {
    if (this.notifier !== undefined) return;
    try {
      const { Notifier: Opened } = await import("./notifier.ts");
      if (this.from !== undefined) this.notifier = new Opened(this.host.env, this.from);
    } catch (error) {
      this.tell(error);
    }
  }

  private noteBusy(): void {
    if (this.isBusy) this.notifier?.noteBusy();
    this.isBusy = false;
  }

  private isDrained(): boolean {
    const { accepted, backlog } = this.host.queue;
    return backlog.size === 0 && accepted.size === 0;
  }

  private tell(error: unknown): void {
    const { alerts } = this.host.env;
    alerts.report(`notify:${systemCode(error)}`, `notify: ${messageOf(error)}`);
  }
}

export const notify: MakePart = (host) => new NotifyPart(host);
