/**
 * A supervisor as the simulation knows it: the production classes that look at the inbox, choose and accept, in the order in which
 * a tick of src/supervisor calls them. Its workers are those that find what is accepted by themselves. What is left out has files
 * or processes of its own: journals, alerts, the plan, the pool.
 */

import { EventEmitter } from "node:events";
import { Backlog } from "../../src/core/backlog.ts";
import type { Clock } from "../../src/core/clock.ts";
import type { Dependency } from "../../src/core/dependencies.ts";
import { systemCode } from "../../src/core/errors.ts";
import { parseName } from "../../src/core/names.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../src/core/settings.ts";
import { finishKeys } from "../../src/mailbox/submit/keys.ts";
import type { Environment } from "../../src/supervisor/environment/environment.ts";
import type { FactMap } from "../../src/supervisor/environment/facts.ts";
import { Parts } from "../../src/supervisor/environment/parts.ts";
import { KeyHolders } from "../../src/supervisor/inbox/key-holders.ts";
import { Rejections } from "../../src/supervisor/inbox/reject.ts";
import { InboxScanner } from "../../src/supervisor/inbox/scanner.ts";
import type { Pool } from "../../src/supervisor/pool/pool.ts";
import type { Workers } from "../../src/supervisor/pool/workers.ts";
import { AcceptedTasks } from "../../src/supervisor/queue/accepted-tasks.ts";
import { Completions } from "../../src/supervisor/queue/completions.ts";
import { Dispatcher } from "../../src/supervisor/queue/dispatcher.ts";
import { ProcessingTray } from "../../src/supervisor/queue/processing-tray.ts";
import { Skipper } from "../../src/supervisor/queue/skipper.ts";
import { FinishedIds, IdProbe } from "../../src/supervisor/queue/taken-ids.ts";
import { type Api, isAnyLive, type Program } from "./world.ts";

const FOREVER = Number.POSITIVE_INFINITY;
/** What stands still for so long is taken for left behind (ms). */
const STILL_MS = 2 * DEFAULT_SETTINGS.settle_ms;

/** What waits at a gate is let go after so long (ms). */
const HELD_MS = 1000;

/** A part that only tells people, or that nobody has: what is asked of it has no answer, and changes nothing. */
function silent<T>(more: object = {}): T {
  const nothing = (): undefined => undefined;
  return new Proxy(more, { get: (own, key) => Reflect.get(own, key) ?? nothing }) as T;
}

/** Others than our own children, who find what is accepted by themselves; there are always enough of them. */
const WORKERS = { freeOffers: () => 0, tasksAhead: () => 0, hasOthers: true, otherSlots: 100 };

/**
 * @param ticks after so many it ends, as by a drain
 * @param suspicions how often it takes what stands still for left behind, although whoever is at it lives
 */
export function supervisor(name: string, ticks: number, suspicions = 0): Program {
  return {
    name,
    kind: "supervisor",
    start: {},
    // All its ticks are one turn: what it keeps in its head is more than a turn could hand on.
    turnsMax: ticks > 0 ? 1 : 0,
    async run(api, memory) {
      const head = new Head(api, suspicions);
      finishKeys(api.trays);
      for (let tick = 0; tick < ticks; tick++) {
        if (tick > 0) await api.rest();
        await head.tick();
      }
      return memory;
    },
  };
}

class Head {
  private readonly api: Api;
  private readonly trays: Api["trays"];
  private readonly backlog: Backlog;
  private readonly finishedIds: FinishedIds;
  private readonly rejections: Rejections;
  private readonly completions: Completions;
  private readonly dispatcher: Dispatcher;
  private readonly keys: KeyHolders;
  private readonly scanner: InboxScanner;
  private readonly processing: ProcessingTray;
  private readonly skipper: Skipper;
  private suspicions: number;
  /** Time that has passed for this process alone (ms). */
  private passedMs = 0;
  private readonly faults: unknown[] = [];

  constructor(api: Api, suspicions: number) {
    this.api = api;
    this.suspicions = suspicions;
    const { clock } = api.trays;
    const own: Clock = { ...clock, monotonicMs: () => clock.monotonicMs() + this.passedMs };
    const trays = { ...api.trays, clock: own };
    this.trays = trays;
    const settings: Settings = {
      ...DEFAULT_SETTINGS,
      retry: { ...DEFAULT_SETTINGS.retry, backoff_max_ms: api.backoffMaxMs },
      agents: [{ name: "any", kind: "module", default: true }],
    };
    const backlog = new Backlog();
    this.backlog = backlog;
    if (api.forgets !== undefined) forget(backlog, api.forgets);
    const alerts = silent<Environment["alerts"]>({
      // What the disk says is part of the game, and has a code in the key; anything else is a bug.
      report: (key: string, message: string) => {
        if (/:undefined(?::|$)/.test(key)) this.faults.push(new Error(message));
      },
    });
    const env = {
      trays,
      settings,
      alerts,
      telemetry: silent<Environment["telemetry"]>(),
      facts: new EventEmitter<FactMap>(),
      wake: () => {},
    };
    const finishedIds = new FinishedIds(trays, (error) =>
      alerts.report(`settled:${systemCode(error)}`, String(error)),
    );
    this.finishedIds = finishedIds;
    this.rejections = new Rejections(env, (id) => finishedIds.has(id));
    const workers = silent<Workers>({
      ...WORKERS,
      offer: (files: string[]) => files,
      ownPrefixes: () => new Set(),
      isOrWasOwn: () => false,
    });
    const pool = silent<Pool>({ workers });
    const accepted = new AcceptedTasks();
    const ids = new IdProbe(trays, accepted, finishedIds);
    const list = (): string[] => trays.storage.list(trays.processing);
    const lists = { accepted, backlog, finishedIds, workers };
    this.processing = new ProcessingTray(env, lists, list);
    const { processing } = this;
    this.dispatcher = new Dispatcher(env, { accepted, backlog, ids, pool, processing });
    const { dispatcher } = this;
    const queue = { accepted, backlog, dispatcher, finishedIds, ids, pool };
    const completions = new Completions(env, queue, new Parts());
    this.completions = completions;
    const isMet = (one: Dependency): boolean => completions.isMet(one);
    this.keys = new KeyHolders(env, () => false);
    const questions = { ids, keys: this.keys, isMet };
    this.scanner = new InboxScanner(env, backlog, this.rejections, questions);
    const telemetry = env.telemetry;
    const skipOwner = (): string => api.newOwner().replace(/-([^-]*)$/, "-K$1");
    const parts = new Parts();
    this.skipper = new Skipper({ ...env, telemetry }, queue, completions, parts, skipOwner);
  }

  /** As `Supervisor.tick` and `Poll.work`, with a whole look at each directory. */
  async tick(): Promise<void> {
    this.wait();
    try {
      this.step();
      // What has a key is judged in the order in which it came, and again when its note is on the disk.
      do {
        await this.keys.idle();
        this.scanner.work(FOREVER);
      } while (this.scanner.isJudgingKeys);
      // What waits for a skipped task is skipped in the next slice.
      for (this.skipper.work(); this.skipper.isBusy; this.skipper.work()) await this.skipper.idle();
      while (this.dispatcher.select());
    } catch (error) {
      // A refusal of the disk ends the tick; the next one begins anew.
      if (typeof (error as { code?: unknown }).code !== "string") throw error;
    }
    await this.rejections.idle();
    if (this.faults.length > 0) throw this.faults[0];
  }

  private step(): void {
    const { trays, scanner, finishedIds, backlog } = this;
    const { clock } = trays;
    scanner.hint(undefined);
    scanner.work(FOREVER);
    const wasWalking = finishedIds.hasWork;
    finishedIds.work(FOREVER);
    if (wasWalking) this.completions.recheckDependencies();
    const files = trays.storage.list(trays.processing);
    this.processing.take(files);
    // Time passes for what waits at a gate, which no part knows: it is let go.
    if (files.some((file) => parseName(file)?.stage === "hold")) this.passedMs += HELD_MS;
    this.completions.recheckDependencies();
    backlog.promoteDue(clock.wallMs(), clock.monotonicMs());
  }

  /** Time passes for what stands still, when nobody is at it any more. */
  private wait(): void {
    if (this.scanner.unsettledCount === 0) return;
    const kinds = ["producer", "operator", "worker", "recoverer"] as const;
    const isUnderWay = this.api.ask((world) => isAnyLive(world, kinds));
    if (isUnderWay && this.suspicions-- <= 0) return;
    this.passedMs += STILL_MS;
  }
}

/** Deliberately broken: the task of this id is taken out of the backlog, and not run. */
function forget(backlog: Backlog, id: string): void {
  const takeBest = backlog.takeBest.bind(backlog);
  backlog.takeBest = (...which) => {
    const task = takeBest(...which);
    return task?.id === id ? takeBest(...which) : task;
  };
}
