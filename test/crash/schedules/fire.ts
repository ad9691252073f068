/** fire.js STATE NOW_MS: looks after the schedules of a tree once, as a supervisor does at this time. */
import { EventEmitter } from "node:events";
import { stateTree } from "../../../src/core/state-tree.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { Scheduler } from "../../../src/parts/schedules/scheduler.ts";

const [state = "", nowMs = ""] = process.argv.slice(2);
const tree = stateTree(state);
const clock = { ...systemClock, wallMs: () => Number(nowMs) };
const options = { durability: "process", clock } as const;
const faults: string[] = [];
const scheduler = new Scheduler(
  {
    settings: { schedules: {} },
    tree,
    trays: openTrays(tree.mailbox, options),
    controlTrays: openTrays(tree.control, options),
    telemetry: { note: () => {} },
    alerts: { report: (_: string, text: string) => faults.push(text) },
    facts: new EventEmitter(),
  } as never,
  () => Promise.resolve(true),
);
await scheduler.look();
if (faults.length > 0) {
  process.stderr.write(`${faults.join("\n")}\n`);
  process.exitCode = 1;
}
