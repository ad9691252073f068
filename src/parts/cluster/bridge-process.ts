/** Keeps a bridge beside a supervisor, as a process of its own: what happens to it does not touch the pool. It ends with the supervisor. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { messageOf } from "../../core/errors.ts";
import { pathInPackage } from "../../host/package.ts";

/** Before a bridge is started that has ended (ms). It doubles up to the longest one, until one has lived for a while. */
const AGAIN_MS = { first: 1000, max: 30_000 };
const HEALTHY_MS = 60_000;
/** The supervisor names the program itself. */
const PREFIX = /^mailchute: /;

export interface BridgeProcessOptions {
  stateDir: string;
  /** Whether another bridge runs on this state tree: then none is started. */
  isThere: () => boolean;
  /** Takes what the bridge says. */
  tell: (line: string) => void;
}

export class BridgeProcess {
  private readonly o: BridgeProcessOptions;
  private child: ChildProcess | undefined;
  private startedMs = 0;
  private againMs = AGAIN_MS.first;
  private timer: NodeJS.Timeout | undefined;
  private isEnding = false;

  constructor(options: BridgeProcessOptions) {
    this.o = options;
  }

  /** Never throws: it is tried again later. */
  start(): void {
    if (this.isEnding || this.child !== undefined) return;
    try {
      if (this.o.isThere()) this.later();
      else this.spawn();
    } catch (error) {
      this.o.tell(`the bridge could not be started: ${messageOf(error)}`);
      this.later();
    }
  }

  /** Asks it to end, and ends it after this time. Resolves when it has ended. */
  async end(limitMs: number): Promise<void> {
    const child = this.child;
    this.close();
    if (child === undefined) return;
    const timer = setTimeout(() => child.kill("SIGKILL"), limitMs);
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    clearTimeout(timer);
  }

  /** Asks it to end. */
  close(): void {
    this.isEnding = true;
    clearTimeout(this.timer);
    this.child?.kill("SIGTERM");
  }

  private spawn(): void {
    const words = [pathInPackage("bin/mailchute.js"), "bridge", "--state", this.o.stateDir];
    const child = spawn(process.execPath, words, {
      // Ctrl-C in a terminal reaches the supervisor only.
      detached: true,
      // By the channel it notices the death of this process.
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.child = child;
    this.startedMs = performance.now();
    if (child.stderr !== null)
      createInterface({ input: child.stderr }).on("line", (line) =>
        this.o.tell(line.replace(PREFIX, "")),
      );
    const onEnd = (how: string): void => {
      if (this.child !== child) return;
      this.child = undefined;
      if (this.isEnding) return;
      if (performance.now() - this.startedMs > HEALTHY_MS) this.againMs = AGAIN_MS.first;
      this.o.tell(`the bridge has ended (${how}), and is started again`);
      this.later();
    };
    child.once("exit", (code, signal) => onEnd(signal ?? `exit code ${code}`));
    child.once("error", (error) => onEnd(error.message));
    // It alone does not keep this process.
    child.unref();
    child.channel?.unref();
  }

  private later(): void {
    this.timer = setTimeout(() => this.start(), this.againMs).unref();
    this.againMs = Math.min(2 * this.againMs, AGAIN_MS.max);
  }
}
