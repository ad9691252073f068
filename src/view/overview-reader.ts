/** Reads the overview of a state tree, several times a second if necessary. Reads only, and a bounded amount in each look. */
import { join } from "node:path";
import { chosenAgent } from "../agents/chosen-agent.ts";
import { leaseOf } from "../core/names.ts";
import { type AgentSettings, DEFAULT_SETTINGS, type Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { laneOf, readLane } from "../core/waiting-task.ts";
import { DoneRate } from "./done-rate.ts";
import { FailureCausesReader } from "./failure-causes.ts";
import { idsIn, type TaskPlace } from "./find-task.ts";
import { Kept, stampOf } from "./kept.ts";
import { LatestAlerts } from "./latest-alerts.ts";
import { overviewOf, RUNNING_MAX } from "./make-overview.ts";
import type { AcceptedTask, InboxTask, Overview, TaskFacts } from "./overview.ts";
import type { Snapshot } from "./snapshot.ts";
import { type Accepted, SnapshotReader } from "./snapshot-reader.ts";
import { SpentToday } from "./spent-today.ts";
import { isAttended } from "./supervisor.ts";
import { describeTask, maxAttemptsIn, readTask, readWaiting } from "./task-rows.ts";

/** How many more names of a large tray each look counts (2 ms). */
const NAMES_PER_LOOK = 2000;
/** How many accepted tasks are named. */
const ACCEPTED_MAX = 200;
/** How many tasks of the inbox are named; their files are read. */
const INBOX_MAX = 20;
const ALERTS_MS = 24 * 60 * 60 * 1000;
/** How many files of running tasks, and of waiting ones, one look reads. */
const TASKS_READ_MAX = 50;
const TITLES_READ_MAX = 20;

type Leases = ReadonlySet<string | null>;

export interface OverviewOptions {
  /** Holds the prices of models, for programs that report no price. */
  settings?: Settings;
  /** The last line of a run that prints none itself, such as that of a coding agent. @param runDir path of the run's folder */
  lastLineOf?: (runDir: string) => string | null;
}

export class OverviewReader {
  private readonly snapshots: SnapshotReader;
  private readonly rate: DoneRate;
  private readonly failures: FailureCausesReader;
  private readonly alerts: LatestAlerts;
  private readonly spent: SpentToday;
  private readonly inbox = new Kept<InboxTask[]>();
  private tasks = new Map<string, TaskFacts>();
  /** Of waiting tasks, by the path of the file. */
  private titles = new Map<string, string>();

  constructor(
    private readonly tree: StateTree,
    private readonly options: OverviewOptions = {},
  ) {
    this.snapshots = new SnapshotReader(tree, NAMES_PER_LOOK);
    this.rate = new DoneRate(tree);
    this.failures = new FailureCausesReader(tree);
    this.alerts = new LatestAlerts(tree);
    this.spent = new SpentToday(tree, (options.settings ?? DEFAULT_SETTINGS).prices);
  }

  /** @throws ErrIo when a directory of the tree cannot be read */
  next(nowMs: number): Overview {
    const { tree } = this;
    const snapshot = this.snapshots.next(nowMs);
    const { processing } = this.snapshots;
    const leases = new Set(snapshot.running.map(({ lease }) => lease));
    this.tasks = this.readTasks(processing.places, leases);
    const inbox = join(tree.mailbox, "inbox");
    const accepted = acceptedOf(processing, leases);
    const waiting = this.inbox.get(stampOf(inbox), () =>
      inboxTasks(inbox, idsIn(tree, "inbox", INBOX_MAX), this.options.settings?.agents),
    );
    const told = snapshot.supervisor.document?.waiting.held ?? [];
    return overviewOf({
      snapshot,
      limits: this.options.settings ?? DEFAULT_SETTINGS,
      isPlanNewer: this.snapshots.isPlanNewer,
      tasks: this.tasks,
      lastLines: this.lastLines(snapshot),
      accepted,
      inbox: waiting,
      titles: this.readTitles([
        ...accepted,
        ...[...waiting, ...told].map(({ id }) => ({ id, path: join(inbox, `${id}.json`) })),
      ]),
      minutes: this.rate.look(snapshot.metrics, isAttended(snapshot.supervisor), nowMs),
      failures: this.failures.look(),
      alerts: this.alerts.look(nowMs - ALERTS_MS),
      cost: this.spent.look(nowMs),
    });
  }

  /** Closes the files that stay open between two looks. */
  close(): void {
    this.snapshots.close();
    this.spent.close();
  }

  /** Reads the files of the running tasks, each of them once. @returns their facts, by lease */
  private readTasks(places: readonly TaskPlace[], leases: Leases): Map<string, TaskFacts> {
    const wanted = new Map<string, () => TaskFacts>();
    for (const place of places) {
      const { name } = place;
      const lease = name === undefined ? null : leaseOf(name);
      if (lease === null || !leases.has(lease)) continue;
      wanted.set(lease, () => factsOf(this.tree, place));
      if (wanted.size >= RUNNING_MAX) break;
    }
    return readFew(this.tasks, wanted, TASKS_READ_MAX);
  }

  /** Reads the files of waiting tasks, each of them once. @returns their titles, by id */
  private readTitles(files: readonly { id: string; path: string }[]): Map<string, string> {
    const wanted = new Map(files.map(({ path }) => [path, () => describeTask(readTask(path))]));
    this.titles = readFew(this.titles, wanted, TITLES_READ_MAX);
    return new Map(files.map(({ id, path }) => [id, this.titles.get(path) ?? ""]));
  }

  private lastLines(snapshot: Snapshot): Map<string, string | null> {
    const { tails } = this.snapshots.runs;
    const lines = new Map<string, string | null>();
    for (const { run, batch } of snapshot.running.slice(0, RUNNING_MAX)) {
      if (run === null || batch !== undefined) continue;
      const dir = join(this.tree.runs, run);
      lines.set(run, tails.last(dir).lastLine ?? this.options.lastLineOf?.(dir) ?? null);
    }
    return lines;
  }
}

/** What is known already, and at most `max` that are read now. */
function readFew<T>(
  known: ReadonlyMap<string, T>,
  wanted: ReadonlyMap<string, () => T>,
  max: number,
): Map<string, T> {
  const found = new Map<string, T>();
  let reads = 0;
  for (const [key, read] of wanted)
    if (known.has(key)) found.set(key, known.get(key) as T);
    else if (++reads <= max) found.set(key, read());
  return found;
}

/**
 * The tasks in `processing/` that do not run; when there are many, only some of them.
 * @param leases of tasks that run, here or at other machines
 */
function acceptedOf(
  { places, dueMs }: Accepted,
  leases: Leases,
): (AcceptedTask & Pick<TaskPlace, "path">)[] {
  const waiting = places.filter(
    ({ state, name }) =>
      state === "ready" || (state === "held" && !(name !== undefined && leases.has(leaseOf(name)))),
  );
  return waiting.slice(0, ACCEPTED_MAX).map(({ id, path, state, name }) => ({
    id,
    path,
    due_ms: dueMs.get(path) ?? 0,
    gate: state === "held" ? (name?.token ?? "") : null,
  }));
}

/** @param agents undefined when the settings are not known */
function inboxTasks(
  inbox: string,
  ids: readonly string[],
  agents: readonly AgentSettings[] | undefined,
): InboxTask[] {
  return ids.map((id) => {
    const path = join(inbox, `${id}.json`);
    const task = readWaiting({ id, state: "waiting", path, name: undefined }, agents);
    return {
      id,
      due_ms: task.notBeforeMs ?? null,
      has_dependencies: task.dependencies !== undefined,
      lane: readLane(laneOf(task)),
    };
  });
}

function factsOf({ sessions }: StateTree, { id, path }: TaskPlace): TaskFacts {
  const task = readTask(path);
  const agents = task?.["agents"];
  const agent =
    chosenAgent(sessions, id) ?? task?.["agent"] ?? (Array.isArray(agents) && agents[0]);
  return {
    title: describeTask(task),
    agent: typeof agent === "string" ? agent : null,
    attempts_max: maxAttemptsIn(task),
  };
}
