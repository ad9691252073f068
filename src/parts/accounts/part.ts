/**
 * Keeps tasks from starting while all accounts of their agent have used up their quota: those in the inbox are not accepted, those
 * that a worker put back stay held. It releases them when an account may be used again. Workers write the gates, which are files.
 */
import { accountsOf, reserveOf } from "../../agents/accounts/account-settings.ts";
import { accountsDir, GateFile } from "../../agents/accounts/gate-file.ts";
import { type Entry, quotaHold } from "../../agents/accounts/gate-rules.ts";
import type { ClosedGate } from "../../core/documents.ts";
import { closedGate } from "../../core/gates.ts";
import { isoTime } from "../../core/iso-time.ts";
import type { Lane } from "../../core/waiting-task.ts";
import type { Part, StartLimit, StatusSource } from "../../supervisor/environment/part.ts";
import type { PartHost } from "../../supervisor/part.ts";
import { AccountWatch, LOOK_MS } from "./account-watch.ts";
import { NewConditions } from "./new-conditions.ts";

class AccountsPart implements Part, StartLimit, StatusSource {
  readonly ports = { startLimit: this, status: this };
  version = 0;
  private readonly env: PartHost["env"];
  /** The accounts of each agent, by its name, the best first. */
  private readonly accounts = new Map<string, readonly string[]>();
  /** By account. */
  private readonly watches = new Map<string, AccountWatch>();
  private told: readonly ClosedGate[] = [];
  private lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    { env }: Pick<PartHost, "env">,
    private readonly limits = new NewConditions(),
  ) {
    this.env = env;
    for (const agent of env.settings.agents) {
      const accounts = accountsOf(agent);
      if (accounts.length > 0) this.accounts.set(agent.name, accounts);
    }
  }

  async start(): Promise<void> {
    for (const accounts of this.accounts.values())
      for (const account of accounts) this.watch(account);
  }

  /** Sends an alert for each limit that is news. A gate opens step by step, and each step may close it again: that is one limit. */
  work(): void {
    const closed = this.look();
    const limits = new Set(closed.map(({ limit }) => limit));
    const news = this.limits.news(limits, this.env.trays.clock.monotonicMs());
    for (const { limit, why } of closed) if (news.has(limit)) this.env.alerts.alert("quota", why);
  }

  get gates(): readonly ClosedGate[] {
    const isDue = (): boolean => this.env.trays.clock.monotonicMs() - this.lookedAtMs >= LOOK_MS;
    if (this.watches.size > 0 && isDue()) this.look();
    return this.told;
  }

  private look(): (ClosedGate & { limit: string })[] {
    this.lookedAtMs = this.env.trays.clock.monotonicMs();
    const found = [...this.watches]
      .filter(([, watch]) => !watch.isFree)
      .map(([account, watch]) => ({ entry: watch.look(), account }))
      .map(({ entry, account }) => ({
        ...this.describe(account, entry),
        limit: limitOf(account, entry),
      }))
      .sort((a, b) => a.until_ms - b.until_ms);
    const gates = found.map(({ limit: _limit, ...gate }) => gate);
    if (gates.map(textOf).join("\n") !== this.told.map(textOf).join("\n")) {
      this.told = gates;
      this.version++;
    }
    return found;
  }

  nextMs(): number {
    return Math.min(...[...this.watches.values()].map((watch) => watch.nextMs()));
  }

  /** A held task is judged by the accounts that its agent has now, even if it waits for an account that the agent no longer has. */
  mayPass(lane: Lane): boolean {
    return !this.accounts.has(lane.agent) || this.firstOpen(lane) !== undefined;
  }

  noteStart(lane: Lane): boolean {
    const first = this.firstOpen(lane);
    if (first !== undefined) this.watch(first).noteStart();
    return first !== undefined;
  }

  private firstOpen({ agent }: Lane): string | undefined {
    return this.accounts.get(agent)?.find((account) => this.watch(account).mayStart());
  }

  private watch(account: string): AccountWatch {
    let watch = this.watches.get(account);
    if (watch === undefined) {
      const { settings, trays } = this.env;
      const reservePct = reserveOf(account, settings.accounts);
      watch = new AccountWatch(new GateFile(accountsDir(), account, reservePct), trays.clock);
      this.watches.set(account, watch);
    }
    return watch;
  }

  private describe(account: string, entry: Entry): ClosedGate {
    const agents: string[] = [];
    const elsewhere: string[] = [];
    for (const [agent, accounts] of this.accounts) {
      if (!accounts.includes(account)) continue;
      const open = accounts.find((one) => this.watch(one).isFree);
      if (open === undefined) agents.push(agent);
      else elsewhere.push(`${agent} works with account ${open}`);
    }
    const untilMs = entry.may || entry.isTurn === true ? 0 : entry.untilMs;
    const when = untilMs > 0 ? `no run before ${isoTime(untilMs)}` : "runs start one by one";
    const reason = entry.may ? entry.gate.reason : entry.why;
    const others = (name: string): readonly string[] =>
      this.env.settings.agents.find((one) => one.name === name)?.fallback ?? [];
    const waiting = agents.filter((name) => others(name).length === 0);
    const who = [
      ...(waiting.length === 0 ? [] : [`tasks of ${waiting.join(", ")} wait`]),
      ...agents
        .filter((name) => others(name).length > 0)
        .map((name) => `tasks of ${name} go to ${others(name).join(", ")}`),
      ...elsewhere,
    ];
    const isReserved = entry.gate.status === "open";
    const todo = isReserved
      ? `to use the rest, too: lower reserve_pct of ${account} in config.yaml, and restart mailchute run`
      : `to try at once: rm ${new GateFile(accountsDir(), account).path}`;
    const why = [`account ${account}: ${when}: ${reason}`, ...who].join("; ");
    const more = { agents, until_ms: untilMs };
    return closedGate(quotaHold(account), why, `wait, it goes on by itself; ${todo}`, more);
  }
}

/** A key for the limit that closes the account: the window of its quota, or what is left to its owner. */
function limitOf(account: string, { gate }: Entry): string {
  return `${account} ${gate.status === "open" ? "reserve" : (gate.window ?? "")}`;
}

function textOf({ gate, why }: ClosedGate): string {
  return `${gate} ${why}`;
}

/** @param limits says which limits a person is told */
export const accounts = (host: Pick<PartHost, "env">, limits?: NewConditions): Part & StartLimit =>
  new AccountsPart(host, limits);
