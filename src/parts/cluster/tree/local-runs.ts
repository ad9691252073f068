/** Reads the progress and the costs of runs that this machine has for others, from files of its pool and its agents. Only reads. */
import { join } from "node:path";
import { RunningCosts } from "../../../agents/budget/running-costs.ts";
import { type CostRecord, priceOfRecord, readCostRecord } from "../../../agents/cost-records.ts";
import type { AgentLines } from "../../../cli/text/agent-lines.ts";
import { runOf } from "../../../core/names.ts";
import type { Settings } from "../../../core/settings.ts";
import { costsOf, type StateTree } from "../../../core/state-tree.ts";
import { fileOfDay } from "../../../journal/daily.ts";
import { JournalTail } from "../../../journal/tail.ts";
import { processingPlaces, type TaskPlace } from "../../../view/find-task.ts";
import { lookForLanding } from "../../../view/landing.ts";
import { RunningTasks } from "../../../view/running-tasks.ts";
import { type RunCost, type RunNews, SAID_CHARS_MAX } from "../protocol/messages.ts";

const DAY_MS = 24 * 3600 * 1000;
/** Most costs of one run in a message. */
const COSTS_MAX = 8;

export interface LocalRunsOptions {
  tree: StateTree;
  prices: Settings["prices"];
  /** Reads the output of coding agents. */
  lines: Pick<AgentLines, "lastLineOf" | "keepOnly">;
}

export class LocalRuns {
  private readonly options: LocalRunsOptions;
  private readonly running: RunningTasks;
  private readonly costs: RunningCosts;
  /** The journals of costs of yesterday and today, by path. */
  private readonly tails = new Map<string, JournalTail>();
  /** The booked costs, by task. */
  private readonly booked = new Map<string, CostRecord[]>();

  constructor(options: LocalRunsOptions) {
    this.options = options;
    this.running = new RunningTasks(options.tree);
    this.costs = new RunningCosts(options.tree.dir);
  }

  /** The progress of these tasks. Leaves out tasks that are not in `processing/` and are not landing. @throws a system error */
  news(ids: ReadonlySet<string>): Map<string, RunNews> {
    if (ids.size === 0) return new Map();
    const { tree } = this.options;
    const places = processingPlaces(tree).filter(({ id }) => ids.has(id));
    const views = new Map(this.running.look(places, Date.now()).map((one) => [one.id, one]));
    const costs = this.costs.all();
    this.options.lines.keepOnly(new Set(places.flatMap((place) => this.dirOf(place) ?? [])));
    return new Map([
      ...this.landingNews(ids),
      ...places.map((place): [string, RunNews] => {
        const { id } = place;
        const { age_ms: ageMs = null, progress } = views.get(id) ?? {};
        const news = {
          ran_ms: ageMs,
          progress: progress === undefined ? null : { pct: progress.pct, text: cut(progress.text) },
          line: this.lineOf(place),
          costs: this.asCosts(costs.filter((one) => one.task_id === id)),
        };
        return [id, news];
      }),
    ]);
  }

  /** The state of ended runs whose work has not landed; none while the landings cannot be read. */
  private landingNews(ids: ReadonlySet<string>): [string, RunNews][] {
    const { tree } = this.options;
    return [...ids].flatMap((id): [string, RunNews][] => {
      const landing = lookForLanding(tree, id);
      if (landing?.state !== "open") return [];
      const line = cut(`has not landed: ${landing.why}`);
      return [[id, { ran_ms: null, progress: null, line, costs: this.costsOf(id, ids) }]];
    });
  }

  /** What an ended run has used. @param ids the tasks that may be asked for later, whose costs are kept */
  costsOf(id: string, ids: ReadonlySet<string>): RunCost[] {
    this.readOn(ids);
    return this.asCosts(this.booked.get(id) ?? []);
  }

  forget(id: string): void {
    this.booked.delete(id);
  }

  close(): void {
    for (const tail of this.tails.values()) tail.close();
  }

  /** The folder of the task's run; undefined when it does not run. */
  private dirOf({ name, state }: TaskPlace): string | undefined {
    const isOn = name !== undefined && state === "running";
    return isOn ? join(this.options.tree.runs, runOf(name)) : undefined;
  }

  private lineOf(place: TaskPlace): string | null {
    const dir = this.dirOf(place);
    if (dir === undefined) return null;
    const line = this.running.tails.last(dir).lastLine ?? this.options.lines.lastLineOf(dir);
    return line === null ? null : cut(line);
  }

  private asCosts(records: readonly CostRecord[]): RunCost[] {
    const { prices } = this.options;
    return records.slice(0, COSTS_MAX).map((one) => {
      const price = priceOfRecord(one, prices);
      return {
        kind: cut(one.kind),
        account: cut(one.account),
        model: one.model === null ? null : cut(one.model),
        session_id: one.session_id === null ? null : cut(one.session_id),
        input_tokens: amount(one.input_tokens),
        cached_input_tokens: amount(one.cached_input_tokens),
        output_tokens: amount(one.output_tokens),
        cost_usd_micro: price === undefined ? null : amount(price),
        turns: amount(one.turns),
        duration_ms: amount(one.duration_ms),
        outcome: cut(one.outcome),
      };
    });
  }

  /** Reads new lines of the journals. A run is booked before its task settles, so the costs of ended runs are there. */
  private readOn(ids: ReadonlySet<string>): void {
    const nowMs = Date.now();
    const path = costsOf(this.options.tree);
    const files = [nowMs - DAY_MS, nowMs].map((ms) => fileOfDay(path, ms));
    for (const [file, tail] of this.tails)
      if (!files.includes(file)) {
        tail.close();
        this.tails.delete(file);
      }
    for (const file of files) {
      const tail = this.tails.get(file) ?? new JournalTail(file);
      this.tails.set(file, tail);
      for (let lines = tail.next(); lines.length > 0; lines = tail.next())
        for (const line of lines) this.add(readCostRecord(line), ids);
    }
  }

  private add(record: CostRecord | undefined, ids: ReadonlySet<string>): void {
    if (record === undefined || !ids.has(record.task_id)) return;
    const known = this.booked.get(record.task_id) ?? [];
    const isKnown = known.some(
      ({ lease, session_id: session }) => lease === record.lease && session === record.session_id,
    );
    if (!isKnown) this.booked.set(record.task_id, [...known, record]);
  }
}

/** Makes a text valid for messages. Files may hold anything, and a refused result would never settle its task. */
function cut(text: unknown): string {
  // The cut may leave half of a surrogate pair. The conversion replaces it by a valid character.
  return Buffer.from(String(text).slice(0, SAID_CHARS_MAX)).toString("utf8");
}

function amount(value: unknown): number {
  const rounded = typeof value === "number" ? Math.round(value) : 0;
  return Number.isSafeInteger(rounded) ? Math.max(0, rounded) : 0;
}
