/** Makes the page of numbers for Prometheus from the files of a state tree, also while no supervisor runs. Reads only. */
import fs from "node:fs";
import { accountsOf } from "../../agents/accounts/account-settings.ts";
import { accountsDir, GateFile } from "../../agents/accounts/gate-file.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { readVersion } from "../../host/package.ts";
import { statOf } from "../../host/regular-file.ts";
import { readEventLine } from "../../journal/event-line.ts";
import { bytesAfter, type JournalPlace, readOn } from "../../journal/read-on.ts";
import { rotatedOf } from "../../journal/rotated.ts";
import { readJsonObject } from "../scan.ts";
import { SnapshotReader } from "../snapshot-reader.ts";
import { SpentToday } from "../spent-today.ts";
import { EventCounts } from "./event-counts.ts";
import { exposition, type Labels } from "./exposition.ts";
import { familiesOf, type PoolFacts, type Quota } from "./families.ts";

const ACCOUNTS_MAX = 20;

export interface MetricsOptions {
  settings: Settings;
  env: NodeJS.ProcessEnv;
  /** How much of a journal one look reads (bytes): about 90 MB take a second. */
  bytesMax: number;
  /** Labels of all samples. */
  labels?: Labels;
}

/** The counts, and the place in the journal up to which they go. */
interface Counted {
  /** The journal place in the `metrics.json` with which the count began. */
  base: string;
  counts: EventCounts;
  place: JournalPlace;
  badCount: number;
  leftBytes: number;
}

export class MetricsReader {
  private readonly version = readVersion();
  private readonly snapshots: SnapshotReader;
  private readonly spent: SpentToday;
  private counted: Counted | undefined;

  constructor(
    private readonly tree: StateTree,
    private readonly options: MetricsOptions,
  ) {
    this.snapshots = new SnapshotReader(tree);
    this.spent = new SpentToday(tree, options.settings.prices, options.bytesMax);
  }

  /** @throws ErrIo when a directory of the tree cannot be read, a system error when its journal cannot */
  next(nowMs: number): string {
    return exposition(familiesOf(this.look(nowMs)), this.options.labels);
  }

  /** Closes the files that stay open between two looks. */
  close(): void {
    this.snapshots.close();
    this.spent.close();
  }

  private look(nowMs: number): PoolFacts {
    const { tree, options } = this;
    const snapshot = this.snapshots.next(nowMs);
    // `metrics` of this snapshot is not used: `count` reads that file right before the journal.
    const { counts, badCount, leftBytes } = this.count();
    const { today_usd_micro: micro, is_complete: isAll } = this.spent.look(nowMs);
    return {
      version: this.version,
      snapshot,
      counts,
      badLines: counts.badBefore + badCount,
      journals: {
        bytes: journalBytes(tree),
        lagBytes: bytesAfter(tree.events, counts.place),
        leftBytes,
      },
      disk: diskOf(tree.dir),
      quotas: quotasOf(options.settings, options.env, nowMs),
      today:
        micro === null || !isAll
          ? undefined
          : { costUsd: micro / 1e6, tokens: { ...this.spent.tokens } },
    };
  }

  /**
   * Continues the counts of `metrics.json` with the lines of the journal. While the document has not changed, it continues from
   * the previous look. So no count becomes smaller, because both count the same lines.
   */
  private count(): Counted {
    const { tree, options } = this;
    const document = readJsonObject(tree.metrics);
    const fresh = new EventCounts(document);
    const base = `${fresh.place.ino}.${fresh.place.offset}`;
    const counted =
      this.counted?.base === base
        ? this.counted
        : { base, counts: fresh, place: fresh.place, badCount: 0, leftBytes: 0 };
    const read = readOn(tree.events, counted.place, options.bytesMax, (line) => {
      const { event, record } = readEventLine(line);
      if (event === undefined) counted.badCount++;
      else counted.counts.add(line, event, record);
    });
    counted.place = read.place;
    counted.badCount += read.badCount;
    counted.leftBytes = read.leftBytes;
    this.counted = counted;
    return counted;
  }
}

function journalBytes({ events, leases, alerts }: StateTree): Record<string, number> {
  const sizeOf = (path: string): number => statOf(path)?.size ?? 0;
  const of = (path: string): number =>
    [path, ...rotatedOf(path)].reduce((sum, file) => sum + sizeOf(file), 0);
  return { events: of(events), leases: of(leases), alerts: of(alerts) };
}

function diskOf(dir: string): PoolFacts["disk"] {
  try {
    const { bavail, blocks, bsize } = fs.statfsSync(dir);
    return blocks === 0 ? undefined : { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
  } catch {
    return undefined;
  }
}

/** The quotas of the accounts that the settings name. */
function quotasOf(settings: Settings, env: NodeJS.ProcessEnv, nowMs: number): Quota[] {
  const names = new Set(settings.agents.flatMap((agent) => accountsOf(agent)));
  return [...names].slice(0, ACCOUNTS_MAX).map((account) => {
    const gate = new GateFile(accountsDir(env), account).look(nowMs);
    return {
      account,
      isOpen: gate.may,
      windows: Object.entries(gate.gate.windows ?? {}).map(([window, one]) => ({
        window,
        usedPct: one.used_pct,
        resetsAtMs: one.resets_at_ms,
      })),
    };
  });
}
