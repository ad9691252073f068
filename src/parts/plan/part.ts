/** The plan in a supervisor: its nodes become tasks, and their results are written into `roadmap.yaml`. */
import { join } from "node:path";
import { RECOVER_MS } from "../../core/limits.ts";
import { KvStore } from "../../kv/store.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { openedAtMs, Questions } from "./answers.ts";
import { ActiveNodes } from "./engine/active-nodes.ts";
import { statusAfterRun } from "./engine/earlier-runs.ts";
import { PlanEngine } from "./engine/engine.ts";
import type { EngineParts } from "./engine/engine-parts.ts";
import { Replanning } from "./engine/replanning.ts";
import { PlanStore } from "./engine/store.ts";
import { NodeWithdrawals } from "./engine/withdraw-nodes.ts";
import { RoadmapFile } from "./file/roadmap-file.ts";
import { RoadmapLoader } from "./read/loader.ts";
import { OpenedByReset } from "./resets.ts";

export const plan: MakePart = (host) => {
  const { p, engine } = makeParts(host);
  const { store, active } = p;
  const { launcher, reconciler, status } = engine;
  const replanning = new Replanning(p, host.control, engine);
  const withdrawals = new NodeWithdrawals(p, host.queue, launcher);
  host.commands.set("replan", replanning.command);
  const { facts } = p.env;
  facts.on("journal:line", (line) => active.events.addLine(line));
  facts.on("task:accepted", (id) => engine.noteSelected(id));
  // From then on a pause stops the next run of the task.
  facts.on("task:begun", (id) => active.noteBegun(id));
  facts.on("task:settled", (id) => engine.noteSettled(id));
  facts.on("processing:listed", (files) => reconciler.compare(files));
  return {
    ports: {
      tasks: {
        isOwn: (id) => withdrawals.isOwn(id),
        takeBack: (id, isAgain) => withdrawals.takeBack(id, isAgain),
        withdraw: (id) => withdrawals.withdraw(id),
        unbegun: () => active.listUnbegun(),
        membership: () => engine.membership(),
      },
      work: {
        canStart: () => launcher.canLaunch(replanning.isOn(), true),
        isBusy: () => engine.isApplying(),
        isIdle: () => engine.isIdle(replanning.isOn()),
      },
      dependencies: status,
      startLimit: replanning,
      status,
    },
    start: (isOnePass) => engine.start(isOnePass),
    work({ nowMs }) {
      withdrawals.work(reconciler.takeUnwanted());
      const allowance = host.limits.allowance(nowMs);
      engine.work(allowance && { ...allowance, onlyPlanners: replanning.isOn() });
    },
    /** While there is a plan, a person may save it at any moment: so the file is checked regularly. */
    nextMs(nowMs) {
      const lookMs = store.doc === undefined ? Number.POSITIVE_INFINITY : nowMs + RECOVER_MS;
      return Math.min(lookMs, engine.nextMs());
    },
    finish: (limitMs) => engine.finish(limitMs),
    close() {},
  };
};

function makeParts({ env, journal, control, limits }: PartHost): {
  p: EngineParts;
  engine: PlanEngine;
} {
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
      isLive: (id) => p.active.has(id),
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
  const p: EngineParts = {
    env,
    store,
    kv,
    active: new ActiveNodes(),
    questions: new Questions(kv, trays.clock),
    control,
    openedAtMs: openedMs,
    readJournal: () => journal.readAll(),
    limits,
  };
  const engine = new PlanEngine(p);
  return { p, engine };
}
