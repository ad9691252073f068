/** The plan in a supervisor: its nodes become tasks, and their results are written into `roadmap.yaml`. */
import { join } from "node:path";
import { RECOVER_MS } from "../../core/limits.ts";
import { KvStore } from "../../kv/store.ts";
import type { Part, PartPorts } from "../../supervisor/environment/part.ts";
import type { Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { openedAtMs } from "./answers.ts";
import { statusAfterRun } from "./engine/earlier-runs.ts";
import { PlanEngine } from "./engine/engine.ts";
import { Replanning } from "./engine/replanning.ts";
import { PlanStore } from "./engine/store.ts";
import { NodeWithdrawals } from "./engine/withdraw-nodes.ts";
import { RoadmapFile } from "./file/roadmap-file.ts";
import { RoadmapLoader } from "./read/loader.ts";
import { OpenedByReset } from "./resets.ts";

class PlanPart implements Part {
  readonly ports: PartPorts;
  private readonly engine: PlanEngine;
  private readonly replanning: Replanning;
  private readonly withdrawals: NodeWithdrawals;

  constructor(private readonly host: PartHost) {
    const { env, commands } = host;
    const engine = makeEngine(host);
    const replanning = new Replanning(host, engine);
    const withdrawals = new NodeWithdrawals(host, engine);
    this.engine = engine;
    this.replanning = replanning;
    this.withdrawals = withdrawals;
    this.ports = {
      tasks: {
        isOwn: (id) => engine.isNode(id),
        takeBack: (id, isAgain) => withdrawals.takeBack(id, isAgain),
        withdraw: (id) => withdrawals.withdraw(id),
        unbegun: () => engine.unbegun(),
        membership: () => engine.membership(),
      },
      work: {
        canStart: () => engine.canLaunchNow(replanning.isOn()),
        isBusy: () => engine.isApplying(),
        isIdle: () => engine.isIdle(replanning.isOn()),
      },
      dependencies: engine.status,
      startLimit: replanning,
      status: engine.status,
    };
    commands.set("replan", replanning.command);
    env.facts.on("journal:line", (line) => engine.addLine(line));
    env.facts.on("task:accepted", (id) => engine.noteSelected(id));
    env.facts.on("task:begun", (id) => engine.noteBegun(id));
    env.facts.on("task:settled", (id) => engine.noteSettled(id));
    env.facts.on("processing:listed", (files) => engine.survey(files));
  }

  start(isOnePass: boolean): Promise<void> {
    return this.engine.start(isOnePass);
  }

  work({ nowMs }: Tick): void {
    this.withdrawals.work();
    const allowance = this.host.limits.allowance(nowMs);
    this.engine.work(allowance && { ...allowance, onlyPlanners: this.replanning.isOn() });
  }

  /** While there is a plan, a person may save it at any moment: so the file is checked regularly. */
  nextMs(nowMs: number): number {
    const lookMs = this.engine.isInForce ? nowMs + RECOVER_MS : Number.POSITIVE_INFINITY;
    return Math.min(lookMs, this.engine.nextMs());
  }

  finish(limitMs: number): Promise<void> {
    return this.engine.finish(limitMs);
  }

  close(): void {}
}

function makeEngine({ env, journal, control, limits }: PartHost): PlanEngine {
  const { tree, settings, trays, telemetry, alerts, wake } = env;
  const report = (key: string, message: string): void => alerts.report(key, message);
  const kv = new KvStore(tree.kv, trays.clock, trays.durability);
  const opened = new OpenedByReset(tree.dir);
  const openedMs = (id: string): number | undefined => {
    const atMs = Math.max(opened.of(id) ?? 0, openedAtMs(kv, id) ?? 0);
    return atMs === 0 ? undefined : atMs;
  };
  const store = new PlanStore(
    new RoadmapFile(tree.roadmap, { durability: settings.durability }),
    new RoadmapLoader(),
    join(tree.dir, "roadmap.pending.json"),
    () => trays.clock.monotonicMs(),
    {
      onAdopted: () => {
        engine.onAdopted();
        telemetry.note("roadmap_loaded", { nodes: store.doc?.nodes.length ?? 0 });
      },
      onRefused: (problems) => {
        telemetry.note("roadmap_refused", { problems: problems.slice(0, 20) });
        const inForce =
          store.doc === undefined
            ? "there is no plan"
            : "mailchute goes on with the last good plan";
        const message = `${engine.status.problem ?? "the roadmap cannot be used"}; ${inForce}`;
        alerts.notice(message);
        alerts.raise("roadmap_refused", message);
      },
      isLive: (id) => engine.isLive(id),
      openedAgoMs: (id) => {
        const atMs = openedMs(id);
        return atMs === undefined ? undefined : trays.clock.wallMs() - atMs;
      },
      statusAfterRun: (node) => statusAfterRun(env, node),
      onEndRefused: (id, why) => engine.onEndRefused(id, why),
      report,
      wake,
    },
  );
  const engine = new PlanEngine({
    env,
    store,
    kv,
    control,
    openedAtMs: openedMs,
    readJournal: () => journal.readAll(),
    limits,
  });
  return engine;
}

export const plan: MakePart = (host) => new PlanPart(host);
