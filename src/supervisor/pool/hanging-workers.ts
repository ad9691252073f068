/** Finds worker processes that live but hang, for example after SIGSTOP: their files in `workers/` keep their mtime. */
import { join } from "node:path";
import type { Settings } from "../../core/settings.ts";
import { beatMsOf } from "../../core/stall.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { mtimeOfDocument } from "../../host/documents.ts";
import { LeaseObserver } from "../../mailbox/recover/lease-observer.ts";
import type { WorkerInfo } from "./worker-info.ts";

/** A worker with other settings than ours may beat as rarely as our `heartbeat_ms` says. So many of these fit into its limit. */
const RARE_BEATS = 3;
/** In the observer: our own document. No worker has this id. */
const OWN = "";

export class HangingWorkers {
  private readonly silence: LeaseObserver;

  /** @param silence tests put a broken one here */
  constructor(
    private readonly tree: Pick<StateTree, "workers" | "supervisor">,
    private readonly settings: Settings,
    silence?: LeaseObserver,
  ) {
    this.silence = silence ?? new LeaseObserver(beatMsOf(settings, settings.heartbeat_ms));
  }

  /** @returns those of these workers that have not moved for `stall_ms`. Call this at least as often as `beatMsOf` says */
  find(workers: readonly WorkerInfo[], nowMs: number): WorkerInfo[] {
    const { stall_ms: stallMs, heartbeat_ms: heartbeatMs } = this.settings;
    // We cannot check or end processes of another place.
    const here = stallMs === 0 ? [] : workers.filter(({ isHere }) => isHere);
    this.silence.beginRound(nowMs, new Set([OWN, ...here.map(({ id }) => id)]));
    // If our own document gets no heartbeat, the disk refuses all of them, and the files of workers show nothing.
    const own = mtimeOfDocument(this.tree.supervisor) ?? -nowMs;
    const isRefused = this.silence.silenceMs(OWN, own, nowMs) >= stallMs / 2;
    return here.filter(({ id, tie }) => {
      const limitMs = tie === "child" ? stallMs : Math.max(stallMs, heartbeatMs * RARE_BEATS);
      // A worker may not have written its file yet, for example because the disk is full. Then each look counts as a beat.
      const path = join(this.tree.workers, `${id}.json`);
      const beat = (isRefused ? undefined : mtimeOfDocument(path)) ?? -nowMs;
      return this.silence.silenceMs(id, beat, nowMs) >= limitMs;
    });
  }
}
