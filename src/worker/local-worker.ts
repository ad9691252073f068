/**
 * A worker in the process of its supervisor, for pools whose handlers are functions of the program that runs them. To the
 * supervisor it looks like a process: messages arrive in a later turn, and the event `exit` reports its end.
 */
import { EventEmitter } from "node:events";
import { type StateTree, stateTree } from "../core/state-tree.ts";
import { openTrays, type Trays } from "../mailbox/files/trays.ts";
import type { ToSupervisor, ToWorker, WorkerBoot, WorkerProcess } from "./protocol.ts";
import type { WorkerParts } from "./runner.ts";
import { Worker } from "./worker.ts";
import { OwnDocument } from "./worker-document.ts";

/** The time between two looks for drops of ended runs (ms). */
const DROPS_MS = 5000;

export class LocalWorker extends EventEmitter implements WorkerProcess {
  readonly pid = process.pid;
  connected = true;
  private readonly tree: StateTree;
  private readonly trays: Trays;
  private readonly document: OwnDocument;
  private readonly worker: Worker;
  private sweep: NodeJS.Timeout | undefined;
  private isEnded = false;
  private dropsAtMs = 0;

  /** @throws ErrMailboxDir when the trays cannot be used */
  constructor(
    private readonly boot: WorkerBoot,
    private readonly parts: WorkerParts,
  ) {
    super();
    const { durability, uids } = boot.settings;
    const tree = stateTree(boot.stateDir, boot.mailboxDir);
    const trays = openTrays(tree.mailbox, { durability, uids });
    const document = new OwnDocument(tree, boot);
    this.tree = tree;
    this.trays = trays;
    this.document = document;
    this.worker = new Worker({
      self: document.selfWith(() => this.connected),
      // The program around it may block this thread as long as it likes: that is no reason to end it.
      place: { tree, trays, settings: { ...boot.settings, stall_ms: 0 } },
      parts,
      send: (message) => this.tell(message),
      onStopped: () => this.end(0, null),
    });
    setImmediate(() => this.start());
  }

  send(message: ToWorker): void {
    setImmediate(() => this.worker.receive(message));
  }

  /** A process cannot kill a part of itself: a handler that ignores its signal goes on, and its lease stays until the process ends. */
  kill(): void {
    this.end(null, "SIGKILL");
  }

  /** The supervisor lets this worker go: it ends when its running attempts have ended. */
  disconnect(): void {
    this.connected = false;
    this.worker.stop(true);
  }

  unref(): void {
    this.sweep?.unref();
  }

  private start(): void {
    // The worker may have been killed before its first turn.
    if (this.isEnded) return;
    try {
      this.worker.startHeartbeat();
    } catch {
      // No thread can be made now, and nothing was claimed.
      this.end(1, null);
      return;
    }
    this.document.ensure();
    this.tell({ type: "hello", id: this.document.id });
    this.sweep = setInterval(() => this.lookAround(), this.boot.settings.sweep_ms);
    this.worker.warmUp();
  }

  private tell(message: ToSupervisor): void {
    setImmediate(() => this.emit("message", message));
  }

  private lookAround(): void {
    this.document.ensure();
    this.worker.lookAround();
    this.worker.wake();
    if (performance.now() < this.dropsAtMs) return;
    this.dropsAtMs = performance.now() + DROPS_MS;
    // The next look finds what this one could not take.
    void this.takeLeftDrops().catch(() => {});
  }

  private async takeLeftDrops(): Promise<void> {
    const { takeLeftDrops } = await import("./drop.ts");
    const { tree, trays } = this;
    const { settings } = this.boot;
    await takeLeftDrops({ tree, trays, settings, requests: this.parts.requests ?? [] });
  }

  private end(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.connected = false;
    clearInterval(this.sweep);
    this.document.remove();
    // Messages that the worker sent before arrive first.
    setImmediate(() => setImmediate(() => this.emit("exit", code, signal)));
  }
}
