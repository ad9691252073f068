/** Runs a bridge for a supervisor as a separate process, so that its faults do not touch the pool. It ends with the supervisor. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { messageOf } from "../../core/errors.ts";
import { pathInPackage } from "../../host/package.ts";
import { spawn } from "../../host/spawn.ts";

/** Pause before an ended bridge is started again (ms). It doubles up to the longest, until a bridge lives for `HEALTHY_MS`. */
const AGAIN_MS = { first: 1000, max: 30_000 };
const HEALTHY_MS = 60_000;
/** Removed from lines of the bridge, because the supervisor adds the name of the program itself. */
const PREFIX = /^mailchute: /;

export interface BridgeProcessOptions {
  stateDir: string;
  /** Whether another bridge runs on this state tree. Then it starts none. */
  isThere: () => boolean;
  /** Called with each line that the bridge prints. */
  tell: (line: string) => void;
}

export class BridgeProcess {
  private readonly options: BridgeProcessOptions;
  private child: ChildProcess | undefined;
  private startedMs = 0;
  private againMs = AGAIN_MS.first;
  private timer: NodeJS.Timeout | undefined;
  private isEnding = false;

  constructor(options: BridgeProcessOptions) {
    this.options = options;
  }

  /** Starts the bridge. Never throws: it tries again later. */
  start(): void {
    if (this.isEnding || this.child !== undefined) return;
    try {
      if (this.options.isThere()) this.later();
      else this.spawn();
    } catch (error) {
      this.options.tell(`the bridge could not be started: ${messageOf(error)}`);
      this.later();
    }
  }

  /** Asks the bridge to end, and kills it after this time. Resolves when it has ended. */
  async end(limitMs: number): Promise<void> {
    const child = this.child;
    this.close();
    if (child === undefined) return;
    const timer = setTimeout(() => child.kill("SIGKILL"), limitMs);
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    clearTimeout(timer);
  }

  /** Asks the bridge to end. */
  close(): void {
    this.isEnding = true;
    clearTimeout(this.timer);
    this.child?.kill("SIGTERM");
  }

  private spawn(): void {
    const words = [pathInPackage("bin/mailchute.js"), "bridge", "--state", this.options.stateDir];
    const child = spawn(process.execPath, words, {
      // So Ctrl-C in a terminal reaches only the supervisor.
      detached: true,
      // Through the channel the bridge notices the death of this process.
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.child = child;
    this.startedMs = performance.now();
    if (child.stderr !== null)
      createInterface({ input: child.stderr }).on("line", (line) =>
        this.options.tell(line.replace(PREFIX, "")),
      );
    const onEnd = (how: string): void => {
      if (this.child !== child) return;
      this.child = undefined;
      if (this.isEnding) return;
      if (performance.now() - this.startedMs > HEALTHY_MS) this.againMs = AGAIN_MS.first;
      this.options.tell(`the bridge has ended (${how}), and is started again`);
      this.later();
    };
    child.once("exit", (code, signal) => onEnd(signal ?? `exit code ${code}`));
    child.once("error", (error) => onEnd(error.message));
    // The child alone must not keep this process alive.
    child.unref();
    child.channel?.unref();
  }

  private later(): void {
    this.timer = setTimeout(() => this.start(), this.againMs).unref();
    this.againMs = Math.min(2 * this.againMs, AGAIN_MS.max);
  }
}
