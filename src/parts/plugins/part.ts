/**
 * The gates of plugins. Each is asked about the tasks that wait, with what is known of them, and again every second. A gate that
 * throws, answers with something else, or takes too long is closed for these tasks; the others go on.
 */
import { Script } from "node:vm";
import type { ClosedGate, GateFacts } from "../../core/documents.ts";
import { messageOf } from "../../core/errors.ts";
import { closedGate, factsOf } from "../../core/gates.ts";
import { isObject } from "../../core/json-object.ts";
import { BUILT_IN_EXEC } from "../../core/matching.ts";
import type { Lane } from "../../core/waiting-task.ts";
import type { OwnSettings, PluginGate } from "../../plugin.ts";
import type {
  Closed,
  Part,
  PartPorts,
  StartLimit,
  StatusSource,
} from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";

/** How long a gate may think (ms). */
const ANSWER_MS_MAX = 50;
/** How often a gate is asked about the same facts (ms): more rarely when it took long, or there are many facts. */
const AGAIN_MS = 1000;
/** A gate may take a hundredth of the time with the first facts, and a tenth with all of them. */
const REST = { one: 100, each: 10 };
/** Facts are forgotten when no start was asked about them for so long (ms). */
const FORGET_MS = 10 * 60 * 1000;
const DO_MEND = "mend the plugin; its gate is asked again by itself";

interface Gate {
  name: string;
  decide: PluginGate;
  settings: OwnSettings;
}

/** What one gate last said about some facts. Times are monotonic ms. */
interface Answer {
  readonly gate: Gate;
  readonly facts: GateFacts;
  closed: ClosedGate | undefined;
  againMs: number;
  usedMs: number;
}

class PluginsPart implements Part, StartLimit, StatusSource {
  readonly ports: PartPorts;
  version = 0;
  private list: readonly Gate[] = [];
  private readonly answers = new Map<string, Answer[]>();
  private readonly kinds: ReadonlyMap<string, string>;
  /** Closed for all tasks, until the plugins are loaded. */
  private unloaded: ClosedGate | undefined;

  constructor(private readonly env: PartHost["env"]) {
    const { plugins, agents } = env.settings;
    this.kinds = new Map([BUILT_IN_EXEC, ...agents].map(({ name, kind }) => [name, kind]));
    // Without a number of slots the backlog would forget the group, about which a gate may ask.
    const groups = { hasGroups: false, slotsOf: () => Number.MAX_SAFE_INTEGER };
    this.ports = plugins.length === 0 ? {} : { startLimit: this, status: this, groups };
    const all = { agents: [...this.kinds.keys()] };
    if (plugins.length > 0)
      this.unloaded = closedGate("plugins", "the plugins are being loaded", "wait", all);
  }

  /** The supervisor has loaded the plugins before, and does not begin when that fails. */
  async start(): Promise<void> {
    const { settings, tree } = this.env;
    if (settings.plugins.length === 0) return;
    const { loadPlugins } = await import("./load.ts");
    const loaded = await loadPlugins(settings, tree.dir);
    this.list = loaded.flatMap(({ plugin, settings: own }) =>
      Object.entries(plugin.gates ?? {}).map(([name, decide]) => ({
        name: `${plugin.name}.${name}`,
        decide,
        settings: own,
      })),
    );
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
    return Math.min(NEVER, ...closed.map(({ againMs }) => againMs));
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

  /** Each gate once for each reason, with all facts for which it is closed. */
  get gates(): readonly ClosedGate[] {
    const all = new Map<string, ClosedGate>();
    for (const { closed } of [...this.answers.values()].flat()) {
      if (closed === undefined) continue;
      const { gate, why, until_ms: untilMs } = closed;
      const key = JSON.stringify([gate, why, untilMs]);
      const facts = [...(all.get(key)?.facts ?? []), ...(closed.facts ?? [])];
      all.set(key, { ...closed, facts });
    }
    return [...(this.unloaded === undefined ? [] : [this.unloaded]), ...all.values()];
  }

  async finish(): Promise<void> {}

  close(): void {}

  private ask(one: Answer): void {
    const { gate, facts, closed: before } = one;
    const { clock } = this.env.trays;
    const beganMs = clock.monotonicMs();
    const task = { ...facts, kind: this.kinds.get(facts.agent) ?? "" };
    try {
      const said = callWithin(() => gate.decide(task, clock.wallMs(), gate.settings));
      one.closed = readAnswer(gate.name, said, facts);
    } catch (error) {
      const why = `ErrPlugin: the gate ${gate.name} does not answer: ${messageOf(error)}`;
      // Once for each fault: it is asked again and again.
      this.env.alerts.report(`gate:${why}`, why, Number.POSITIVE_INFINITY);
      one.closed = closedGate(gate.name, why, DO_MEND, { facts: [facts] });
    }
    const tookMs = clock.monotonicMs() - beganMs;
    const rest = REST.one + REST.each * this.answers.size;
    one.againMs = beganMs + Math.max(AGAIN_MS, tookMs * rest);
    if (before?.why !== one.closed?.why || before?.until_ms !== one.closed?.until_ms)
      this.version++;
  }
}

/** @throws TypeError for what is no answer */
function readAnswer(gate: string, said: unknown, facts: GateFacts): ClosedGate | undefined {
  if (said === undefined) return undefined;
  // A promise may reject, which would end this process.
  if (said instanceof Promise) said.catch(() => {});
  const { why, do: todo = "wait", until_ms: untilMs = 0 } = isObject(said) ? said : { why: said };
  if (typeof why !== "string" || typeof todo !== "string" || typeof untilMs !== "number")
    throw new TypeError("it must return undefined, a text, or { why, do, until_ms }");
  return closedGate(gate, why, todo, { facts: [facts], until_ms: untilMs });
}

const HELD = Symbol.for("mailchute.gate");
const CALL = new Script("globalThis[Symbol.for('mailchute.gate')]()");

/** Calls a function, and ends it when it takes too long, also in an endless loop: only a script of its own can be ended. */
function callWithin<T>(call: () => T): T {
  const holder = globalThis as { [HELD]?: () => T };
  holder[HELD] = call;
  try {
    return CALL.runInThisContext({ timeout: ANSWER_MS_MAX }) as T;
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
    throw new Error(`it took longer than ${ANSWER_MS_MAX} ms`);
  } finally {
    delete holder[HELD];
  }
}

export const plugins: MakePart = ({ env }) => new PluginsPart(env);
