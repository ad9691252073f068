/** Notices that the supervisor lives but hangs: it would carry out no command, so a worker then takes nothing new. */

import { supervisorOf } from "../core/saved-documents.ts";
import type { Settings } from "../core/settings.ts";
import { beatMsOf } from "../core/stall.ts";
import type { StateTree } from "../core/state-tree.ts";
import { mtimeOfDocument, readDocument } from "../host/documents.ts";
import { judgeIn } from "../host/tree-id.ts";
import { LeaseObserver } from "../mailbox/recover/lease-observer.ts";

/** How often the supervisor writes its heartbeat, unless `stall_ms` is short (ms). */
const BEAT_MS = 5000;
const KEY = "supervisor";
const KEYS: ReadonlySet<string> = new Set([KEY]);

export class SupervisorWatch {
  private readonly stallMs: number;
  private readonly silence: LeaseObserver;
  private readonly beatMs: number;
  private timer: NodeJS.Timeout | undefined;
  private hangingPid: number | undefined;

  /**
   * @param onChange called when the supervisor hangs, with its pid; and when it moves again or has ended
   * @param silence tests put a broken one here
   */
  constructor(
    private readonly tree: StateTree,
    settings: Pick<Settings, "stall_ms">,
    private readonly onChange: (hangingPid: number | undefined) => void,
    silence?: LeaseObserver,
  ) {
    this.stallMs = settings.stall_ms;
    this.beatMs = beatMsOf(settings, BEAT_MS);
    this.silence = silence ?? new LeaseObserver(this.beatMs);
  }

  get isHanging(): boolean {
    return this.hangingPid !== undefined;
  }

  start(): void {
    if (this.stallMs > 0)
      this.timer = setInterval(() => this.look(performance.now()), this.beatMs).unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Call it as often as `beatMsOf` says. */
  look(nowMs: number): void {
    this.silence.beginRound(nowMs, KEYS);
    const beat = mtimeOfDocument(this.tree.supervisor) ?? 0;
    const isSilent = this.silence.silenceMs(KEY, beat, nowMs) >= this.stallMs;
    const pid = isSilent ? this.livingPid() : undefined;
    if (pid === this.hangingPid) return;
    this.hangingPid = pid;
    this.onChange(pid);
  }

  private livingPid(): number | undefined {
    const document = readDocument(this.tree.supervisor, supervisorOf);
    if (document === undefined || document.status === "stopped") return undefined;
    return judgeIn(this.tree.dir, document) === "alive" ? document.pid : undefined;
  }
}
