/** Asks the gates of plugins about the tasks that wait: with what is known of them, and again every second while one is closed. */
import type { ClosedGate, GateFacts } from "../../core/documents.ts";
import { closedGate, factsOf, joinGates } from "../../core/gates.ts";
import { BUILT_IN_EXEC } from "../../core/matching.ts";
import type { Lane } from "../../core/waiting-task.ts";
import type { LoadedGate } from "../../plugin.ts";
import type {
  Closed,
  Part,
  PartPorts,
  StartLimit,
  StatusSource,
} from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";

/** How often a gate is asked about the same facts (ms): more rarely when it took long, or there are many facts. */
const AGAIN_MS = 1000;
/** A gate may take a hundredth of the time with the first facts, and a tenth with all of them. */
const REST = { one: 100, each: 10 };
/** So much counts for a gate that had to be ended (ms). */
const HUNG_MS = 50;
/** Facts are forgotten when no start was asked about them for so long (ms). */
const FORGET_MS = 10 * 60 * 1000;

/** What one gate last said about some facts. Times are monotonic ms. */
interface Answer {
  readonly gate: LoadedGate;
  readonly facts: GateFacts;
  closed: ClosedGate | undefined;
  againMs: number;
  usedMs: number;
}

class PluginsPart implements Part, StartLimit, StatusSource {
  readonly ports: PartPorts;
  version = 0;
  private list: readonly LoadedGate[] = [];
  private readonly answers = new Map<string, Answer[]>();
  /** Closed for all tasks, until the plugins are loaded. */
  private unloaded: ClosedGate | undefined;

  constructor(private readonly env: PartHost["env"]) {
    const { plugins, agents } = env.settings;
    // Without a number of slots the backlog would forget the group, about which a gate may ask.
    const groups = { hasGroups: false, slotsOf: () => Number.MAX_SAFE_INTEGER };
    this.ports = plugins.length === 0 ? {} : { startLimit: this, status: this, groups };
    const all = { agents: [BUILT_IN_EXEC, ...agents].map(({ name }) => name) };
    if (plugins.length > 0)
      this.unloaded = closedGate("plugins", "the plugins are being loaded", "wait", all);
  }

  /** The supervisor has loaded the plugins before, and does not begin when that fails. */
  async start(): Promise<void> {
    const { settings, tree } = this.env;
    if (settings.plugins.length === 0) return;
    const { loadPlugins } = await import("./load.ts");
    this.list = (await loadPlugins(settings, tree.dir)).flatMap(({ gates }) => gates);
    this.unloaded = undefined;
    this.version++;
  }

  work({ nowMs }: Tick): void {
    for (const [key, answers] of this.answers)
      for (const one of answers) {
        if (nowMs > one.usedMs + FORGET_MS) this.answers.delete(key);
        else if (one.closed !== undefined && nowMs >= one.againMs) this.ask(one);
      }
  }

  nextMs(): number {
    const closed = [...this.answers.values()].flat().filter((one) => one.closed !== undefined);
    return closed.reduce((soonest, { againMs }) => Math.min(soonest, againMs), NEVER);
  }

  closed(lane: Lane): Closed | undefined {
    const { unloaded } = this;
    if (unloaded !== undefined) return () => unloaded;
    if (this.list.length === 0) return undefined;
    const nowMs = this.env.trays.clock.monotonicMs();
    const facts = factsOf(lane);
    const key = JSON.stringify(facts);
    const answers =
      this.answers.get(key) ??
      this.list.map((gate) => ({ gate, facts, closed: undefined, againMs: 0, usedMs: 0 }));
    this.answers.set(key, answers);
    for (const one of answers) {
      one.usedMs = nowMs;
      if (nowMs >= one.againMs) this.ask(one);
    }
    const found = answers.find((one) => one.closed !== undefined);
    return found && (() => found.closed);
  }

  get gates(): readonly ClosedGate[] {
    const closed = [...this.answers.values()].flat().flatMap((one) => one.closed ?? []);
    return this.unloaded === undefined ? joinGates(closed) : [this.unloaded];
  }

  private ask(one: Answer): void {
    const { clock } = this.env.trays;
    const { gate, closed: last } = one;
    const beganMs = clock.monotonicMs();
    const before = process.cpuUsage();
    one.closed = gate.ask(one.facts, clock.wallMs());
    const { user, system } = process.cpuUsage(before);
    // On a busy machine most of the time goes to other processes. A gate that hangs may use none of the processor.
    const leastMs = one.closed?.is_broken === true ? HUNG_MS : 0;
    const usedMs = Math.max(leastMs, (user + system) / 1000);
    const tookMs = Math.min(clock.monotonicMs() - beganMs, usedMs);
    const rest = REST.one + REST.each * this.answers.size;
    one.againMs = beganMs + Math.max(AGAIN_MS, tookMs * rest);
    const { why, until_ms: untilMs, is_broken: isBroken } = one.closed ?? {};
    // Once for each fault: it is asked again and again.
    if (isBroken && why !== undefined)
      this.env.alerts.report(`gate:${why}`, why, Number.POSITIVE_INFINITY);
    if (last?.why !== why || last?.until_ms !== untilMs) this.version++;
  }
}

export const plugins: MakePart = ({ env }) => new PluginsPart(env);
