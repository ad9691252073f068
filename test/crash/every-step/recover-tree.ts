/**
 * Brings a state tree to its end with the production supervisor: it recovers, runs what is left, and drains. Its worker
 * lives in the same process, so that hundreds of cases need no process each; processes of their own are tested beside it.
 */
import { EventEmitter } from "node:events";
import { join } from "node:path";
import type { Settings } from "../../../src/core/settings.ts";
import { identityOf, ownerPrefix, thisProcess } from "../../../src/host/identity.ts";
import type { Storage } from "../../../src/mailbox/storage.ts";
import { openTrays } from "../../../src/mailbox/trays.ts";
import { Pool, type Spawned } from "../../../src/supervisor/pool.ts";
import type { RunSummary } from "../../../src/supervisor/run-shapes.ts";
import { Supervisor } from "../../../src/supervisor/supervisor.ts";
import type { WorkerBoot } from "../../../src/worker/main.ts";
import type { ToSupervisor, ToWorker } from "../../../src/worker/protocol.ts";
import { Worker } from "../../../src/worker/worker.ts";
import type { Place } from "./place.ts";

/** The part of Pool that starts a worker, seen from here. */
interface PoolInside {
  boot: Omit<WorkerBoot, "slots" | "isSpawned">;
  maxSlots: number;
  spawned: Map<number, object>;
  receive(worker: object, message: ToSupervisor): void;
  died(worker: object, how: string): void;
}

let fakePid = 1_000_000_000;

/** A child process as far as Pool uses one. */
class InsideChild extends EventEmitter {
  connected = true;
  readonly worker: Worker;

  constructor(worker: Worker) {
    super();
    this.worker = worker;
  }

  send(message: ToWorker): void {
    setImmediate(() => this.worker.receive(message));
  }

  disconnect(): void {
    this.connected = false;
  }

  kill(): void {
    this.worker.stop(false);
  }

  unref(): void {}
}

function startInside(this: PoolInside): void {
  const { boot, maxSlots } = this;
  const identity = thisProcess();
  const prefix = ownerPrefix(identity);
  fakePid += 1;
  const pid = fakePid;
  let claims = 0;
  let child: InsideChild | undefined;
  const timer = setInterval(() => worker.wake(), 50);
  const { tree, storage } = insideOf(boot);
  const worker = new Worker({
    id: `w-${prefix.slice(13)}`,
    slots: maxSlots,
    tree,
    trays: openTrays(tree.mailbox, {
      durability: boot.settings.durability,
      ...(storage === undefined ? {} : { storage }),
    }),
    settings: boot.settings,
    ownerPrefix: prefix,
    newOwner: () => {
      claims += 1;
      return `${prefix}-z${pid.toString(36)}z${claims.toString(36)}`;
    },
    workerFile: join(tree.workers, "inside"),
    send: (message) => {
      setImmediate(() => this.receive(inside, message));
    },
    onStopped: () => {
      clearInterval(timer);
      setImmediate(() => child?.emit("exit", 0, null));
    },
  });
  child = new InsideChild(worker);
  const inside: Omit<Spawned, "child"> & { child: InsideChild } = {
    id: `w-${prefix.slice(13)}`,
    pid,
    slots: maxSlots,
    slotsPeak: maxSlots,
    isSpawned: true,
    child,
    ownerPrefix: ownerPrefix(identityOf(process.pid)),
    isReady: false,
    startedMs: performance.now(),
    hasSettled: false,
    offered: new Set<string>(),
    extra: 0,
    unsettled: 0,
  };
  this.spawned.set(pid, inside);
  child.once("exit", (code) => this.died(inside, `exit code ${code}`));
  setImmediate(() => this.receive(inside, { type: "hello", id: inside.id }));
}

const places = new Map<string, { place: Place; storage: Storage | undefined }>();

function insideOf(boot: { stateDir: string }): {
  tree: Place["tree"];
  storage: Storage | undefined;
} {
  const run = places.get(boot.stateDir);
  if (run === undefined) throw new Error(`nobody runs ${boot.stateDir}`);
  return { tree: run.place.tree, storage: run.storage };
}

const startOutside = (Pool.prototype as unknown as { start: () => void }).start;
let isInside = false;

export interface RecoverOptions {
  settings: Settings;
  /** True: worker processes of their own, as in production. */
  hasProcesses?: boolean;
  /** A broken variant of the storage. */
  storage?: Storage;
  onNotice?: (notice: string) => void;
  /** Gets the supervisor once it is made. */
  onMade?: (supervisor: Supervisor) => void;
  /** Without an end of its own: until it is stopped. */
  staysUp?: boolean;
}

export async function recoverTree(place: Place, options: RecoverOptions): Promise<RunSummary> {
  const inside = options.hasProcesses !== true;
  if (inside !== isInside) {
    (Pool.prototype as unknown as { start: unknown }).start = inside ? startInside : startOutside;
    isInside = inside;
  }
  places.set(place.tree.dir, { place, storage: options.storage });
  try {
    const supervisor = new Supervisor({
      tree: place.tree,
      settings: options.settings,
      drain: options.staysUp !== true,
      ...(options.onNotice === undefined ? {} : { onNotice: options.onNotice }),
    });
    if (options.storage !== undefined) {
      // The port belongs to the trays; the supervisor makes its own.
      const made = supervisor as unknown as Record<"trays" | "controlTrays", { storage: Storage }>;
      made.trays.storage = options.storage;
      made.controlTrays.storage = options.storage;
    }
    options.onMade?.(supervisor);
    return await supervisor.run();
  } finally {
    places.delete(place.tree.dir);
  }
}
