/** Puts the plan engine together: the file, what is in force, kv, and how it speaks to the supervisor. */
import { join } from "node:path";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Telemetry } from "../../journal/telemetry.ts";
import type { Trays } from "../../mailbox/trays.ts";
import { openedAtMs } from "../../roadmap/answers.ts";
import { KvStore } from "../../roadmap/kv.ts";
import { RoadmapLoader } from "../../roadmap/loader.ts";
import { RoadmapFile } from "../../roadmap/roadmap-file.ts";
import type { Alerts } from "../alerts.ts";
import { PlanEngine } from "./plan-engine.ts";
import { PlanStore } from "./plan-store.ts";

export interface PlanSurroundings {
  tree: StateTree;
  settings: Settings;
  trays: Trays;
  telemetry: Telemetry;
  alerts: Alerts;
  readJournal: () => void;
  isDelayed: (id: string) => boolean;
  takeBack: (id: string) => Promise<void>;
  hint: (file: string) => void;
  wake: () => void;
}

export function makePlanEngine(around: PlanSurroundings): PlanEngine {
  const { tree, settings, trays, telemetry, alerts, wake } = around;
  const report = (key: string, message: string): void => alerts.report(key, message);
  const kv = new KvStore(tree.kv, trays.clock, trays.durability);
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
          store.doc === undefined ? "there is no plan" : "the last good plan stays in force";
        alerts.notice(`${engine.problem ?? "the roadmap cannot be used"}; ${inForce}`);
        alerts.raise(
          "roadmap_refused",
          `${engine.problem ?? "the roadmap cannot be used"}; ${inForce}`,
        );
      },
      isLive: (id) => engine.isLive(id),
      openedAgoMs: (id) => {
        const atMs = openedAtMs(kv, id);
        return atMs === undefined ? undefined : trays.clock.wallMs() - atMs;
      },
      onEndRefused: (id, why) => engine.onEndRefused(id, why),
      report,
      wake,
    },
  );
  const engine = new PlanEngine({
    tree,
    settings,
    trays,
    telemetry,
    store,
    kv,
    readJournal: around.readJournal,
    isDelayed: around.isDelayed,
    takeBack: around.takeBack,
    alert: (kind, message) => alerts.alert(kind, message),
    report,
    hint: around.hint,
    wake,
  });
  return engine;
}
