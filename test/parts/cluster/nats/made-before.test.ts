/** Consumers that are at the servers already: `mailchute cluster init` brings them to the settings, and no more. */
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { NatsBroker } from "../../../../src/parts/cluster/nats/broker.ts";
import { makeAll } from "../../../../src/parts/cluster/nats/make.ts";
import { type JetStreamManager, loadNats } from "../../../../src/parts/cluster/nats/packages.ts";
import {
  consumerConfig,
  homeConsumer,
  MS_NS,
  streamConfigs,
  targetConsumer,
} from "../../../../src/parts/cluster/nats/streams.ts";
import { endOfFile, tempDir } from "../../../support/temp-dir.ts";
import { CACHE } from "./found.ts";
import { Server } from "./server.ts";

const ACK_WAIT_MS = 3000;
const CONSUMERS = [targetConsumer("a"), homeConsumer("a")];
const onEnd = endOfFile();
let server: Server;

beforeAll(async () => {
  server = await Server.start(tempDir(onEnd));
  onEnd(() => server.kill());
});

const changesOf = async (jsm: JetStreamManager, ackWaitMs: number) =>
  (await makeAll(jsm, 1, ackWaitMs, CONSUMERS))
    .filter(({ isStream }) => !isStream)
    .map(({ name, is, changed }) => [name, is, ...(changed ?? [])]);

test("another ack_wait is changed, and does not make them others", async () => {
  const jsm = await manager();
  expect(await changesOf(jsm, ACK_WAIT_MS)).toEqual([
    ["target_a", "made"],
    ["home_a", "made"],
  ]);
  const birth = await birthFor(ACK_WAIT_MS);
  expect(await changesOf(jsm, ACK_WAIT_MS)).toEqual([
    ["target_a", "there"],
    ["home_a", "there"],
  ]);
  expect(await changesOf(jsm, 2 * ACK_WAIT_MS)).toEqual([
    ["target_a", "changed", "ack_wait"],
    ["home_a", "changed", "ack_wait"],
  ]);
  const { config } = await jsm.consumers.info("mc_work", "target_a");
  expect(config["ack_wait"]).toBe(2 * ACK_WAIT_MS * MS_NS);
  expect(await birthFor(2 * ACK_WAIT_MS)).toBe(birth);
});

test("one that does not say when its stream was made gets to say it", async () => {
  const jsm = await manager();
  for (const config of streamConfigs(1)) await jsm.streams.add(config);
  const one = targetConsumer("b");
  const { description: _, ...config } = consumerConfig(one, ACK_WAIT_MS, "");
  await jsm.consumers.add(one.stream, config);
  const made = await makeAll(jsm, 1, ACK_WAIT_MS, [one]);
  expect(made).toContainEqual({
    name: "target_b",
    isStream: false,
    is: "changed",
    changed: ["description"],
  });
  const { created } = await jsm.streams.info("mc_work");
  expect((await jsm.consumers.info("mc_work", "target_b")).config.description).toBe(
    `mc_work@${created}`,
  );
});

async function manager(): Promise<JetStreamManager> {
  const nats = loadNats(CACHE);
  const connection = await nats.connect({ servers: [server.url] });
  onTestFinished(() => connection.close());
  return nats.jetstreamManager(connection, { checkAPI: false });
}

async function birthFor(ackWaitMs: number): Promise<string> {
  const broker = await NatsBroker.connect(loadNats(CACHE), {
    servers: [server.url],
    name: "a",
    tree: "a.tree0000",
    replicas: 1,
    consumers: [],
    ackWaitMs,
    onTrouble: () => {},
  });
  onTestFinished(() => broker.close());
  return broker.birth();
}
