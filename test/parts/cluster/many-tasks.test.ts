/** Questions about thousands of tasks that are on their way read the names of `processing/` a few times, and not once for each. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { Telemetry } from "../../../src/journal/telemetry.ts";
import { nodeStorage } from "../../../src/mailbox/files/node-storage.ts";
import { openTrays, type Trays } from "../../../src/mailbox/files/trays.ts";
import { MachineFiles } from "../../../src/parts/cluster/tree/machine-files.ts";
import { OriginCosts } from "../../../src/parts/cluster/tree/origin-costs.ts";
import { OriginFiles } from "../../../src/parts/cluster/tree/origin-files.ts";
import { tempDir } from "../../support/temp-dir.ts";

const COUNT = 200;

/** A mailbox with its own time, and how often `processing/` was listed. */
function newTrays() {
  const tree = stateTree(tempDir());
  const now = { ms: 1000 };
  let lists = 0;
  const storage = {
    ...nodeStorage,
    list: (dir: string) => {
      if (dir.endsWith("processing")) lists++;
      return nodeStorage.list(dir);
    },
  };
  const clock = { ...systemClock, monotonicMs: () => now.ms };
  const trays = openTrays(tree.mailbox, { durability: "process", storage, clock });
  lists = 0;
  return { tree, trays, now, lists: () => lists };
}

const put = (trays: Trays, file: string): string => {
  const path = join(trays.processing, file);
  fs.writeFileSync(path, "{}");
  return path;
};

test("at the tree that has the tasks", () => {
  const { tree, trays, now, lists } = newTrays();
  const telemetry = new Telemetry(tree, "bridge", 1000, trays.clock);
  const settings = DEFAULT_SETTINGS;
  const costs = new OriginCosts(tree);
  const files = new OriginFiles({ trays, settings, telemetry, tree: "laptop.abcd2345", costs });
  const paths = Array.from({ length: COUNT }, (_, n) =>
    put(trays, `t${n}@s.1~hold-cluster-gpu.json`),
  );
  const all = files.held();
  expect(all).toHaveLength(COUNT);
  expect(all[0]?.id).toMatch(/^laptop\.abcd2345\.t\d+\.s\.1$/);
  const standings = (): string[] => [
    ...new Set(all.map(({ dispatch, target }) => files.standing(dispatch, target))),
  ];
  expect(standings()).toEqual(["waits"]);
  expect(lists()).toBe(1);
  for (const path of paths) fs.renameSync(path, path.replace("~hold-cluster-gpu", "~w-x-1-1-1"));
  expect(standings()).toEqual(["unsure"]);
  expect(lists()).toBe(2);
  now.ms += 1000;
  for (const path of paths) fs.rmSync(path.replace("~hold-cluster-gpu", "~w-x-1-1-1"));
  expect(standings()).toEqual(["over"]);
  // One listing may miss a name.
  expect(lists()).toBe(4);
  // For another target: its agent has another one now.
  put(trays, "t0@s.1~hold-cluster-tpu.json");
  now.ms += 1000;
  const first = all.find(({ dispatch }) => dispatch.task === "t0") ?? expect.fail("it is gone");
  expect(files.standing(first.dispatch, "gpu")).toBe("waits");
  telemetry.close();
});

test("at the machine that runs them; one that was claimed a moment ago is not taken for lost", () => {
  const { tree, trays, lists } = newTrays();
  const files = new MachineFiles({
    stateDir: tree.dir,
    trays,
    control: openTrays(tree.control, { durability: "process" }),
    accept: { agents: [], fields: [] },
  });
  const ids = Array.from({ length: COUNT }, (_, n) => `laptop.abcd2345.t${n}.s.1`);
  for (const id of ids) put(trays, `${id}@z.1~w-x-1-1-1.json`);
  const places = (): string[] => [...new Set(ids.map((id) => files.placeOf(id)))];
  expect(places()).toEqual(["unsettled"]);
  expect(lists()).toBe(1);
  put(trays, "laptop.abcd2345.late.s.1@z.1~w-x-1-1-1.json");
  expect(files.placeOf("laptop.abcd2345.late.s.1")).toBe("unsettled");
  fs.writeFileSync(join(trays.outbox, "laptop.abcd2345.old.s.1_result.json"), "{}");
  fs.writeFileSync(join(trays.inbox, "laptop.abcd2345.new.s.1.json"), "{}");
  const placeOf = (name: string): string => files.placeOf(`laptop.abcd2345.${name}.s.1`);
  expect(["old", "new", "none"].map(placeOf)).toEqual(["settled", "unsettled", "none"]);
});
