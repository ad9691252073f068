/** `cluster init`: makes the streams of a cluster, and the users of its servers with the rights of the machines. */
import { join, relative, resolve } from "node:path";
import type { Context } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { ErrInvalidConfig, ErrIo, messageOf, systemCode } from "../../../core/errors.ts";
import { makeDirs } from "../../../host/make-dirs.ts";
import { NAMED, readRegular, writeNew } from "../../../host/regular-file.ts";
import { replaceText } from "../../../host/replace-document.ts";
import { safe } from "../../../text/render.ts";
import { type MachineRole, SERVER_TEXT, usersText } from "../nats/layout.ts";
import type { Made } from "../nats/make.ts";
import type { Nats } from "../nats/packages.ts";
import { clusterDir } from "../tree/cluster-dir.ts";
import { treeName } from "../tree/tree-name.ts";
import { type ClusterPlace, connectTo, placeOf, rolesOf } from "./place.ts";

const WORDS = { made: "made", there: "already there", changed: "changed" } as const;
const NAME_CHARS = 11;

/** @param out the folder for keys and server configuration; default: `cluster/keys` in the state tree */
export async function init(ctx: Context, out: string | undefined): Promise<number> {
  const place = await placeOf(ctx);
  const machines = machinesOf(place);
  const dir = out === undefined ? join(clusterDir(place.tree.dir), "keys") : resolve(out);
  const files = machines.length === 0 ? [] : writeUsers(place, machines, dir);
  if (!ctx.json) for (const file of files) ctx.out.line(`wrote ${safe(shown(file))}`);
  if (!ctx.json && files.length > 0) {
    ctx.out.line(`rights for ${machines.length} machines: give each its own .nk file, and name`);
    ctx.out.line("it there as credentials in cluster:; servers read nats.conf and users.conf");
  }
  const made = await make(place, files.length > 0 ? dir : undefined);
  if (ctx.json) ctx.out.json({ files, made: made.map(entryOf) });
  else for (const line of linesOf(made)) ctx.out.line(safe(line));
  return EXIT.ok;
}

/** @throws ErrInvalidConfig when a machine serves the name of another one, or sends to a target that no machine serves */
function machinesOf({ settings: { cluster }, name, tree }: ClusterPlace): MachineRole[] {
  const machines = rolesOf(cluster);
  if (machines.length === 0) return [];
  const fail = (message: string, hint: string): never => {
    const place = { path: tree.config, phase: "cluster", hint };
    throw new ErrInvalidConfig(`cluster: machines: ${message}`, place);
  };
  const names = new Set(machines.map((one) => one.name));
  const targets = new Set([...names, ...machines.flatMap(({ serves }) => serves)]);
  for (const { name: own, serves, sends } of machines) {
    const other = serves.find((target) => target !== own && names.has(target));
    if (other !== undefined)
      fail(`${own} serves ${other}, which is another machine`, "give the target another name");
    const nowhere = sends.find((target) => !targets.has(target));
    if (nowhere !== undefined)
      fail(`${own} sends to ${nowhere}`, `no machine there has ${nowhere} in serves`);
  }
  // This machine makes the streams, so it needs a user with all rights.
  if (!names.has(name)) machines.push({ name, serves: [], sends: [] });
  return machines;
}

/** Keeps existing keys. @returns the files that it wrote */
function writeUsers(
  { nats, name: keeper }: ClusterPlace,
  machines: readonly MachineRole[],
  dir: string,
): string[] {
  makeDirs(dir, 2);
  const files: string[] = [];
  const keyOf = (name: string): string => {
    const path = join(dir, `${name}.nk`);
    const { key, isNew } = loadKey(nats, path);
    if (isNew) files.push(path);
    return key;
  };
  const users = join(dir, "users.conf");
  replaceText(users, usersText(machines, keeper, keyOf));
  const server = join(dir, "nats.conf");
  files.push(users);
  if (writeMissing(server, SERVER_TEXT)) files.push(server);
  return files;
}

function loadKey(nats: Nats, path: string): { key: string; isNew: boolean } {
  const made = nats.nkeys.createUser();
  const seed = Buffer.from(made.getSeed()).toString("latin1");
  if (writeMissing(path, `${seed}\n`)) return { key: made.getPublicKey(), isNew: true };
  const kept = readRegular(path, NAMED).toString("latin1").trim();
  try {
    const key = nats.nkeys.fromSeed(Buffer.from(kept, "latin1")).getPublicKey();
    if (key.startsWith("U")) return { key, isNew: false };
  } catch {
    // The error below does not show the content of the file.
  }
  throw new ErrIo("this file holds no seed of a user", {
    path,
    phase: "cluster",
    hint: "remove it: init makes a new one, which its machine then needs",
  });
}

/** @returns false when the file exists; then it stays as it is */
function writeMissing(path: string, text: string): boolean {
  try {
    writeNew(path, text, { isDurable: true });
    return true;
  } catch (error) {
    if (systemCode(error) === "EEXIST") return false;
    throw error;
  }
}

/** @param dir the folder of the users; undefined when there are none. @throws ErrIo */
async function make(place: ClusterPlace, dir: string | undefined): Promise<Made[]> {
  const { cluster } = place.settings;
  const fail = (error: unknown): never => {
    const key = dir === undefined ? "" : keyPath(place, dir);
    throw new ErrIo(`the streams could not be made: ${messageOf(error)}`, {
      path: cluster.servers.join(", "),
      phase: "cluster",
      hint:
        dir === undefined
          ? "start the servers (nats-server -js), then run it again"
          : `start the servers with ${shown(join(dir, "nats.conf"))}, set credentials: ${key} in cluster: here, then run it again`,
    });
  };
  const tree = treeName(place.tree.dir, place.name);
  const broker = await connectTo(place, tree, () => {}).catch(fail);
  try {
    return await broker.makeAll().catch(fail);
  } finally {
    await broker.close();
  }
}

/** The path of the own key, in the form in which the settings of this tree may name it. */
function keyPath({ tree, name }: ClusterPlace, dir: string): string {
  const path = join(dir, `${name}.nk`);
  const near = relative(tree.dir, path);
  return near.startsWith("..") ? path : near;
}

function entryOf({ name, is, changed }: Made): Omit<Made, "isStream"> {
  return { name, is, ...(changed === undefined ? {} : { changed }) };
}

/** A line for each stream, and one line for all consumers, because each machine has three. */
function linesOf(made: readonly Made[]): string[] {
  const streams = made.filter(({ isStream }) => isStream);
  const consumers = made.filter(({ isStream }) => !isStream);
  const counts = (Object.keys(WORDS) as Made["is"][]).flatMap((is) => {
    const count = consumers.filter((one) => one.is === is).length;
    return count === 0 ? [] : [`${count} ${WORDS[is]}`];
  });
  return [...streams.map(lineOf), `${"consumers".padEnd(NAME_CHARS)}${counts.join(", ")}`];
}

function lineOf({ name, is, changed }: Made): string {
  const what = changed === undefined ? "" : `: ${changed.join(", ")}`;
  return `${name.padEnd(NAME_CHARS)}${WORDS[is]}${what}`;
}

function shown(path: string): string {
  const near = relative(process.cwd(), path);
  return near.startsWith("..") ? path : near;
}
