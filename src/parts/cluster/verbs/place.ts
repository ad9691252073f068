/** What the commands of the cluster need: the tree, its settings, and the packages that reach the servers. */
import os from "node:os";
import { dirname, resolve } from "node:path";
import type { Context } from "../../../cli/shell/command-spec.ts";
import { existingTree, openSettings } from "../../../cli/shell/options.ts";
import { compact } from "../../../core/compact.ts";
import { ErrInvalidConfig } from "../../../core/errors.ts";
import type { ClusterSettings, Settings } from "../../../core/settings.ts";
import { type StateTree, stateTree } from "../../../core/state-tree.ts";
import { NAMED, readRegular } from "../../../host/regular-file.ts";
import { NatsBroker } from "../nats/broker.ts";
import { consumersOf, type MachineRole } from "../nats/layout.ts";
import { loadNats, type Nats } from "../nats/packages.ts";
import { isTarget } from "../protocol/dispatch.ts";

export interface ClusterPlace {
  tree: StateTree;
  settings: Settings;
  /** The name of this machine. */
  name: string;
  nats: Nats;
}

/** @throws ErrInvalidConfig when the settings name no servers, or the packages are missing */
export async function placeOf(ctx: Context): Promise<ClusterPlace> {
  existingTree(ctx);
  const { settings, mailboxDir } = await openSettings(ctx);
  const { cluster } = settings;
  const path = stateTree(ctx.stateDir).config;
  if (cluster.servers.length === 0)
    throw new ErrInvalidConfig("cluster: no servers are named", {
      path,
      phase: "cluster",
      hint: "name them in config.yaml: cluster: {servers: [nats://HOST:4222]}",
    });
  const name = nameOf(cluster, path);
  const nats = loadNats(dirname(resolve(ctx.stateDir)));
  return { tree: stateTree(ctx.stateDir, mailboxDir), settings, name, nats };
}

/** @param tree the name of the tree in the cluster. @throws an error of the client when no server answers */
export async function connectTo(
  { tree: { dir }, settings: { cluster }, name, nats }: ClusterPlace,
  tree: string,
  onTrouble: (error: unknown) => void,
): Promise<NatsBroker> {
  const pathOf = (path: string): string | undefined =>
    path === "" ? undefined : resolve(dir, path);
  const credentials = pathOf(cluster.credentials);
  const { ca, cert, key } = cluster.tls;
  const tls = compact({ caFile: pathOf(ca), certFile: pathOf(cert), keyFile: pathOf(key) });
  return NatsBroker.connect(nats, {
    servers: cluster.servers,
    name,
    tree,
    replicas: cluster.replicas,
    ackWaitMs: cluster.ack_wait_ms,
    consumers: consumersOf(rolesOf(cluster)),
    ...(credentials === undefined ? {} : { credentials: readRegular(credentials, NAMED) }),
    ...(Object.keys(tls).length === 0 ? {} : { tls }),
    onTrouble,
  });
}

/** The machines in the settings; empty when each machine may do everything at the servers. */
export function rolesOf({ machines }: ClusterSettings): MachineRole[] {
  return Object.entries(machines).map(([name, { serves = [], sends = [] }]) => ({
    name,
    serves,
    sends,
  }));
}

/** @param path the file of the settings. @throws ErrInvalidConfig */
export function nameOf({ name }: ClusterSettings, path: string): string {
  const own = name === "" ? (os.hostname().toLowerCase().split(".")[0] ?? "") : name;
  if (isTarget(own)) return own;
  throw new ErrInvalidConfig(`cluster: ${JSON.stringify(own)} cannot be the name of a machine`, {
    path,
    phase: "cluster",
    hint: "set cluster: name: to up to 32 of a-z, 0-9 and -",
  });
}
