/** Reads the running tasks: for each claim in `processing/`, which process holds it, since when, and its progress. Changes nothing. */
import { join } from "node:path";
import { compact } from "../core/compact.ts";
import { leaseOf, parseLease, runOf } from "../core/names.ts";
import type { RemoteRun } from "../core/saved-documents.ts";
import type { StateTree } from "../core/state-tree.ts";
import { judgeOwner, parseOwner, processOf, type Verdict } from "../host/identity.ts";
import { statOf } from "../host/regular-file.ts";
import { readBatchProgress } from "./batches.ts";
import type { TaskPlace } from "./find-task.ts";
import { readRemoteRuns } from "./remote-runs.ts";
import { RunTails } from "./run-tails.ts";
import type { RunningView } from "./snapshot.ts";

const OF_FOREIGN_WORKER = {
  attempt: 0,
  run: null,
  lease: null,
  pid: null,
  verdict: "unknown",
  age_ms: null,
} as const;

/** Reads the running tasks at each look, and keeps the facts that cannot change. */
export class RunningTasks {
  readonly tails = new RunTails();
  /** When each run's folder was made (epoch ms). */
  private born = new Map<string, number>();

  constructor(private readonly tree: StateTree) {}

  /** The running tasks among these places, the longest run first. */
  look(places: readonly TaskPlace[], nowMs: number): RunningView[] {
    const remote = readRemoteRuns(this.tree, places, nowMs);
    const born = new Map<string, number>();
    const verdicts = new Map<string, Verdict>();
    const running = places
      .filter((place) => place.state === "running")
      .map((place) => this.read(place, nowMs, { born, verdicts }));
    this.born = born;
    this.tails.keepOnly(new Set([...born.keys()].map((run) => join(this.tree.runs, run))));
    running.push(...[...remote.values()].flatMap((run) => remoteView(run, nowMs)));
    return running.sort((a, b) => (b.age_ms ?? 0) - (a.age_ms ?? 0));
  }

  private read(place: TaskPlace, nowMs: number, { born, verdicts }: OneLook): RunningView {
    const { name } = place;
    if (name === undefined) return { id: place.id, ...OF_FOREIGN_WORKER };
    const run = runOf(name);
    const dir = join(this.tree.runs, run);
    // The claim's own mtime is its heartbeat; the run's directory is made when the attempt begins.
    const bornMs = this.born.get(run) ?? birthOf(dir);
    if (bornMs !== undefined) born.set(run, bornMs);
    const batch = name.isBatch === true ? readBatchProgress(dir) : undefined;
    const progress = name.isBatch === true ? undefined : this.tails.look(dir).progress;
    const process = processOf(name.token);
    const verdict = verdicts.get(process) ?? judgeOwner(name.token);
    verdicts.set(process, verdict);
    return {
      id: place.id,
      attempt: name.attempt,
      run: bornMs === undefined ? null : run,
      lease: leaseOf(name),
      pid: parseOwner(name.token)?.pid ?? null,
      verdict,
      age_ms: bornMs === undefined ? null : Math.max(0, Math.round(nowMs - bornMs)),
      ...compact({ batch, progress }),
    };
  }
}

/** Empty for a task that only waits at the other machine. */
function remoteView(run: RemoteRun, nowMs: number): RunningView[] {
  const { id, lease, machine, began_ms: beganMs, progress, last_line } = run;
  if (beganMs === null) return [];
  return [
    {
      id,
      attempt: parseLease(lease)?.attempt ?? 0,
      run: null,
      lease,
      pid: null,
      verdict: "alive",
      age_ms: Math.max(0, Math.round(nowMs - beganMs)),
      machine,
      ...compact({ progress: progress ?? undefined, last_line: last_line ?? undefined }),
    },
  ];
}

/** Facts that one look finds out only once. */
interface OneLook {
  born: Map<string, number>;
  verdicts: Map<string, Verdict>;
}

function birthOf(dir: string): number | undefined {
  const made = statOf(dir);
  return made === undefined ? undefined : made.birthtimeMs || made.ctimeMs;
}
