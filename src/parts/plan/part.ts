/** Puts the plan engine together: the file, what is in force, kv, and how it speaks to the supervisor. */
import { join } from "node:path";
import type { Backlog } from "../../core/backlog.ts";
import { KvStore } from "../../kv/store.ts";
import type { ControlFile } from "../../supervisor/documents/control-file.ts";
import type { Environment } from "../../supervisor/environment/environment.ts";
import type { JournalReader } from "../../supervisor/environment/journal-reader.ts";
import { openedAtMs } from "./answers.ts";
import { PlanEngine } from "./engine/engine.ts";
import { PlanStore } from "./engine/store.ts";
import { RoadmapFile } from "./file/roadmap-file.ts";
import { RoadmapLoader } from "./read/loader.ts";

export function makePlanEngine(
  env: Environment,
  journal: JournalReader,
  backlog: Backlog,
  control: ControlFile,
): PlanEngine {
  const { tree, settings, trays, telemetry, alerts, facts, wake } = env;
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
    readJournal: () => journal.readAll(),
    isDelayed: (id) => backlog.stateOfId(id) === "delayed",
    control: () => control.current,
    alert: (kind, message) => alerts.alert(kind, message),
    report,
    hint: (file) => facts.emit("inbox:written", file),
    wake,
  });
  facts.on("journal:line", (line) => engine.addLine(line));
  facts.on("task:accepted", (id) => engine.noteSelected(id));
  return engine;
}
