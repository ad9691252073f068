/**
 * Gathers news for people, composes messages, and sends each until it is received. A message is saved before it is sent, and keeps its
 * id. So even after a crash it is sent at least once, and never under a second id.
 */
import os from "node:os";
import { basename, dirname } from "node:path";
import type { Apart } from "../../core/apart.ts";
import { messageOf } from "../../core/errors.ts";
import { NOTIFY_EVERY_MS, type NotifySettings, topicsOf } from "../../core/notify-settings.ts";
import { newLink } from "../../links/new-link.ts";
import type { Environment } from "../../supervisor/environment/environment.ts";
import { ordersApart } from "../../supervisor/environment/orders-apart.ts";
import { composeMessage, gather, needsPerson } from "./gathered.ts";
import { JournalNews } from "./journal-news.ts";
import { isMorning, localDate, readReport } from "./morning.ts";
import {
  type NotifyState,
  newTarget,
  notifyStates,
  type Places,
  STATE,
  type TargetState,
} from "./notify-state.ts";
import { sendMessage } from "./send.ts";
import type { News } from "./topics.ts";

/** All news within this time go into one message (ms). */
const GATHER_MS = 3000;
const MINUTE_MS = 60_000;
/** The waits after the first failed tries (ms). The last wait is repeated. */
const WAITS_MS = [10_000, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 30 * MINUTE_MS] as const;

export class Notifier {
  private readonly targets: readonly NotifySettings[];
  private readonly news: JournalNews;
  private readonly state: NotifyState;
  private isChanged: boolean;
  private readonly apart: Apart;
  private readonly sending = new Map<string, Promise<void>>();
  private report: Promise<void> | undefined;

  /** @param from where the journals are read from if this tree has never notified. @throws a system error */
  constructor(
    private readonly env: Environment,
    from: Places,
  ) {
    const { settings, tree, trays } = env;
    this.apart = ordersApart(env, "the news for");
    this.targets = settings.notify;
    const known = notifyStates(tree.dir).load(STATE);
    this.isChanged = known === undefined;
    this.state = known ?? { v: 1, ...from, is_busy: false, targets: {} };
    this.news = new JournalNews(tree, this.state);
    for (const { name, at } of this.targets) {
      if (Object.hasOwn(this.state.targets, name)) continue;
      // Today's report is due only if its time is still to come.
      const wallMs = trays.clock.wallMs();
      const morning = at !== undefined && isMorning(at, wallMs) ? localDate(wallMs) : undefined;
      this.state.targets[name] = { ...newTarget(), ...(morning === undefined ? {} : { morning }) };
      this.isChanged = true;
    }
  }

  /** True while a message is being sent or the report is being made. */
  get isSending(): boolean {
    return this.sending.size > 0 || this.report !== undefined;
  }

  /** Called when a task has ended. A message follows once all tasks have ended. */
  noteBusy(): void {
    if (this.state.is_busy) return;
    this.state.is_busy = true;
    this.isChanged = true;
  }

  /** @param isDrained true if no task waits or runs. @throws a system error: the next look tries again */
  look(isDrained: boolean, isEnd = false): void {
    const wallMs = this.env.trays.clock.wallMs();
    this.take(this.news.read(isEnd), wallMs);
    if (isDrained && this.state.is_busy) {
      this.state.is_busy = false;
      this.take([{ topic: "drained", text: "no task waits or runs any more" }], wallMs);
      this.isChanged = true;
    }
    const each = (work: (target: NotifySettings) => void): void =>
      this.apart.eachNow(this.targets, ({ name }) => name, work);
    each((target) => this.compose(target, wallMs, isEnd));
    this.save();
    each((target) => this.send(target, wallMs, isEnd));
    // At the end of a run the report is left for the next one.
    if (!isEnd) this.startReport(wallMs);
  }

  /** Sends all news, and waits at most `limitMs`. The next supervisor sends the rest. */
  async finish(isDrained: boolean, limitMs: number): Promise<void> {
    this.look(isDrained, true);
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => (timer = setTimeout(resolve, limitMs)));
    await Promise.race([Promise.all(this.sending.values()), limit]);
    clearTimeout(timer);
    this.save();
  }

  close(): void {
    this.news.close();
  }

  private take(news: readonly News[], wallMs: number): void {
    for (const target of this.targets) {
      const topics = topicsOf(target);
      const state = this.stateOf(target);
      for (const one of news) {
        if (!topics.includes(one.topic)) continue;
        state.gathered = gather(state.gathered, one, wallMs);
        this.isChanged = true;
      }
    }
  }

  private compose(target: NotifySettings, wallMs: number, isEnd: boolean): void {
    const state = this.stateOf(target);
    const { gathered } = state;
    if (gathered === undefined || state.pending !== undefined) return;
    const isOver = (sinceMs: number, waitMs: number): boolean =>
      isEnd || wallMs - sinceMs >= waitMs || sinceMs > wallMs;
    if (!isOver(gathered.since_ms, GATHER_MS)) return;
    if (!isOver(state.made_at_ms, target.every_ms ?? NOTIFY_EVERY_MS)) return;
    const { tree } = this.env;
    state.n++;
    // The time keeps the ids different from those of a copied tree, or of an earlier tree at this place.
    const id = `${target.name}-${state.n}-${gathered.since_ms.toString(36)}`;
    const link = needsPerson(gathered) ? this.linkTo(gathered.failed ?? [], wallMs) : undefined;
    state.pending = composeMessage(id, gathered, basename(dirname(tree.dir)), wallMs, link);
    delete state.gathered;
    Object.assign(state, { made_at_ms: wallMs, tries: 0, next_at_ms: 0 });
    this.isChanged = true;
  }

  /** Undefined without `web.public_url`, and when the key cannot be used: the message goes without it. */
  private linkTo(failed: string[], nowMs: number): string | undefined {
    const { settings, tree, alerts } = this.env;
    const { public_url: url } = settings.web;
    if (url === "") return undefined;
    try {
      return newLink(url, tree.dir, { failed, nowMs });
    } catch (error) {
      alerts.report("notify:link", `messages have no links: ${messageOf(error)}`);
      return undefined;
    }
  }

  private send(target: NotifySettings, wallMs: number, isEnd: boolean): void {
    const { name } = target;
    const state = this.stateOf(target);
    const { pending: message } = state;
    if (message === undefined || this.sending.has(name)) return;
    const longestMs = WAITS_MS[WAITS_MS.length - 1] ?? 0;
    // If the clock was set back, the message must not wait too long.
    const isDue = state.next_at_ms <= wallMs || state.next_at_ms > wallMs + 2 * longestMs;
    if (!isDue && !isEnd) return;
    const from = { env: process.env, host: os.hostname(), stateDir: this.env.tree.dir };
    const sent = sendMessage(target, message, { ...from, nowMs: wallMs }).then((result) => {
      this.sending.delete(name);
      const nowMs = this.env.trays.clock.wallMs();
      this.isChanged = true;
      if (result.isSent) {
        delete state.pending;
        delete state.error;
        state.sent_at_ms = nowMs;
      } else this.noteFailure(name, state, result.why, nowMs + (result.retryAfterMs ?? 0));
      this.saveNow();
    });
    this.sending.set(name, sent);
  }

  private noteFailure(name: string, state: TargetState, why: string, fromMs: number): void {
    const waitMs = WAITS_MS[Math.min(state.tries, WAITS_MS.length - 1)] ?? 0;
    state.tries++;
    state.next_at_ms = fromMs + waitMs;
    if (state.error === why) return;
    state.error = why;
    this.env.alerts.alert("notify", `cannot notify ${name}: ${why}; trying again`);
  }

  /** Starts the report in a separate program, because it reads whole journals. */
  private startReport(wallMs: number): void {
    const due = this.targets.filter(
      (target) =>
        target.at !== undefined &&
        topicsOf(target).includes("morning") &&
        isMorning(target.at, wallMs) &&
        this.stateOf(target).morning !== localDate(wallMs),
    );
    if (due.length === 0 || this.report !== undefined) return;
    this.report = readReport(this.env.tree.dir).then((text) => {
      for (const target of due) {
        const state = this.stateOf(target);
        state.gathered = gather(state.gathered, { topic: "morning", text }, wallMs);
        state.morning = localDate(wallMs);
      }
      this.isChanged = true;
      this.report = undefined;
      this.env.wake();
    });
  }

  private stateOf({ name }: NotifySettings): TargetState {
    const { targets } = this.state;
    targets[name] ??= newTarget();
    return targets[name];
  }

  /** Saves the state between two looks. */
  private saveNow(): void {
    try {
      this.save();
    } catch {
      // The next look tries again, and reports the error.
    }
  }

  private save(): void {
    const { tree, settings } = this.env;
    if (!this.isChanged) return;
    Object.assign(this.state, this.news.places);
    notifyStates(tree.dir, settings.durability === "power").replace(STATE, this.state);
    this.isChanged = false;
  }
}
