/** The document of a worker process in `workers/`. Supervisors need it to adopt the worker, and people read it. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import type { WorkerDocument } from "../core/documents.ts";
import { messageOf } from "../core/errors.ts";
import type { StateTree } from "../core/state-tree.ts";
import { removeDocument } from "../host/documents.ts";
import {
  ownerPrefix,
  runnerSequence,
  savedSelf,
  thisProcess,
  workerIdOf,
} from "../host/identity.ts";
import { replaceDocument } from "../host/replace-document.ts";
import { say } from "../host/say.ts";
import { isOtherTree, treeIdOf } from "../host/tree-id.ts";
import type { WorkerBoot } from "./protocol.ts";
import { digestSettings } from "./settings-digest.ts";

/** The identity of a worker process, and its number of slots. */
export interface WorkerSelf {
  id: string;
  slots: number;
  /** The prefix of the owner in every lease of this process. */
  ownerPrefix: string;
  /** @param isBeside other attempts run in this process */
  newOwner: (isBeside: boolean) => string;
  /** Its document in `workers/`, which the heartbeat touches. */
  workerFile: string;
  /** Whether a supervisor offers tasks to this worker. */
  isSupervised: () => boolean;
}

export class OwnDocument {
  readonly id = workerIdOf(ownerPrefix(thisProcess()));
  readonly path: string;
  private readonly dir: string;
  private readonly document: WorkerDocument;

  constructor(tree: StateTree, { settings, slots, isSpawned }: WorkerBoot) {
    this.path = join(tree.workers, `${this.id}.json`);
    this.dir = tree.dir;
    this.document = {
      id: this.id,
      ...savedSelf(),
      tree: treeIdOf(tree.dir),
      host: os.hostname(),
      slots,
      supervisor_pid: isSpawned ? process.ppid : null,
      settings: digestSettings(settings, tree.mailbox),
      started_at: new Date().toISOString(),
    };
  }

  /** The identity of the worker, for the names of its claims and for its journal lines. */
  selfWith(isSupervised: () => boolean): WorkerSelf {
    const identity = thisProcess();
    return {
      id: this.id,
      slots: this.document.slots,
      ownerPrefix: ownerPrefix(identity),
      newOwner: runnerSequence(identity),
      workerFile: this.path,
      isSupervised,
    };
  }

  /**
   * Writes the document if it is missing, also after another process removed it. A full disk does not stop the worker; supervisors
   * that would adopt it then learn of it later.
   * @returns false when another directory has replaced our tree
   */
  ensure(): boolean {
    // A tree that was moved away must not be created again at its old place.
    if (fs.existsSync(this.path) || treeIdOf(this.dir) === null) return true;
    if (isOtherTree(this.document.tree, this.dir)) return false;
    try {
      replaceDocument(this.path, this.document, { missingMax: 2 });
    } catch (error) {
      say(`cannot write ${this.path} yet: ${messageOf(error)}`);
    }
    return true;
  }

  remove(): void {
    removeDocument(this.path);
  }
}
