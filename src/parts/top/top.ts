/**
 * The loop of `top`: reads the files, draws, and takes keys. It slows down before it takes more than its share of a core. Each look
 * reads what it shows from files again. It keeps only what the person has chosen on the screen.
 */
import { join } from "node:path";
import type { Context } from "../../cli/shell/command-spec.ts";
import { existsTree } from "../../cli/shell/options.ts";
import { AgentLines } from "../../cli/text/agent-lines.ts";
import { LiveScreen } from "../../cli/text/live-screen.ts";
import { TerminalWriter } from "../../cli/text/terminal-writer.ts";
import { messageOf } from "../../core/errors.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { lookForTask } from "../../view/find-task.ts";
import type { Overview } from "../../view/overview.ts";
import { OverviewReader } from "../../view/overview-reader.ts";
import { Actions } from "./actions.ts";
import type { Look } from "./cells.ts";
import type { Frame, LogShown, PastShown, TaskShown } from "./frame.ts";
import { pastColumns } from "./head.ts";
import { Keyboard } from "./keyboard.ts";
import type { Key } from "./keys.ts";
import { layout, wantedTask } from "./layout.ts";
import { scrolled, searched } from "./log-moves.ts";
import { Past } from "./past.ts";
import { press, taskPage } from "./press.ts";
import { PANES, type Row, rowsOf } from "./rows.ts";
import { type Deed, pageOf, START, type TaskPageState, type TopState } from "./state.ts";
import { TaskLoader } from "./task-loader.ts";

/** The share of a core that the looks may take. A longer look is followed by a longer pause. */
const SHARE = 0.02;
const PAUSE_MS_MAX = 4000;
/** The weight of the last look in the mean of all looks. */
const LAST_COUNTS = 0.2;
/** In the mean a look counts at most twice the mean and this much more (ms). */
const ONCE_MS = 5;
/** How many more lines of a log are read than the screen has rows, because some lines draw nothing. */
const LOG_ROWS_MORE = 50;

export interface TopOptions {
  look: Look;
  isReadOnly: boolean;
  /** The least time between two looks (ms). */
  intervalMs: number;
  settings: Settings;
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

export class Top {
  private readonly reader: OverviewReader;
  private readonly past: Past;
  private readonly actions: Actions;
  private readonly loader: TaskLoader;
  private readonly agents = new AgentLines();
  private readonly terminal = new TerminalWriter();
  private readonly screen: LiveScreen;
  private state: TopState = START;
  private overview: Overview | undefined;
  private pastShown: PastShown | undefined;
  private trouble: string | undefined;
  private task: TaskShown | undefined;
  private log: LogShown = { rows: 0, firstStart: 0 };
  private timer: NodeJS.Timeout | undefined;
  /** CPU time of the process at the last look, and the mean CPU time of a look with its pause (ms). */
  private usedMs = cpuMs();
  private meanCostMs = 0;
  private end: () => void = () => {};

  constructor(
    ctx: Context,
    private readonly tree: StateTree,
    private readonly options: TopOptions,
  ) {
    const { settings, look } = options;
    this.reader = new OverviewReader(tree, {
      settings,
      lastLineOf: (runDir) => this.agents.lastLineOf(runDir),
    });
    this.past = new Past(tree);
    this.actions = new Actions(ctx, tree, settings.workers);
    this.loader = new TaskLoader(tree, settings.agents, this.agents, look.colour);
    const keyboard = new Keyboard(
      process.stdin,
      (text) => this.terminal.write(text),
      (key) => this.onKey(key),
      () => this.end(),
    );
    this.screen = new LiveScreen(this.terminal, keyboard);
  }

  /** Resolves when the person ends `top`, or when the terminal is closed. */
  async run(): Promise<void> {
    const ended = new Promise<void>((resolve) => {
      this.end = resolve;
    });
    this.screen.open();
    try {
      this.look();
      await ended;
    } finally {
      clearTimeout(this.timer);
      this.end = () => {};
      this.screen.close();
      this.reader.close();
      this.past.close();
    }
  }

  private look(): void {
    this.readOverview();
    this.draw();
    const usedMs = cpuMs();
    // A cost that comes once, such as loading a file of the program, must not make the looks rare.
    const costMs = Math.min(usedMs - this.usedMs, 2 * this.meanCostMs + ONCE_MS);
    this.meanCostMs += LAST_COUNTS * (costMs - this.meanCostMs);
    this.usedMs = usedMs;
    const pauseMs = Math.min(
      PAUSE_MS_MAX,
      Math.max(this.options.intervalMs, this.meanCostMs / SHARE),
    );
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), pauseMs);
  }

  private readOverview(): void {
    try {
      if (!existsTree(this.tree)) throw new Error(`${this.tree.dir} is gone`);
      this.overview = this.reader.next(Date.now());
      const runs = this.overview.running.flatMap(({ run }) => run ?? []);
      this.agents.keepOnly(new Set(runs.map((run) => join(this.tree.runs, run))));
      this.pastShown = this.past.look(pastColumns(this.terminal), Date.now());
      this.trouble = undefined;
    } catch (error) {
      this.trouble = `the tree cannot be read: ${messageOf(error)}`;
    }
  }

  private panes(): Row[][] {
    return this.overview === undefined
      ? PANES.map(() => [])
      : rowsOf(this.overview, this.state.filter, this.pastShown?.ended);
  }

  private draw(): void {
    const panes = this.panes();
    this.loadTask(panes);
    const { look, isReadOnly } = this.options;
    const frame: Frame = {
      overview: this.overview,
      trouble: this.trouble,
      past: this.pastShown,
      panes,
      state: this.state,
      task: this.task,
      step: this.actions.look(this.overview?.health.is_attended === true),
      look,
      isReadOnly,
      nowMs: Date.now(),
    };
    this.screen.show((columns, rows) => {
      const { lines, log } = layout(frame, { columns, rows });
      this.log = log;
      return lines;
    });
  }

  private loadTask(panes: readonly Row[][]): void {
    const { columns, rows } = this.terminal;
    const id = wantedTask(this.state, panes, { columns });
    if (id === undefined) {
      this.task = undefined;
      return;
    }
    const page = pageOf(this.state);
    const own = page?.kind === "task" ? page : taskPage(id);
    try {
      const wanted = { stream: own.stream, to: own.to, rows: rows + LOG_ROWS_MORE };
      this.task = this.loader.load(id, wanted);
    } catch (error) {
      this.trouble = `the files of this task cannot be read: ${messageOf(error)}`;
    }
  }

  private onKey(key: Key): void {
    const { state, deed } = press(this.state, key, {
      overview: this.overview,
      panes: this.panes(),
      pageRows: Math.max(1, Math.floor(this.terminal.rows / 4)),
      nowMs: performance.now(),
      isReadOnly: this.options.isReadOnly,
      isStderr: this.task?.log?.name === "stderr.log",
    });
    this.state = state;
    if (deed === undefined) this.draw();
    else this.perform(deed);
  }

  private perform(deed: Deed): void {
    switch (deed.does) {
      case "quit":
        this.end();
        return;
      case "interrupt":
        // As the terminal does, this signals all processes of the command, also those that started this one.
        process.kill(0, "SIGINT");
        return;
      case "suspend":
        process.kill(0, "SIGTSTP");
        return;
      case "redraw":
        this.screen.redraw();
        return;
      case "scroll":
        this.moveLog((page) => scrolled(page, deed, this.task?.log, this.log));
        return;
      case "search":
        this.moveLog((page) => searched(page, deed, this.task?.log));
        return;
      case "find":
        this.find(deed.id);
        return;
      default:
        void this.actions.perform(deed, this.overview).then(() => this.draw());
        this.draw();
    }
  }

  /** Goes to a pane in which the filter leaves rows. If none has any but that of ended tasks, it opens the task with this id. */
  private find(id: string): void {
    const panes = this.panes();
    const pane = panes.findIndex((rows) => rows.length > 0);
    const isEnded = pane === -1 || PANES[pane] === "ended";
    if ((panes[this.state.pane]?.length ?? 0) === 0 && pane !== -1)
      this.state = { ...this.state, pane };
    if (isEnded && lookForTask(this.tree, id) !== undefined)
      this.state = { ...this.state, filter: "", pages: [taskPage(id)] };
    this.draw();
  }

  private moveLog(move: (page: TaskPageState) => TaskPageState | string): void {
    const page = pageOf(this.state);
    if (page?.kind !== "task") return;
    try {
      const moved = move(page);
      this.state =
        typeof moved === "string"
          ? { ...this.state, note: moved }
          : { ...this.state, pages: [...this.state.pages.slice(0, -1), moved] };
    } catch (error) {
      this.state = { ...this.state, note: `the log cannot be read: ${messageOf(error)}` };
    }
    this.draw();
  }
}
