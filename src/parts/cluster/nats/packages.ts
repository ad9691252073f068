/**
 * Loads the packages that speak to NATS. The user installs them, not mailchute, and they are loaded only when the settings have a
 * cluster. The types describe only the members that are used here.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { ErrInvalidConfig, messageOf } from "../../../core/errors.ts";

/** The packages to install, with the versions that the tests use. Later versions need a newer Node. */
export const PACKAGES = {
  "@nats-io/transport-node": "3.3.1",
  "@nats-io/jetstream": "3.3.1",
} as const;

export interface Msg {
  readonly data: Uint8Array;
  readonly subject: string;
  readonly reply?: string;
}

export interface Connection {
  publish(subject: string, data?: Uint8Array, options?: { reply: string }): void;
  request(subject: string, data?: Uint8Array | string, options?: { timeout: number }): Promise<Msg>;
  subscribe(subject: string): AsyncIterable<Msg> & { unsubscribe(): void };
  flush(): Promise<void>;
  rtt(): Promise<number>;
  status(): AsyncIterable<{ type: string }>;
  close(): Promise<void>;
  isClosed(): boolean;
}

/** A message of a stream. */
export interface StreamMsg {
  readonly data: Uint8Array;
  readonly subject: string;
  /** The subject on which it is acknowledged and renewed. */
  readonly reply: string;
  readonly info: { readonly streamSequence: number; readonly deliveryCount: number };
  /** Resolves when the server has the acknowledgement. */
  ackAck(options?: { timeout: number }): Promise<boolean>;
  nak(delayMs?: number): void;
}

export interface ConsumerInfo {
  readonly name: string;
  readonly created: string;
  readonly config: Record<string, unknown> & { readonly description?: string };
}

export interface PullConsumer {
  /** @param isKept true for the copy that the client has, without a request */
  info(isKept: boolean): Promise<ConsumerInfo>;
  fetch(options: {
    max_messages: number;
    expires: number;
  }): Promise<AsyncIterable<StreamMsg> & { stop(): void }>;
}

export interface JetStream {
  publish(subject: string, data: Uint8Array, options?: { timeout: number }): Promise<unknown>;
  consumers: { get(stream: string, name: string): Promise<PullConsumer> };
}

export interface StreamInfo {
  readonly created: string;
  readonly config: Record<string, unknown>;
  readonly state: { readonly messages: number; readonly subjects?: Record<string, number> };
}

export interface JetStreamManager {
  streams: {
    add(config: Record<string, unknown>): Promise<StreamInfo>;
    update(stream: string, config: Record<string, unknown>): Promise<StreamInfo>;
    info(stream: string, options?: { subjects_filter: string }): Promise<StreamInfo>;
    /** The message of a subject; null when there is none. */
    getMessage(stream: string, of: { last_by_subj: string }): Promise<{ seq: number } | null>;
    /** @param isErased true to overwrite its bytes, which takes longer */
    deleteMessage(stream: string, seq: number, isErased: boolean): Promise<boolean>;
  };
  consumers: {
    add(stream: string, config: Record<string, unknown>): Promise<unknown>;
    update(stream: string, name: string, config: Record<string, unknown>): Promise<unknown>;
    info(stream: string, name: string): Promise<ConsumerInfo>;
    list(stream: string): AsyncIterable<ConsumerInfo>;
  };
}

export interface Nats {
  connect(options: Record<string, unknown>): Promise<Connection>;
  credsAuthenticator(creds: Uint8Array): unknown;
  nkeyAuthenticator(seed: Uint8Array): unknown;
  nkeys: { createUser(): KeyPair; fromSeed(seed: Uint8Array): KeyPair };
  jetstream(connection: Connection): JetStream;
  jetstreamManager(connection: Connection, options: { checkAPI: false }): Promise<JetStreamManager>;
}

export interface KeyPair {
  getPublicKey(): string;
  getSeed(): Uint8Array;
}

/**
 * Looks for the packages beside mailchute, then from the folder around the state tree.
 * @throws ErrInvalidConfig when they are not installed
 */
export function loadNats(around: string): Nats {
  const [transport, stream] = Object.keys(PACKAGES) as [string, string];
  const faults: string[] = [];
  for (const from of [import.meta.url, join(around, "package.json")]) {
    const load = createRequire(from);
    try {
      return { ...(load(transport) as object), ...(load(stream) as object) } as Nats;
    } catch (error) {
      faults.push(messageOf(error).split("\n", 1)[0] ?? "");
    }
  }
  const wanted = Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`);
  throw new ErrInvalidConfig(`cluster: the packages for NATS cannot be loaded: ${faults.at(-1)}`, {
    path: around,
    phase: "cluster",
    hint: `install them: npm install --save-exact ${wanted.join(" ")}`,
  });
}
