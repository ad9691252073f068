/** Makes the page of a path. It reads a bounded amount, even if many browsers ask. */
import fs from "node:fs";
import os from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { openIdReaders } from "../../app/id-readers.ts";
import { describeError } from "../../cli/shell/error-text.ts";
import { existsTree } from "../../cli/shell/options.ts";
import { AgentLines } from "../../cli/text/agent-lines.ts";
import { bytesText } from "../../core/bytes-text.ts";
import { MailchuteError, messageOf, systemCode } from "../../core/errors.ts";
import type { RoadmapNode } from "../../core/roadmap.ts";
import { type AgentSettings, isCoding, type Settings } from "../../core/settings.ts";
import { landingsDir, type StateTree } from "../../core/state-tree.ts";
import { listDir } from "../../host/list-dir.ts";
import type { LoadedPlugin } from "../../plugin.ts";
import { QuestionStore } from "../../questions/question-store.ts";
import { Dependents } from "../../view/dependents.ts";
import { Kept, stampOf } from "../../view/kept.ts";
import { listWork, type Work } from "../../view/landing.ts";
import { healthOf } from "../../view/make-overview.ts";
import type { Overview } from "../../view/overview.ts";
import { OverviewReader } from "../../view/overview-reader.ts";
import { SeriesReader, SPAN_NAMES } from "../../view/series.ts";
import { askingCount, isAttended, nodeQuestions, readSupervisor } from "../../view/supervisor.ts";
import { TaskPast } from "../../view/task-past.ts";
import { type Why, WhyOpen } from "../../view/why-open.ts";
import { type Link, type Page, type SentPage, say, shown, withoutActs } from "./page.ts";
import { agentsPage } from "./pages/agents-page.ts";
import { boardPage } from "./pages/board-page.ts";
import { chartBlocks } from "./pages/charts.ts";
import { costsPage } from "./pages/costs-page.ts";
import { machinePage } from "./pages/machine-page.ts";
import { overviewPage } from "./pages/overview-page.ts";
import { PlanPage, readNodes } from "./pages/plan-page.ts";
import { pluginPage } from "./pages/plugin-page.ts";
import { questionsPage } from "./pages/questions-page.ts";
import { reviewPage } from "./pages/review-page.ts";
import { schedulesPage } from "./pages/schedules-page.ts";
import { type TaskReaders, taskPage } from "./pages/task-page.ts";
import { tasksPage } from "./pages/tasks-page.ts";
import { TimelinePage } from "./pages/timeline-page.ts";
import { WorkDiffs } from "./pages/work-diff.ts";
import { readReview, workPage } from "./pages/work-page.ts";
import type { VerbReader } from "./verb-reader.ts";

/** The least time between two looks at the pool (ms), and the share of a core that the looks may take. */
const LOOK_MS = 50;
const SHARE = 0.05;
/** A browser asks again after a time between these two (ms), later for a page that took longer. */
const AGAIN_MS = 1000;
const AGAIN_MS_MAX = 30_000;
const WHY_MS = 2000;
const WORK_AGAIN_MS = 2000;

/** The pages that a link of each page leads to, in the order of these links. */
const PLACES = {
  overview: "Overview",
  timeline: "Timeline",
  board: "Board",
  tasks: "Tasks",
  plan: "Plan",
  agents: "Agents",
  questions: "Questions",
  review: "Review",
  schedules: "Schedules",
  costs: "Costs",
  machine: "Machine",
} as const;
type Place = keyof typeof PLACES;
const PLACE_NAMES = Object.keys(PLACES) as Place[];
const pathOf = (place: Place): string => (place === "overview" ? "/" : `/${place}`);

export type Route = { page: Place } | { page: "task" | "work" | "plugin"; id: string };

export interface PagesOptions {
  /** True for pages without buttons. */
  isReadOnly: boolean;
  verbs: VerbReader;
  plugins: readonly LoadedPlugin[];
}

const LISTS = { tasks: "task", review: "work", plugins: "plugin" } as const;

/** Undefined for a path that has no page. */
export function routeOf(path: string): Route | undefined {
  const place = PLACE_NAMES.find((one) => path === pathOf(one));
  if (place !== undefined) return { page: place };
  const [, list, name] = /^\/(tasks|review|plugins)\/([^/]+)$/.exec(path) ?? [];
  if (name === undefined) return undefined;
  try {
    return { page: LISTS[list as keyof typeof LISTS], id: decodeURIComponent(name) };
  } catch {
    return undefined;
  }
}

export class Pages {
  private readonly reader: OverviewReader;
  private readonly series: SeriesReader;
  private readonly timeline: TimelinePage;
  /** The coding agents of the settings. */
  private readonly agents: readonly AgentSettings[];
  private readonly questions: QuestionStore;
  private readonly plan: PlanPage;
  private readonly why: WhyOpen;
  private readonly ofTask: TaskReaders;
  private readonly diffs = new WorkDiffs();
  private readonly work = new Kept<Work[]>();
  private readonly named: SentPage["tree"];
  private overview: { at: Overview; untilMs: number } | undefined;
  private whyUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly tree: StateTree,
    private readonly settings: Settings,
    private readonly options: PagesOptions,
  ) {
    this.agents = settings.agents.filter(isCoding);
    this.questions = new QuestionStore(tree.dir);
    this.named = nameOf(tree.dir);
    this.plan = new PlanPage(tree, options.verbs);
    const lines = new AgentLines();
    const lastLineOf = (runDir: string): string | null => lines.lastLineOf(runDir);
    this.reader = new OverviewReader(tree, { settings, lastLineOf });
    this.series = new SeriesReader(tree);
    this.timeline = new TimelinePage(tree, settings);
    const { agents, prices } = settings;
    const explain = (id: string): Promise<Why | undefined> => this.explain(id);
    this.ofTask = {
      explain,
      past: new TaskPast(tree, prices),
      agents: lines,
      dependents: new Dependents(tree),
      // A broken plan has a page that says so.
      nodes: () => this.nodes().catch(() => []),
    };
    this.why = new WhyOpen(tree, agents, Date.now(), openIdReaders(tree, agents));
  }

  /**
   * Makes a page. It says what could not be read.
   * @param query the query of its address
   * @param isFresh true to ignore the last look. Only for a caller that bounds the cost itself
   */
  async find(route: Route, query: URLSearchParams, isFresh = false): Promise<SentPage> {
    const beganMs = performance.now();
    if (isFresh) this.overview = undefined;
    const page = await this.make(route, query);
    const tookMs = performance.now() - beganMs;
    const fault = explainUnwritable(this.tree.dir);
    const blocks = fault === undefined ? page.blocks : [say(fault, true), ...page.blocks];
    return {
      ...page,
      tree: this.named,
      nav: this.nav(),
      health: page.health ?? this.health(),
      blocks: this.options.isReadOnly ? withoutActs(blocks) : blocks,
      again_ms: Math.round(Math.min(AGAIN_MS_MAX, Math.max(AGAIN_MS, tookMs / SHARE))),
    };
  }

  /** A picture that a work changes, for its page. @throws when there is no such work */
  async picture(query: URLSearchParams): Promise<{ type: string; bytes: Buffer } | undefined> {
    const [task, id] = [query.get("task") ?? "", query.get("id") ?? ""];
    return this.diffs.picture(await readReview(this.tree, this.options.verbs, task), id);
  }

  private async make(route: Route, query: URLSearchParams): Promise<Page> {
    try {
      if (!existsTree(this.tree)) throw new Error(`${this.tree.dir} is gone`);
      return await this.makeOf(route, query);
    } catch (error) {
      // The error of a command says itself what is wrong.
      if (error instanceof MailchuteError && error.code !== "ErrIo")
        return notHere(messageOf(error), error.hint);
      const text = `the tree cannot be read: ${shown(messageOf(error))}`;
      return {
        title: "Unreadable",
        command: "mailchute doctor",
        health: { state: "unreadable", text },
        blocks: [say(text, true)],
      };
    }
  }

  private async makeOf(route: Route, query: URLSearchParams): Promise<Page> {
    const { tree, plan, agents } = this;
    const { verbs } = this.options;
    switch (route.page) {
      case "overview":
        return this.overviewOf(query);
      case "timeline":
        return this.timeline.make(query, Date.now());
      case "board":
        return await boardPage(tree, this.look(), this.listWork());
      case "tasks":
        return await tasksPage(tree, query, this.look().counts);
      case "task":
        return await taskPage(tree, route.id, query, this.ofTask);
      case "review":
        return reviewPage(tree);
      case "plugin":
        return await pluginPage(this.options.plugins, route.id, query, tree.dir);
      case "questions": {
        const nodes = await this.nodes();
        const waiting = nodes.filter(({ status }) => status === "needs_human");
        const asked = nodeQuestions(readSupervisor(tree, Date.now()));
        return questionsPage(this.questions.open(Date.now()), waiting, asked);
      }
      case "plan":
        return this.hasPlan() ? await plan.make(query) : notHere("this tree has no plan");
      case "agents":
        return await agentsPage({
          tree,
          agents,
          overview: this.look(),
          verbs,
          thread: query.get("thread"),
        });
      case "work":
        return await workPage(
          { tree, verbs, agents: this.ofTask.agents, diffs: this.diffs },
          route.id,
          query.get("file") ?? undefined,
        );
      case "schedules":
        return await schedulesPage(tree, verbs, query);
      case "costs":
        return await costsPage(verbs, query, this.settings.budgets);
      default:
        return await machinePage(verbs);
    }
  }

  /** Links to the pages that this tree uses. */
  private nav(): Link[] {
    const plan = this.hasPlan();
    const agents = this.agents.length > 0;
    const open = this.questions.open(Date.now()).length + (plan ? this.nodesThatAsk() : 0);
    const isThere: Partial<Record<Place, boolean>> = {
      plan,
      agents,
      questions: plan || agents || open > 0,
      review: fs.existsSync(landingsDir(this.tree.dir)),
      schedules: this.hasSchedules(),
      costs: agents,
    };
    const links = PLACE_NAMES.filter((place) => isThere[place] ?? true).map((place) => {
      const count = place === "questions" && open > 0 ? ` (${open})` : "";
      return { text: `${PLACES[place]}${count}`, to: pathOf(place) };
    });
    const ofPlugins = this.options.plugins.flatMap(({ plugin }) =>
      Object.entries(plugin.pages ?? {}).map(([name, { title }]) => {
        return { text: shown(title), to: `/plugins/${name}` };
      }),
    );
    return [...links, ...ofPlugins];
  }

  /** The number that the supervisor knows; 0 without one, because the plan may have changed since. */
  private nodesThatAsk(): number {
    const supervisor = readSupervisor(this.tree, Date.now());
    return isAttended(supervisor) ? askingCount(supervisor) : 0;
  }

  private async nodes(): Promise<RoadmapNode[]> {
    return this.hasPlan() ? readNodes(this.tree, this.options.verbs) : [];
  }

  private hasPlan(): boolean {
    return fs.existsSync(this.tree.roadmap);
  }

  private hasSchedules(): boolean {
    const isSchedule = (name: string): boolean => name.endsWith(".yaml");
    if (Object.keys(this.settings.schedules).length > 0) return true;
    return listDir(join(this.tree.dir, "schedules")).some(isSchedule);
  }

  private health(): NonNullable<Page["health"]> {
    const nowMs = Date.now();
    const { state, text } = healthOf(readSupervisor(this.tree, nowMs), nowMs);
    return { state, text: shown(text) };
  }

  close(): void {
    this.reader.close();
    this.series.close();
    this.timeline.close();
  }

  /** @param query its `over` is the span of time that the charts show */
  private overviewOf(query: URLSearchParams): Page {
    const overview = this.look();
    const over = SPAN_NAMES.find((one) => one === query.get("over")) ?? "1h";
    const charts = chartBlocks(this.series.look(over, overview.at_ms), over);
    return overviewPage(overview, { charts, disk: diskText(this.tree.dir), work: this.listWork() });
  }

  private listWork(): Work[] {
    const stamp = `${stampOf(landingsDir(this.tree.dir))} ${Math.floor(Date.now() / WORK_AGAIN_MS)}`;
    return this.work.get(stamp, () => listWork(this.tree));
  }

  private look(): Overview {
    const nowMs = performance.now();
    if (this.overview !== undefined && nowMs < this.overview.untilMs) return this.overview.at;
    const at = this.reader.next(Date.now());
    const doneMs = performance.now();
    this.overview = { at, untilMs: doneMs + Math.max(LOOK_MS, (doneMs - nowMs) / SHARE) };
    return at;
  }

  private async explain(id: string) {
    const nowMs = performance.now();
    if (nowMs >= this.whyUntilMs) {
      this.whyUntilMs = nowMs + WHY_MS;
      await this.why.refresh();
    }
    return this.why.explain(id);
  }
}

/** Most trees are called `state`: then the folder around it has the name that people know. */
function nameOf(dir: string): SentPage["tree"] {
  const path = resolve(dir);
  const name = basename(path) === "state" ? basename(dirname(path)) : basename(path);
  return { name: shown(name), path: shown(path), host: shown(os.hostname()) };
}

/** A disk that became read-only stops the pool. Nothing else shows that before a task ends. */
function explainUnwritable(dir: string): string | undefined {
  try {
    fs.accessSync(dir, fs.constants.W_OK);
    return undefined;
  } catch (error) {
    if (systemCode(error) !== "EROFS") return undefined;
    const { hint = "" } = describeError(error);
    return shown(`the disk of ${dir} is read-only: no task can start or end; do: ${hint}`);
  }
}

function notHere(text: string, hint?: string): Page {
  const todo = hint === undefined ? "" : `; do: ${hint}`;
  return {
    title: "Not here",
    command: "mailchute status",
    blocks: [say(shown(`${text}${todo}`), true)],
  };
}

/** "" when the system does not tell it. */
function diskText(dir: string): string {
  try {
    const { bavail, blocks, bsize } = fs.statfsSync(dir);
    return blocks === 0 ? "" : `${bytesText(bavail * bsize)} free of ${bytesText(blocks * bsize)}`;
  } catch {
    return "";
  }
}
