/**
 * Brings a state tree to its end with the production supervisor: it recovers, runs what is left, and drains. Its worker
 * lives in the same process, so that hundreds of cases need no process each; processes of their own are tested beside it.
 */

import type { ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { Supervisor } from "../../../src/app/supervisor.ts";
import { WORKER_PARTS } from "../../../src/app/worker-parts.ts";
import type { Settings } from "../../../src/core/settings.ts";
import { ownerPrefix, ownerSequence, thisProcess, workerIdOf } from "../../../src/host/identity.ts";
import type { Storage } from "../../../src/mailbox/files/storage.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import type { RunSummary } from "../../../src/supervisor/environment/options.ts";
import { ChildWorker } from "../../../src/supervisor/pool/child-worker.ts";
import type { ToSupervisor, ToWorker, WorkerBoot } from "../../../src/worker/protocol.ts";
import { Worker } from "../../../src/worker/worker.ts";
import type { Place } from "./place.ts";

/** A child process as far as a pool uses one, with its worker in this process. */
class InsideChild extends EventEmitter {
  readonly pid = process.pid;
  readonly stateDir: string;
  connected = true;
  private readonly worker: Worker;
  private tellEnded = (): void => {};
  private readonly ended = new Promise<void>((resolve) => {
    this.tellEnded = resolve;
  });

  constructor(orders: WorkerBoot) {
    super();
    this.stateDir = orders.stateDir;
    const prefix = ownerPrefix(thisProcess());
    const { tree, storage } = insideOf(orders);
    const { durability } = orders.settings;
    workerCount += 1;
    const mark = `z${workerCount.toString(36)}z`;
    const trays = openTrays(tree.mailbox, {
      durability,
      ...(storage === undefined ? {} : { storage }),
    });
    this.worker = new Worker({
      self: {
        id: workerIdOf(prefix),
        slots: orders.slots,
        ownerPrefix: prefix,
        newOwner: ownerSequence(thisProcess(), mark),
        workerFile: join(tree.workers, "inside"),
        isSupervised: () => true,
      },
      place: { tree, trays, settings: orders.settings },
      parts: WORKER_PARTS,
      send: (message) => this.tell(message),
      onStopped: () => {
        clearInterval(timer);
        living.delete(this);
        this.tellEnded();
        setImmediate(() => this.emit("exit", 0, null));
      },
    });
    const timer = setInterval(() => this.worker.wake(), 50);
    living.add(this);
    this.tell({ type: "hello", id: workerIdOf(prefix) });
  }

  send(message: ToWorker): void {
    setImmediate(() => this.worker.receive(message));
  }

  /** A worker process that has lost its supervisor goes on for a while, and then ends: this one at once, or its timer would stay. */
  disconnect(): void {
    this.connected = false;
    this.worker.stop(false);
  }

  kill(): void {
    this.worker.stop(false);
  }

  unref(): void {}

  /** A pool knows its children by pid, and all of these have ours: it forgets one when it starts another beside it. */
  end(): Promise<void> {
    this.worker.stop(false);
    return this.ended;
  }

  private tell(message: ToSupervisor): void {
    setImmediate(() => this.emit("message", message));
  }
}

const living = new Set<InsideChild>();
/** No two workers of this process make the same owner. */
let workerCount = 0;
const startInside = (orders: WorkerBoot): ChildProcess =>
  new InsideChild(orders) as unknown as ChildProcess;

const places = new Map<string, { place: Place; storage: Storage | undefined }>();

function insideOf(boot: { stateDir: string }): {
  tree: Place["tree"];
  storage: Storage | undefined;
} {
  const run = places.get(boot.stateDir);
  if (run === undefined) throw new Error(`nobody runs ${boot.stateDir}`);
  return { tree: run.place.tree, storage: run.storage };
}

const startOutside = ChildWorker.start;

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
  ChildWorker.start = options.hasProcesses === true ? startOutside : startInside;
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
      const { env } = supervisor as unknown as {
        env: Record<"trays" | "controlTrays", { storage: Storage }>;
      };
      env.trays.storage = options.storage;
      env.controlTrays.storage = options.storage;
    }
    options.onMade?.(supervisor);
    return await supervisor.run();
  } finally {
    // Other cases run beside this one.
    const own = [...living].filter(({ stateDir }) => stateDir === place.tree.dir);
    await Promise.all(own.map((child) => child.end()));
    places.delete(place.tree.dir);
  }
}
