/** The part in a supervisor that ends at once. */
import { EventEmitter } from "node:events";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { stateTree } from "../../../src/core/state-tree.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { notify } from "../../../src/parts/notify/part.ts";
import type { Part } from "../../../src/supervisor/environment/part.ts";
import { AcceptedTasks } from "../../../src/supervisor/queue/accepted-tasks.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { newReceiver } from "./receiver.ts";

const fail = (...said: unknown[]): never => expect.fail(said.join(": "));

it("tells what failed in a run that ends while the code of the part is being loaded", async () => {
  const receiver = await newReceiver();
  const tree = stateTree(join(tempDir(), "state"));
  fs.mkdirSync(dirname(tree.events), { recursive: true });
  const env = {
    settings: {
      notify: [{ name: "ops", url: receiver.url }],
      durability: "process",
      web: { public_url: "" },
    },
    tree,
    trays: { clock: systemClock },
    alerts: { report: fail, alert: fail },
    facts: new EventEmitter(),
    wake: () => {},
  };
  const queue = { backlog: { size: 0 }, accepted: new AcceptedTasks() };
  const part = notify({ env, queue } as never) as Required<Part>;
  fs.writeFileSync(
    tree.events,
    '{"event":"failed","task_id":"a","error":"exit 3","kind":"exit"}\n',
  );
  part.work({ nowMs: performance.now(), dueMs: 0 });
  await part.finish(5000);
  part.close();
  expect(receiver.received).toHaveLength(1);
  expect(receiver.received[0]?.body).toContain("a: exit 3");
});
