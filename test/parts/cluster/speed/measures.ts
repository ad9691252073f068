/** What a cluster is measured for. Each measurement makes what it needs, and returns what it has found as lines, with its goals. */
import { setTimeout as wait } from "node:timers/promises";
import type { OnEnd } from "../../../support/temp-dir.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { openBullmq } from "./bullmq.ts";
import { Cluster, monotonicMs } from "./cluster.ts";
import { BareJetStream } from "./jetstream.ts";
import { type Goal, median, quantile, row } from "./table.ts";

export interface Found {
  lines: string[];
  goals: Goal[];
}

export interface MeasureOptions {
  rounds: number;
  onEnd: OnEnd;
  tell: (text: string) => void;
}

/** As the messages of a task of 600 bytes without output are (bytes). */
export const SIZES = { job: 830, result: 260 };
const TASKS = { mailchute: 1000, jetstream: 5000, bullmq: 5000 };
const SLOTS = 32;
const ACK_WAIT_MS = 3000;
const STARTS = 40;

/** Tasks a second that do nothing, through one machine and three. */
export async function measureRate({ rounds, onEnd, tell }: MeasureOptions): Promise<Found> {
  const serves = [["one", "three"], ["three"], ["three"]];
  const cluster = await Cluster.start({ serves, slots: SLOTS, ackWaitMs: 30_000, onEnd });
  const bare = await BareJetStream.start(cluster.server.url, SIZES, 30_000, onEnd);
  const bullmq = await openBullmq();
  const ours = async (target: string): Promise<number> => {
    await cluster.ready(SLOTS);
    const before = cluster.origin.settledCount();
    const { fromMs } = cluster.drop(target, TASKS.mailchute);
    const toMs = await cluster.settled(before, TASKS.mailchute);
    return TASKS.mailchute / ((toMs - fromMs) / 1000);
  };
  const theirs = async (machines: number): Promise<number> => {
    await bare.have(machines, SLOTS);
    const rate = await bare.rate(TASKS.jetstream);
    await bare.have(0, 0);
    return rate;
  };
  const contestants: [string, (machines: number) => Promise<number>][] = [
    ["mailchute", (machines) => ours(machines === 1 ? "one" : "three")],
    ["bare JetStream", theirs],
    [
      "BullMQ, Redis always",
      async (machines) =>
        bullmq === undefined
          ? Number.NaN
          : (await bullmq.drain(tempDir(onEnd), TASKS.bullmq, machines)).rate,
    ],
  ];
  const rates = new Map(
    contestants.map(([name]) => [name, { 1: [] as number[], 3: [] as number[] }]),
  );
  for (let round = 0; round < rounds; round++)
    for (const machines of [1, 3] as const)
      for (const [name, run] of contestants) {
        const rate = await run(machines);
        rates.get(name)?.[machines].push(rate);
        tell(`round ${round + 1}, ${machines} machines, ${name}: ${Math.round(rate)} tasks/s`);
      }
  const of = (name: string, machines: 1 | 3): number => median(rates.get(name)?.[machines] ?? []);
  const ratio = (machines: 1 | 3): number =>
    of("mailchute", machines) / of("bare JetStream", machines);
  return {
    lines: [
      row("tasks/s that do nothing", "1 machine", "3 machines"),
      ...contestants.map(([name]) => row(name, of(name, 1), of(name, 3))),
    ],
    goals: ([1, 3] as const).map((machines) => ({
      text: `tasks/s through ${machines} machine${machines === 1 ? "" : "s"} ÷ bare JetStream`,
      value: ratio(machines),
      atLeast: 0.7,
    })),
  };
}

/** From the drop of a task to its start at another machine, when nothing else is to be done. */
export async function measureStart({ onEnd }: MeasureOptions): Promise<Found> {
  const cluster = await Cluster.start({ serves: [["any"]], slots: 4, ackWaitMs: 30_000, onEnd });
  const bare = await BareJetStream.start(cluster.server.url, SIZES, 30_000, onEnd);
  await bare.have(1, 4);
  const bullmq = await openBullmq();
  const ours: number[] = [];
  const theirs: number[] = [];
  // The tree has just started, and looks at its bridge before the first task leaves.
  cluster.drop("any", 1);
  await cluster.settled(0, 1);
  for (let n = 0; n < STARTS; n++) {
    const mark = `start-${n}`;
    const before = cluster.origin.settledCount();
    const { fromMs } = cluster.drop("any", 1, { mark });
    await cluster.settled(before, 1);
    ours.push((cluster.begun(mark)[0]?.atMs ?? Number.NaN) - fromMs);
    theirs.push(await bare.startMs());
    // Not in step with anything that looks at fixed times.
    await wait(150 + Math.random() * 300);
  }
  const pause = () => wait(50 + Math.random() * 100);
  const peer = bullmq === undefined ? [] : await bullmq.pickUp(tempDir(onEnd), STARTS, pause);
  const line = (name: string, values: number[]): string =>
    row(name, quantile(values, 0.5), quantile(values, 0.95));
  return {
    lines: [
      row("from drop to start (ms)", "median", "p95"),
      line("mailchute, at another machine", ours),
      line("bare JetStream", theirs),
      line("BullMQ, Redis always", peer),
    ],
    goals: [],
  };
}

/** From the death of a machine, with its supervisor, worker and bridge, to the next run of the task that it had. */
export async function measureKilled({ rounds, onEnd, tell }: MeasureOptions): Promise<Found> {
  const took: number[] = [];
  const serves = [["any"], ["any"]];
  for (let n = 0; n < rounds; n++) {
    const cluster = await Cluster.start({ serves, slots: 4, ackWaitMs: ACK_WAIT_MS, onEnd });
    const mark = `killed-${n}`;
    cluster.drop("any", 1, { mark, ms: 600_000, once: true });
    const first = await waitFor(() => cluster.begun(mark)[0], {
      what: "its start",
      timeoutMs: 30_000,
    });
    // At any moment between two renewals.
    await wait(1000 + Math.random() * ACK_WAIT_MS);
    const killedMs = monotonicMs();
    await cluster.machines.get(first.machine)?.killAll();
    const second = await waitFor(() => cluster.begun(mark)[1], {
      what: "its second start",
      timeoutMs: 60_000,
    });
    took.push(second.atMs - killedMs);
    tell(`round ${n + 1}: ${Math.round(second.atMs - killedMs)} ms`);
    await cluster.end();
  }
  const longest = quantile(took, 1);
  return {
    lines: [
      row(`machine killed, ack_wait ${ACK_WAIT_MS} ms`, "median", "longest"),
      row("until its task runs again (ms)", median(took), longest),
    ],
    goals: [
      {
        text: "until the task of a killed machine runs again (ms)",
        value: longest,
        atMost: ACK_WAIT_MS + 1000,
      },
    ],
  };
}

/** The slots of each machine, how often each of them is used, and for how long. */
const GROWTH = { slots: 4, times: 4, sleepMs: 4000 };

/** Tasks that sleep, through 1, 2, 4 and 8 machines. */
export async function measureGrowth({ onEnd, tell }: MeasureOptions): Promise<Found> {
  const { slots, times, sleepMs } = GROWTH;
  const sizes = [1, 2, 4, 8];
  const serves = Array.from({ length: 8 }, (_, at) =>
    sizes.filter((size) => at < size).map((size) => `of-${size}`),
  );
  const cluster = await Cluster.start({ serves, slots, ackWaitMs: 30_000, onEnd });
  const lines = [row("tasks that sleep for 4 s", "tasks/s", "of ideal")];
  const goals: Goal[] = [];
  for (const size of sizes) {
    await cluster.ready(slots);
    const tasks = size * slots * times;
    const before = cluster.origin.settledCount();
    const { fromMs } = cluster.drop(`of-${size}`, tasks, { ms: sleepMs });
    const tookMs = (await cluster.settled(before, tasks)) - fromMs;
    const share = (times * sleepMs) / tookMs;
    tell(`${size} machines: ${share.toFixed(2)} of ideal`);
    lines.push(row(`${size} machine${size === 1 ? "" : "s"}`, tasks / (tookMs / 1000), share));
    goals.push({ text: `${size} machines, of ideal`, value: share, atLeast: 0.9 });
  }
  return { lines, goals };
}
