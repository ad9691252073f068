/** What follows from a node's end, on a disk that refuses it: it is tried again, and not in every tick. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { stateTree } from "../../../src/core/state-tree.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { ActiveNodes } from "../../../src/parts/plan/engine/active-nodes.ts";
import type { EngineParts } from "../../../src/parts/plan/engine/engine-parts.ts";
import { NodeFinisher } from "../../../src/parts/plan/engine/finish-nodes.ts";
import type { NodeLauncher } from "../../../src/parts/plan/engine/launch-nodes.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

it("tries again after a pause what cannot be written", async () => {
  const tree = stateTree(tempDir());
  let nowMs = 1000;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  fs.mkdirSync(tree.mailbox);
  const trays = openTrays(tree.mailbox, { durability: "process", clock });
  const record = { task_id: "n", status: "completed", lease: "12345678.1.x", task: {} };
  fs.writeFileSync(join(trays.outbox, "n_result.json"), JSON.stringify(record));
  const active = new ActiveNodes();
  active.launch("n");
  const { task_id, lease } = record;
  active.events.addLine(JSON.stringify({ event: "completed", task_id, lease, t: 1, seq: 1 }));
  let tries = 0;
  let wakes = 0;
  const wake = (): void => void wakes++;
  const nothing = (): void => {};
  const parts = {
    env: { tree, trays, wake, alerts: { report: nothing } },
    active,
    readJournal: nothing,
  } as unknown as EngineParts;
  const refuse = (): void => {
    tries++;
    throw Object.assign(new Error("no room"), { code: "ENOSPC" });
  };
  const finisher = new NodeFinisher(parts, { noteForeign: refuse } as unknown as NodeLauncher);

  finisher.noteSettled("n");
  expect(finisher.nextMs).toBe(nowMs);
  finisher.work();
  expect(finisher.nextMs, "while it is tried").toBe(Number.POSITIVE_INFINITY);
  await waitFor(() => wakes === 1, { what: "the first try" });
  expect(finisher.nextMs).toBeGreaterThan(nowMs + 100);
  finisher.work();
  expect(finisher.nextMs, "not tried again").toBeGreaterThan(nowMs + 100);
  nowMs = finisher.nextMs;
  finisher.work();
  await waitFor(() => wakes === 2, { what: "the second try" });
  expect(tries).toBe(2);
  expect(finisher.has("n")).toBe(true);
});
