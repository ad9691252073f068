/** Makes the streams of a cluster and their consumers, and changes existing ones to the settings. */
import type { ConsumerInfo, JetStreamManager } from "./packages.ts";
import { birthText, type Consumer, consumerConfig, streamConfigs } from "./streams.ts";

const NO_CONSUMER = 10014;
const NO_STREAM = 10059;
const OTHER_CONFIG = 10058;

/** What was done about a stream or a consumer. */
export interface Made {
  name: string;
  /** False for a consumer. */
  isStream: boolean;
  is: "made" | "there" | "changed";
  /** The names of the settings that had other values. */
  changed?: readonly string[];
}

/** True if the error says that the servers have no such stream or consumer. */
export function isMissing(error: unknown): boolean {
  const code = codeOf(error);
  return code === NO_CONSUMER || code === NO_STREAM;
}

/**
 * The time when the stream of a consumer was made, as text, from the description of the consumer. If it changes, the servers have
 * lost everything. The time when the consumer itself was made does not serve: in a cluster a server of version 2.9 gives the time
 * of its own last start, so the answer changes with each leader.
 */
export function birthOf({ config, created }: ConsumerInfo): string {
  // A consumer that an earlier version of mailchute has made has no description.
  return config.description ?? created;
}

/** Makes streams and consumers that the servers lack. Existing ones stay as they are. */
export async function makeMissing(
  jsm: JetStreamManager,
  replicas: number,
  ackWaitMs: number,
  consumers: readonly Consumer[],
): Promise<void> {
  for (const config of streamConfigs(replicas)) {
    try {
      await jsm.streams.add(config);
    } catch (error) {
      if (codeOf(error) !== OTHER_CONFIG) throw error;
    }
  }
  for (const one of consumers) {
    const there = await orMissing(jsm.consumers.info(one.stream, one.name));
    if (there === undefined) await make(jsm, one, ackWaitMs);
  }
}

async function make(jsm: JetStreamManager, consumer: Consumer, ackWaitMs: number): Promise<void> {
  const { stream } = consumer;
  const birth = birthText(stream, (await jsm.streams.info(stream)).created);
  await jsm.consumers.add(stream, consumerConfig(consumer, ackWaitMs, birth));
}

/** @throws an error of the client when the servers refuse a change, such as another kind of storage */
export async function makeAll(
  jsm: JetStreamManager,
  replicas: number,
  ackWaitMs: number,
  consumers: readonly Consumer[],
): Promise<Made[]> {
  const made: Made[] = [];
  for (const config of streamConfigs(replicas)) {
    const { name } = config;
    const there = await orMissing(jsm.streams.info(name));
    const changed = there === undefined ? [] : differences(config, there.config);
    if (there === undefined) await jsm.streams.add(config);
    else if (changed.length > 0) await jsm.streams.update(name, { ...there.config, ...config });
    made.push({ name, isStream: true, ...madeOf(there !== undefined, changed) });
  }
  const wanted = new Map(consumers.map((one) => [`${one.stream} ${one.name}`, one]));
  for (const { name: stream } of streamConfigs(replicas)) {
    const { created } = await jsm.streams.info(stream);
    for await (const { name, config } of jsm.consumers.list(stream)) {
      const one = wanted.get(`${stream} ${name}`);
      wanted.delete(`${stream} ${name}`);
      const filter = one?.filter ?? String(config["filter_subject"]);
      // A consumer lives as long as its stream, so its description stays right.
      const birth = config.description ?? birthText(stream, created);
      const now = consumerConfig({ stream, name, filter }, ackWaitMs, birth);
      const changed = differences(now, config);
      if (changed.length > 0) await jsm.consumers.update(stream, name, now);
      made.push({ name, isStream: false, ...madeOf(true, changed) });
    }
  }
  for (const one of wanted.values()) {
    await make(jsm, one, ackWaitMs);
    made.push({ name: one.name, isStream: false, ...madeOf(false, []) });
  }
  return made;
}

function madeOf(isThere: boolean, changed: readonly string[]): Pick<Made, "is" | "changed"> {
  return changed.length > 0 ? { is: "changed", changed } : { is: isThere ? "there" : "made" };
}

/** The names of settings that have other values at the servers. A setting that they leave out is false or 0 there. */
function differences(wanted: Record<string, unknown>, there: Record<string, unknown>): string[] {
  return Object.keys(wanted).filter((key) => {
    const [now, before] = [wanted[key], there[key]];
    return JSON.stringify(now) !== JSON.stringify(before) && !(before === undefined && !now);
  });
}

async function orMissing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

export function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code;
}
