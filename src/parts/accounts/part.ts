/**
 * Keeps tasks from starting while the account of their agent has used up its quota: those in the inbox are not accepted, those
 * that a worker put back stay held. When the time of the account has come, it lets them go. The gates are files, which workers write.
 */
import { accountOf, accountsDir, GateFile } from "../../agents/accounts/gate-file.ts";
import { accountOfHold, type Entry, quotaHold } from "../../agents/accounts/gate-rules.ts";
import type { ClosedGate } from "../../core/documents.ts";
import { isoTime } from "../../core/iso-time.ts";
import { gateOfLane } from "../../core/waiting-task.ts";
import type {
  Part,
  PartReport,
  StartLimit,
  StatusSource,
} from "../../supervisor/environment/part.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { AccountWatch } from "./account-watch.ts";

class AccountsPart implements Part, StartLimit, StatusSource {
  readonly ports = { startLimit: this, status: this };
  version = 0;
  private readonly env: PartHost["env"];
  /** Of the agents that have one. */
  private readonly accounts = new Map<string, string>();
  /** By account. */
  private readonly watches = new Map<string, AccountWatch>();
  private closed: ClosedGate[] = [];

  constructor({ env }: Pick<PartHost, "env">) {
    this.env = env;
    for (const agent of env.settings.agents) {
      const account = accountOf(agent);
      if (account !== undefined) this.accounts.set(agent.name, account);
    }
  }

  async start(): Promise<void> {
    for (const account of this.accounts.values()) this.watch(account);
  }

  /** Looks at the gates, and says what has changed. */
  work(): void {
    const closed = [...this.watches].flatMap(([account, watch]) => {
      const entry = watch.look();
      return entry.gate.status === "open" ? [] : [this.describe(account, entry)];
    });
    const before = new Set(this.closed.map(textOf));
    const news = closed.filter((gate) => !before.has(textOf(gate)));
    if (news.length === 0 && closed.length === this.closed.length) return;
    this.closed = closed;
    this.version++;
    for (const { why } of news) this.env.alerts.notice(why);
  }

  nextMs(): number {
    return Math.min(...[...this.watches.values()].map((watch) => watch.nextMs()));
  }

  async finish(): Promise<void> {}

  close(): void {}

  mayStart(lane: string): boolean {
    return this.watchOf(lane)?.mayStart() ?? true;
  }

  noteStart(lane: string): void {
    this.watchOf(lane)?.noteStart();
  }

  report(): PartReport {
    return { gates: this.closed };
  }

  unmatched(): string[] {
    return [];
  }

  wouldRun(): string[] {
    return [];
  }

  /** Undefined: tasks of this lane wait for no account. */
  private watchOf(lane: string): AccountWatch | undefined {
    const gate = gateOfLane(lane);
    const account = gate === undefined ? this.accounts.get(lane) : accountOfHold(gate);
    return account === undefined ? undefined : this.watch(account);
  }

  private watch(account: string): AccountWatch {
    let watch = this.watches.get(account);
    if (watch === undefined) {
      watch = new AccountWatch(new GateFile(accountsDir(), account), this.env.trays.clock);
      this.watches.set(account, watch);
    }
    return watch;
  }

  private describe(account: string, { gate }: Entry): ClosedGate {
    const agents = [...this.accounts].flatMap(([name, own]) => (own === account ? [name] : []));
    const isClosed = gate.status === "closed";
    const when = isClosed ? `no run before ${isoTime(gate.until_ms)}` : "runs start one by one";
    const why = `account ${account}: ${when}: ${gate.reason}`;
    const todo = `wait; it goes on by itself. To try at once: rm ${new GateFile(accountsDir(), account).path}`;
    return {
      gate: quotaHold(account),
      agents,
      until_ms: isClosed ? gate.until_ms : 0,
      why,
      do: todo,
    };
  }
}

function textOf({ gate, why }: ClosedGate): string {
  return `${gate} ${why}`;
}

export const accounts: MakePart = (host) => new AccountsPart(host);
