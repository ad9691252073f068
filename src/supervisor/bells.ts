/** The doorbells of a supervisor: both inboxes always, `processing/` while others than its own workers move files there. */
import { systemCode } from "../core/errors.ts";
import { Doorbell } from "../host/doorbell.ts";
import type { Trays } from "../mailbox/trays.ts";
import type { Alerts } from "./alerts.ts";

export interface BellHooks {
  /** @param name of what came or went in the inbox, if it is known */
  onTask(name: string | undefined): void;
  onCommand(): void;
  onProcessing(): void;
  /** From now on somebody polls. */
  onFallback(): void;
}

export class Bells {
  private readonly trays: Trays;
  private readonly hooks: BellHooks;
  private readonly alerts: Alerts;
  private readonly inboxes: Doorbell[];
  private processing: Doorbell | undefined;
  watching: "events" | "polling" = "events";

  /** @param isOn false when only commands are taken */
  constructor(trays: Trays, controlTrays: Trays, isOn: boolean, alerts: Alerts, hooks: BellHooks) {
    this.trays = trays;
    this.hooks = hooks;
    this.alerts = alerts;
    const onFallback = (error: unknown): void => this.fallBack(error);
    this.inboxes = [
      new Doorbell(controlTrays.inbox, { onRing: () => hooks.onCommand(), onFallback }),
    ];
    if (isOn)
      this.inboxes.push(
        new Doorbell(trays.inbox, { onRing: (name) => hooks.onTask(name), onFallback }),
      );
  }

  start(): void {
    for (const bell of this.inboxes) bell.start();
  }

  stop(): void {
    for (const bell of this.all()) bell.stop();
  }

  watchProcessing(isWanted: boolean): void {
    if (!isWanted) {
      this.processing?.stop();
      this.processing = undefined;
      return;
    }
    if (this.processing !== undefined) return;
    this.processing = new Doorbell(this.trays.processing, {
      onRing: () => this.hooks.onProcessing(),
      onFallback: () => {},
    });
    this.processing.start();
  }

  /** Watches anew what was replaced by a directory of the same name. @returns true when one was */
  rearm(): boolean {
    return this.all().filter((bell) => bell.rearm()).length > 0;
  }

  private all(): Doorbell[] {
    return this.processing === undefined ? this.inboxes : [...this.inboxes, this.processing];
  }

  private fallBack(error: unknown): void {
    this.watching = "polling";
    const text = `no directory watch can be had (${systemCode(error)}); polling instead, which costs a little more and is a little slower`;
    this.alerts.notice(text);
    this.alerts.raise("polling", text);
    this.hooks.onFallback();
  }
}
