/** Connects to the servers as the settings say, and explains errors in our own words. */
import type { Connection, Nats } from "./packages.ts";
import { type Consumer, inboxOf } from "./streams.ts";
import { AGAIN_MS, CONNECT_MS } from "./times.ts";

export interface BrokerOptions {
  servers: readonly string[];
  /** The name of this machine. */
  name: string;
  tree: string;
  replicas: number;
  ackWaitMs: number;
  /** Consumers of other machines, which are made together with those of this machine. */
  consumers: readonly Consumer[];
  /** The contents of a credentials file, or the seed of an nkey. */
  credentials?: Uint8Array;
  tls?: Record<string, unknown>;
  /** Called for each failed request for messages. The request is repeated. */
  onTrouble: (error: unknown) => void;
}

/** @throws an error when no server answers */
export async function connect(nats: Nats, o: BrokerOptions): Promise<Connection> {
  const options = {
    servers: [...o.servers],
    name: `mailchute ${o.name}`,
    timeout: CONNECT_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: AGAIN_MS,
    pingInterval: Math.max(1000, Math.floor(o.ackWaitMs / 6)),
    // Only this machine may read the answers of servers to it: see `permissionsOf`.
    inboxPrefix: inboxOf(o.name),
    // A stack trace for each request would cost more than the request itself.
    noAsyncTraces: true,
    ...(o.credentials === undefined ? {} : { authenticator: authenticator(nats, o.credentials) }),
    ...(o.tls === undefined ? {} : { tls: o.tls }),
  };
  try {
    return await nats.connect(options);
  } catch (error) {
    throw explainSilence(error, o);
  }
}

function authenticator(nats: Nats, credentials: Uint8Array): unknown {
  const seed = /^\s*(SU[A-Z2-7]+)\s*$/.exec(Buffer.from(credentials).toString("latin1"))?.[1];
  if (seed === undefined) return nats.credsAuthenticator(credentials);
  return nats.nkeyAuthenticator(Buffer.from(seed, "latin1"));
}

/** A server that refuses the certificate of a client ends the connection silently, and the client waits for an answer. */
function explainSilence(error: unknown, { tls }: Pick<BrokerOptions, "tls">): unknown {
  if (!(error instanceof Error) || error.name !== "TimeoutError") return error;
  const silence = `no server has answered within ${CONNECT_MS / 1000} s`;
  const why = ": one that asks for certificates says in its log alone that it has refused one";
  const check = "; check cert and key of cluster: tls";
  return new Error(tls === undefined ? silence : `${silence}${why}${check}`, { cause: error });
}

/** Explains an error about missing rights. @param what what this machine may not do: see `permissionsOf` */
export function explain(error: unknown, what: string): unknown {
  if (!(error instanceof Error) || !/permissions violation/i.test(error.message)) return error;
  return new Error(
    `this machine may not ${what} (${error.message}): mailchute cluster init, in the tree that lists the machines, allows and makes what each needs`,
    { cause: error },
  );
}
