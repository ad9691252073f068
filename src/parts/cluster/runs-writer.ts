/** Writes `cluster/runs.json`, and the costs of runs at other machines, from what these machines report. */
import { type CostRecord, hasUsed, priceOfRecord } from "../../agents/cost-records.ts";
import { leaseOf } from "../../core/names.ts";
import type { RemoteRun, remoteRunsOf } from "../../core/saved-documents.ts";
import type { Settings } from "../../core/settings.ts";
import type { Of } from "../../core/shape.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { ownerSequence } from "../../host/identity.ts";
import { replaceDocument } from "../../host/replace-document.ts";
import type { BridgeView } from "./bridge/options.ts";
import type { Begun } from "./protocol/begun.ts";
import type { OriginCosts } from "./tree/origin-costs.ts";
import type { Held, OriginFiles } from "./tree/origin-files.ts";

/** While there are runs, the longest and the shortest time between two writes (ms). So readers see that the bridge lives. */
const WRITE_MS_MAX = 5000;
const WRITE_MS_MIN = 500;
/** A machine tells within this time what a cancelled run has cost. If it does not, the last report counts (ms). */
const TOLD_MS_MAX = 60_000;
/** At most this many runs are written. */
const RUNS_MAX = 2000;

interface Shown {
  text: string;
  record: CostRecord;
  /** When it was first missing among the runs under way (monotonic ms). */
  goneMs: number | undefined;
}

export interface RunsOptions {
  origin: Pick<OriginFiles, "runOf">;
  costs: OriginCosts;
  prices: Settings["prices"];
  write: (runs: RemoteRun[]) => void;
}

export class RunsWriter {
  private readonly options: RunsOptions;
  private lookedMs = Number.NEGATIVE_INFINITY;
  private writtenMs = Number.NEGATIVE_INFINITY;
  private written = "[]";
  /** The costs that were last written, by lease. */
  private readonly shown = new Map<string, Shown>();
  private isFirst = true;

  constructor(options: RunsOptions) {
    this.options = options;
  }

  /** Writes what has changed. @param nowMs monotonic. @throws a system error when the file cannot be written */
  update({ held, begun }: BridgeView, nowMs: number): void {
    if (nowMs - this.lookedMs < WRITE_MS_MIN) return;
    this.lookedMs = nowMs;
    if (this.isFirst) this.options.costs.keepOnly(new Set(held.map((one) => this.leaseOf(one))));
    this.isFirst = false;
    const runs: RemoteRun[] = [];
    const leases = new Set<string>();
    for (const one of held) {
      const known = begun.get(one.id);
      if (known === undefined) continue;
      if (runs.length === RUNS_MAX) break;
      const records = this.recordsOf(one, known);
      runs.push(this.entryOf(one, known, records));
      const [record] = records.filter(hasUsed);
      if (record === undefined) continue;
      this.show(record);
      leases.add(this.leaseOf(one));
    }
    for (const [lease, one] of this.shown) if (!leases.has(lease)) this.end(lease, one, nowMs);
    const text = JSON.stringify(runs);
    const isOld = nowMs - this.writtenMs >= WRITE_MS_MAX;
    if (text === this.written && (runs.length === 0 || !isOld)) return;
    this.options.write(runs);
    this.written = text;
    this.writtenMs = nowMs;
  }

  private leaseOf(held: Held): string {
    return leaseOf(this.options.origin.runOf(held).name);
  }

  private recordsOf(held: Held, { machine, run }: Begun): CostRecord[] {
    const costs = run?.costs ?? [];
    if (costs.length === 0) return [];
    return this.options.costs.recordsOf(this.options.origin.runOf(held), machine, costs);
  }

  private show(record: CostRecord): void {
    const { at: _at, duration_ms: _duration, lease = "", ...used } = record;
    const text = JSON.stringify(used);
    if (this.shown.get(lease)?.text === text) return;
    this.options.costs.show(lease, record);
    this.shown.set(lease, { text, record, goneMs: undefined });
  }

  /** Shows the costs of an ended run until they are booked: the machine of a cancelled run tells them when the run has stopped. */
  private end(lease: string, shown: Shown, nowMs: number): void {
    const { costs } = this.options;
    shown.goneMs ??= nowMs;
    if (!costs.isBooked(lease)) {
      if (nowMs - shown.goneMs < TOLD_MS_MAX) return;
      costs.book([{ ...shown.record, at: Math.floor(Date.now() / 1000) }]);
    }
    costs.hide(lease);
    this.shown.delete(lease);
  }

  private entryOf(
    held: Held,
    { machine, beganMs, run }: Begun,
    records: readonly CostRecord[],
  ): RemoteRun {
    const costs = records.flatMap((one) => priceOfRecord(one, this.options.prices) ?? []);
    return {
      id: held.dispatch.task,
      lease: this.leaseOf(held),
      machine,
      target: held.target,
      began_ms: beganMs,
      progress: run?.progress ?? null,
      last_line: run?.line ?? null,
      cost_usd_micro: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0),
    };
  }
}

/** Replaces `cluster/runs.json`. */
export function runsFile({ remoteRuns }: StateTree): RunsOptions["write"] {
  const owner = ownerSequence()();
  return (runs) =>
    replaceDocument(remoteRuns, { owner, runs } satisfies Of<typeof remoteRunsOf>, {
      missingMax: 2,
    });
}
