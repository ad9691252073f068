/** Three servers that are killed and started again, one after another, and keep their disks: what they gave before still counts. */
import { expect, onTestFinished, test } from "vitest";
import { NatsBroker } from "../../../../src/parts/cluster/nats/broker.ts";
import type { Received } from "../../../../src/parts/cluster/nats/intake.ts";
import { loadNats } from "../../../../src/parts/cluster/nats/packages.ts";
import { dispatchId } from "../../../../src/parts/cluster/protocol/dispatch.ts";
import type { Job } from "../../../../src/parts/cluster/protocol/messages.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { Servers } from "../storm/servers.ts";
import { CACHE } from "./found.ts";

/** They choose their leaders anew, which takes them some seconds each time. */
const LIMIT_MS = 180_000;
const CHOICE_MS = 60_000;
const TREE = "origin.tree0000";

test("a job that was taken before is done when its machine says so", {
  timeout: LIMIT_MS,
}, async () => {
  const servers = await Servers.start(tempDir(), 3);
  onTestFinished(() => servers.end());
  const origin = await connect("origin", servers);
  const machine = await connect("m1", servers);
  await answered(() => origin.makeAll());
  const job: Job = {
    dispatch: { tree: TREE, task: "a", submission: "s", attempt: 1 },
    target: "m1",
    task: { prompt: "?" },
  };
  const came: Received[] = [];
  void machine.jobsFor(
    "m1",
    () => 8,
    (one) => came.push(one),
  );
  await answered(() => origin.publishJob(job));
  const { lease } = await waitFor(() => came[0], { what: "the job", timeoutMs: CHOICE_MS });
  const birth = await machine.birth();

  for (const server of servers.all) {
    await server.kill();
    await server.start();
    await answered(() => machine.renew(lease));
  }

  expect(await answered(() => machine.birth())).toBe(birth);
  await answered(() => machine.finishJob(lease));
  expect(await answered(() => origin.hasJob("m1", dispatchId(job.dispatch)))).toBe(false);
});

async function connect(name: string, { all }: Servers): Promise<NatsBroker> {
  const broker = await NatsBroker.connect(loadNats(CACHE), {
    servers: all.map(({ url }) => url),
    name,
    tree: name === "origin" ? TREE : `${name}.tree0000`,
    replicas: all.length,
    consumers: [],
    // No other delivery comes in between.
    ackWaitMs: LIMIT_MS,
    onTrouble: () => {},
  });
  onTestFinished(() => broker.close());
  return broker;
}

/** What it gives as soon as servers answer it. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  const answer = await waitFor(
    async () => {
      try {
        return { is: await ask() };
      } catch {
        return undefined;
      }
    },
    { what: "an answer of the servers", timeoutMs: CHOICE_MS },
  );
  return answer.is;
}
