/** `cluster/bridge.json`: the state of the bridge of a state tree. The bridge replaces it; the supervisor and commands read it. */

import { join } from "node:path";
import {
  having,
  ifThere,
  isNumber,
  isText,
  listOf,
  recordOf,
  type Shape,
  shape,
} from "../../../core/shape.ts";
import { Documents } from "../../../host/document-store.ts";
import { loadDocument } from "../../../host/documents.ts";
import { judgeOwner, ownerSequence } from "../../../host/identity.ts";
import { statOf } from "../../../host/regular-file.ts";
import { clusterDir } from "./cluster-dir.ts";

/** If the document was not replaced for this long, the bridge is gone or hangs (ms). */
const STALE_MS = 15_000;

export interface BridgeDocument {
  /** The owner token of the process: see `host/identity`. */
  owner: string;
  pid: number;
  version: string;
  /** The name of this machine, and the name of this tree in the cluster. */
  machine: string;
  tree: string;
  /** ISO 8601. */
  at: string;
  servers: readonly string[];
  is_connected: boolean;
  /** Set while the settings do not fit those of the servers, so that nothing comes and goes. */
  trouble?: string;
  machines: readonly MachineEntry[];
  /** By target: counts of the tasks of this tree that are on their way. */
  targets: Readonly<Record<string, TargetEntry>>;
  /** The first tasks of this tree that a machine has. */
  begun: readonly BegunTask[];
  /** By tree: the number of results that were told more than once without an answer. An older bridge does not write it. */
  unanswered?: Readonly<Record<string, number>>;
}

export interface BegunTask {
  id: string;
  target: string;
  machine: string;
}

export type Told = Omit<BridgeDocument, "owner" | "pid">;

export interface MachineEntry {
  name: string;
  version: string;
  serves: readonly string[];
  /** How many tasks of others it may have (`room`), and how many it has (`open`). */
  room: number;
  open: number;
  is_draining: boolean;
  /** Why it takes no tasks. */
  why?: string;
  /** Trees of other machines that have the same name. */
  twins?: readonly string[];
  /** How many tasks of this tree it has. */
  ours: number;
  load: number;
  cpus: number;
  /** ISO 8601. */
  heard_at: string;
  is_there: boolean;
}

export interface TargetEntry {
  /** The slots of all machines that serve it. */
  room: number;
  /** How many tasks may be on their way at once. */
  may_be_sent: number;
  /** How many tasks wait for their results, and how many of them a machine has. */
  sent: number;
  begun: number;
  /** Set when there are no slots: a reason for each of its first machines. */
  why_none?: string[];
}

export function bridgeDocumentPath(stateDir: string): string {
  return join(clusterDir(stateDir), "bridge.json");
}

/** Writes the documents of one bridge. */
export function bridgeWriter(stateDir: string): (told: Told) => void {
  const owner = ownerSequence()();
  const documents = new Documents(stateDir, "cluster", bridge);
  return (told) => documents.replace("bridge", { owner, pid: process.pid, ...told });
}

/** Undefined when no bridge runs on this tree. @throws a system error when the document cannot be read */
export function readBridge(stateDir: string, wallMs: number): BridgeDocument | undefined {
  return new BridgeReader(stateDir).read(wallMs);
}

/** Reads the document repeatedly. Parses it only when it has changed, because with a thousand machines that takes long. */
export class BridgeReader {
  private readonly path: string;
  private document: BridgeDocument | undefined;
  private readKey = "";

  constructor(stateDir: string) {
    this.path = bridgeDocumentPath(stateDir);
  }

  /** Like `readBridge`. */
  read(wallMs: number): BridgeDocument | undefined {
    const written = statOf(this.path);
    if (written === undefined || Math.abs(wallMs - written.mtimeMs) > STALE_MS) return undefined;
    const key = `${written.ino} ${written.mtimeMs} ${written.size}`;
    if (key !== this.readKey) {
      this.document = loadDocument(this.path, bridge);
      this.readKey = key;
    }
    const { document } = this;
    return document === undefined || judgeOwner(document.owner) === "dead" ? undefined : document;
  }
}

const bridge = shape({
  owner: isText,
  machines: listOf(having({ serves: listOf(isText) })),
  targets: recordOf(having({ may_be_sent: isNumber })),
  servers: listOf(isText),
  begun: listOf(having({ id: isText, target: isText, machine: isText })),
  unanswered: ifThere(recordOf(isNumber)),
}) as Shape<object> as Shape<BridgeDocument>;
