/**
 * Keeps tasks from starting while all accounts of their agent have used up their quota: those in the inbox are not accepted, those
 * that a worker put back stay held. It releases them when an account may be used again. Workers write the gates, which are files.
 */
import { accountsOf, reserveOf } from "../../agents/accounts/account-settings.ts";
import { accountsDir, GateFile } from "../../agents/accounts/gate-file.ts";
import { type Entry, quotaHold } from "../../agents/accounts/gate-rules.ts";
import type { ClosedGate } from "../../core/documents.ts";
import { isoTime } from "../../core/iso-time.ts";
import { Standing } from "../../core/standing.ts";
import { readLane } from "../../core/waiting-task.ts";
import type {
  Part,
  PartReport,
  StartLimit,
  StatusSource,
} from "../../supervisor/environment/part.ts";
import type { PartHost } from "../../supervisor/part.ts";
import { AccountWatch } from "./account-watch.ts";

const NONE: readonly string[] = [];

class AccountsPart implements Part, StartLimit, StatusSource {
  readonly ports = { startLimit: this, status: this };
  version = 0;
  private readonly env: PartHost["env"];
  /** The accounts of each agent, by its name, the best first. */
  private readonly accounts = new Map<string, readonly string[]>();
  /** By account. */
  private readonly watches = new Map<string, AccountWatch>();
  private closed: ClosedGate[] = [];

  constructor(
    { env }: Pick<PartHost, "env">,
    private readonly limits = new Standing(),
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

  /**
   * Looks at the gates, and sends an alert for each limit that is news. A gate opens step by step, and each step may close it again:
   * that is one limit.
   */
  work(): void {
    const closed = [...this.watches]
      .filter(([, watch]) => !watch.isFree)
      .map(([account, watch]) => ({ entry: watch.look(), account }))
      .map(({ entry, account }) => ({
        ...this.describe(account, entry),
        limit: limitOf(account, entry),
      }))
      .sort((a, b) => a.until_ms - b.until_ms);
    const news = this.limits.news(
      new Set(closed.map(({ limit }) => limit)),
      this.env.trays.clock.monotonicMs(),
    );
    for (const { limit, why } of closed) if (news.has(limit)) this.env.alerts.alert("quota", why);
    const gates = closed.map(({ limit: _limit, ...gate }) => gate);
    if (gates.map(textOf).join("\n") === this.closed.map(textOf).join("\n")) return;
    this.closed = gates;
    this.version++;
  }

  nextMs(): number {
    return Math.min(...[...this.watches.values()].map((watch) => watch.nextMs()));
  }

  async finish(): Promise<void> {}

  close(): void {}

  /** A held task is judged by the accounts that its agent has now, even if it waits for an account that the agent no longer has. */
  mayStart(lane: string): boolean {
    const accounts = this.accountsOfLane(lane);
    return accounts.length === 0 || accounts.some((account) => this.watch(account).mayStart());
  }

  noteStart(lane: string): boolean {
    const first = this.accountsOfLane(lane).find((account) => this.watch(account).mayStart());
    if (first !== undefined) this.watch(first).noteStart();
    return first !== undefined;
  }

  report(): PartReport {
    return { gates: this.closed };
  }

  private accountsOfLane(lane: string): readonly string[] {
    return this.accounts.size === 0 ? NONE : (this.accounts.get(readLane(lane).agent) ?? NONE);
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
    const who = [
      ...(agents.length === 0 ? [] : [`tasks of ${agents.join(", ")} wait`]),
      ...elsewhere,
    ];
    const isReserved = entry.gate.status === "open";
    const todo = isReserved
      ? `to use the rest, too: lower reserve_pct of ${account} in config.yaml, and restart mailchute run`
      : `to try at once: rm ${new GateFile(accountsDir(), account).path}`;
    return {
      gate: quotaHold(account),
      agents,
      until_ms: untilMs,
      why: [`account ${account}: ${when}: ${reason}`, ...who].join("; "),
      do: `wait, it goes on by itself; ${todo}`,
    };
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
export const accounts = (host: Pick<PartHost, "env">, limits?: Standing): Part & StatusSource =>
  new AccountsPart(host, limits);
