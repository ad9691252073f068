/** The processor time that a remote task costs in all processes of its tree and of its machine. */
import fs from "node:fs";
import { findVictims } from "../../../crash/chaos/victims.ts";
import type { Pool } from "../../../support/pool.ts";
import { Cluster } from "./cluster.ts";
import type { Found, MeasureOptions } from "./measures.ts";
import { row } from "./table.ts";

const TASKS = 1000;
const SLOTS = 32;

/** Tasks that do nothing, through one machine. The first thousand cost more, because the code is not compiled yet. */
export async function measureProcessor({ rounds, onEnd, tell }: MeasureOptions): Promise<Found> {
  const cluster = await Cluster.start({
    serves: [["one"]],
    slots: SLOTS,
    ackWaitMs: 30_000,
    onEnd,
  });
  const pools = { "the tree": [cluster.origin], "the machine": [...cluster.machines.values()] };
  const lines = [row("processor time of a task (ms)", ...Object.keys(pools), "in all")];
  for (let round = 0; round <= rounds; round++) {
    await cluster.ready(SLOTS);
    const before = Object.values(pools).map(usedMs);
    const settled = cluster.origin.settledCount();
    cluster.drop("one", TASKS);
    await cluster.settled(settled, TASKS);
    const used = Object.values(pools).map((of, at) => (usedMs(of) - (before[at] ?? 0)) / TASKS);
    const all = used.reduce((sum, ms) => sum + ms, 0);
    tell(`thousand ${round + 1}: ${all.toFixed(2)} ms a task`);
    lines.push(row(`thousand ${round + 1}`, ...used, all));
  }
  return { lines, goals: [] };
}

function usedMs(pools: readonly Pool[]): number {
  const pids = new Set(pools.flatMap(({ dir }) => findVictims(dir).map(({ pid }) => pid)));
  return [...pids].reduce((sum, pid) => sum + cpuMs(pid), 0);
}

export function cpuMs(pid: number): number {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
