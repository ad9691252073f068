/** What the protocol relies on, at a real server. The simulation has the same broker in memory. */
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { NatsBroker } from "../../../../src/parts/cluster/nats/broker.ts";
import type { Received } from "../../../../src/parts/cluster/nats/intake.ts";
import { loadNats } from "../../../../src/parts/cluster/nats/packages.ts";
import { dispatchId } from "../../../../src/parts/cluster/protocol/dispatch.ts";
import type { Job, Result } from "../../../../src/parts/cluster/protocol/messages.ts";
import { endOfFile, tempDir } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { Line } from "../storm/line.ts";
import { CACHE } from "./found.ts";
import { Server } from "./server.ts";

const ACK_WAIT_MS = 1500;
const onEnd = endOfFile();
let server: Server;
/** Only a loss of the servers may cause some. */
const troubles: unknown[] = [];

beforeAll(async () => {
  server = await Server.start(tempDir(onEnd));
  onEnd(() => server.kill());
});

/** Each test has targets, machines and a tree of its own: they share one server. */
let count = 0;
const fresh = () => {
  count++;
  return { tree: `o${count}.tree0000`, target: `target-${count}` };
};

async function connect(
  name: string,
  tree = `${name}.nothing0`,
  url = server.url,
): Promise<NatsBroker> {
  const broker = await NatsBroker.connect(loadNats(CACHE), {
    servers: [url],
    name,
    tree,
    replicas: 1,
    consumers: [],
    ackWaitMs: ACK_WAIT_MS,
    onTrouble: (error) => troubles.push(error),
  });
  onTestFinished(() => broker.close());
  return broker;
}

const jobOf = (tree: string, target: string, attempt = 1): Job => ({
  dispatch: { tree, task: "a.b", submission: "s", attempt },
  target,
  task: { prompt: "?" },
});

function collect(begin: (take: (one: Received) => void) => Promise<void>): Received[] {
  const all: Received[] = [];
  void begin((one) => all.push(one));
  return all;
}

const jobsAt = (broker: NatsBroker, target: string): Received[] =>
  collect((take) => broker.jobsFor(target, () => 8, take));

describe("a job", () => {
  test("is kept once however often it is published, goes to one machine, and is gone when it is dropped", async () => {
    const { tree, target } = fresh();
    const origin = await connect(`o${count}`, tree);
    const a = await connect("a");
    const b = await connect("b");
    const job = jobOf(tree, target);
    const id = dispatchId(job.dispatch);
    await Promise.all([origin.publishJob(job), origin.publishJob(job), origin.publishJob(job)]);
    expect(await origin.jobs()).toEqual([{ target, id }]);
    const [atA, atB] = [jobsAt(a, target), jobsAt(b, target)];
    const first = await waitFor(() => atA[0] ?? atB[0], { what: "the job" });
    expect(first.names).toEqual([target, id]);
    // Published again while a machine has it: nothing new comes.
    await origin.publishJob(job);
    expect(await origin.hasJob(target, id)).toBe(true);
    const holder = atA.length > 0 ? a : b;
    await holder.finishJob(first.lease);
    expect(await origin.hasJob(target, id)).toBe(false);
    // Once more: a process that died in between does it again.
    await holder.finishJob(first.lease);
    await origin.dropJob(target, id);
    const next = jobOf(tree, target, 2);
    await origin.publishJob(next);
    await waitFor(() => [...atA, ...atB].length > 1, { what: "the next job" });
    expect([...atA, ...atB].map(({ names }) => names[1])).toEqual([id, dispatchId(next.dispatch)]);
  });

  test("that is dropped takes no other one with it", async () => {
    const { tree, target } = fresh();
    const origin = await connect(`o${count}`, tree);
    const a = await connect("a");
    const jobs = [1, 2, 3, 4, 5].map((attempt) => jobOf(tree, target, attempt));
    let room = 1;
    const atA = collect((take) =>
      a.jobsFor(
        target,
        () => room,
        (one) => {
          room = 0;
          take(one);
        },
      ),
    );
    for (const job of jobs) await origin.publishJob(job);
    await waitFor(() => atA.length > 0, { what: "the first job" });
    // Two that wait, and the one that a machine has; one twice.
    for (const at of [3, 2, 0, 0])
      await origin.dropJob(target, dispatchId(jobs[at]?.dispatch ?? expect.fail("no job")));
    room = 8;
    const more = setInterval(() => {
      room = 8;
    }, 10);
    onTestFinished(() => clearInterval(more));
    await waitFor(() => atA.length >= 3, { what: "the other jobs" });
    const ids = new Set(atA.map(({ names }) => names[1]));
    const [first, second, , , fifth] = jobs.map(({ dispatch }) => dispatchId(dispatch));
    expect(ids).toEqual(new Set([first, second, fifth]));
    expect((await origin.jobs()).map(({ id }) => id)).toEqual([second, fifth]);
  });

  test("goes to another machine when it is not renewed, and not as long as it is", async () => {
    const { tree, target } = fresh();
    const origin = await connect(`o${count}`, tree);
    const a = await connect("a");
    await origin.publishJob(jobOf(tree, target));
    const atA = jobsAt(a, target);
    const first = await waitFor(() => atA[0], { what: "the job" });
    const fromMs = performance.now();
    const b = await connect("b");
    const atB = jobsAt(b, target);
    await waitFor(
      async () => {
        await a.renew(first.lease);
        return performance.now() - fromMs > 2 * ACK_WAIT_MS;
      },
      { what: "twice the time of a delivery" },
    );
    expect([atA.length, atB.length]).toEqual([1, 0]);
    const renewedMs = performance.now();
    await waitFor(() => atA.length + atB.length > 1, { what: "the second delivery" });
    expect(performance.now() - renewedMs).toBeGreaterThan(ACK_WAIT_MS - 200);
    // The first lease still renews it: a bridge that is started anew has no other one.
    await a.renew(first.lease);
  });

  test("is not renewed by a machine that is cut off, which knows it in time to stop its run", async () => {
    const { tree, target } = fresh();
    const origin = await connect(`o${count}`, tree);
    const line = await Line.to(server.port);
    onTestFinished(() => line.close());
    const a = await connect("a", undefined, line.url);
    const atA = jobsAt(a, target);
    await origin.publishJob(jobOf(tree, target));
    const { lease } = await waitFor(() => atA[0], { what: "the job" });
    await a.renew(lease);
    line.cut();
    // Also when the client has given up the connection, and asks anew which servers they are.
    const takenMs: number[] = [];
    await waitFor(
      async () => {
        const fromMs = performance.now();
        await expect(a.renew(lease)).rejects.toThrow();
        takenMs.push(performance.now() - fromMs);
        return !a.isConnected && takenMs.length > 4;
      },
      { what: "a lost connection" },
    );
    expect(Math.max(...takenMs)).toBeLessThan(0.6 * ACK_WAIT_MS);
    line.mend(true);
    await waitFor(
      () =>
        a.renew(lease).then(
          () => true,
          () => false,
        ),
      { what: "a renewal" },
    );
  });

  test("that a machine gives back comes again soon, and one that is done never", async () => {
    const { tree, target } = fresh();
    const origin = await connect(`o${count}`, tree);
    const a = await connect("a");
    const atA = jobsAt(a, target);
    await origin.publishJob(jobOf(tree, target));
    await (await waitFor(() => atA[0], { what: "the job" })).delivery.later();
    const again = await waitFor(() => atA[1], { what: "the job again" });
    await again.delivery.done();
    expect(await origin.jobs()).toEqual([]);
  });
});

test("a result comes to its tree once it is told, until it is done; a receipt comes to its machine", async () => {
  const { tree, target } = fresh();
  const origin = await connect(`o${count}`, tree);
  const other = await connect(`p${count}`, `p${count}.tree0000`);
  const a = await connect(`m${count}`);
  const job = jobOf(tree, target);
  const id = dispatchId(job.dispatch);
  const result: Result = {
    dispatch: job.dispatch,
    target,
    machine: `m${count}`,
    end: { status: "refused", reason: "no" },
  };
  await a.publishResult(result);
  await a.publishResult(result);
  expect(await origin.hasResult(id)).toBe(true);
  expect(await other.hasResult(id)).toBe(false);
  const results = collect((take) => origin.results(take));
  const elsewhere = collect((take) => other.results(take));
  const told = await waitFor(() => results[0], { what: "the result" });
  expect(told.names).toEqual([...tree.split("."), target, result.machine, id]);
  await told.delivery.done();
  expect(await origin.hasResult(id)).toBe(false);
  const overs = collect((take) => a.overs(take));
  await origin.publishOver(result.machine, id);
  const over = await waitFor(() => overs[0], { what: "the receipt" });
  expect(over.names).toEqual([result.machine, id]);
  await over.delivery.done();
  expect([results.length, elsewhere.length, overs.length]).toEqual([1, 0, 1]);
});

test("machines answer when a tree asks, and their heartbeats come to that tree only", async () => {
  const { tree, target } = fresh();
  const origin = await connect(`o${count}`, tree);
  const other = await connect(`p${count}`, `p${count}.tree0000`);
  const a = await connect("a");
  const heard: string[] = [];
  origin.onBeats((bytes) => heard.push(String(bytes)));
  other.onBeats(() => heard.push("elsewhere"));
  a.onAsks((asking) => {
    const { dispatch } = jobOf(asking, target);
    a.beat(asking, { machine: "a", has: [{ dispatch, target }] });
  });
  await waitFor(
    async () => {
      await origin.ask();
      return heard.length > 0;
    },
    { what: "an answer" },
  );
  expect(heard.every((one) => one.includes(tree) && one.includes(target))).toBe(true);
});

test("none of this gave any trouble", () => {
  expect(troubles).toEqual([]);
});

test("servers that have lost their disk get their streams again, and no old lease renews a new job", async () => {
  const { tree, target } = fresh();
  const origin = await connect(`o${count}`, tree);
  const a = await connect("a");
  const atA = jobsAt(a, target);
  await origin.publishJob(jobOf(tree, target));
  const { lease } = await waitFor(() => atA[0], { what: "the job" });
  await server.wipe();
  const again = async (): Promise<boolean> => {
    try {
      await origin.publishJob(jobOf(tree, target, 2));
      return true;
    } catch {
      return false;
    }
  };
  await waitFor(again, { what: "the streams" });
  const known = atA.length;
  await waitFor(() => atA.length > known || atA[1], { what: "the job after the loss" });
  const fromMs = performance.now();
  const seen = atA.length;
  await waitFor(
    async () => {
      await a.renew(lease);
      return atA.length > seen;
    },
    { what: "its second delivery, although the old lease is renewed" },
  );
  expect(performance.now() - fromMs).toBeLessThan(20 * ACK_WAIT_MS);
  await expect(origin.hasJob(target, dispatchId(jobOf(tree, target).dispatch))).resolves.toBe(
    false,
  );
});
