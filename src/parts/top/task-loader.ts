/** Reads the open task: its files, why it has not ended, and the shown part of its log. */
import fs from "node:fs";
import { basename, join } from "node:path";
import { openIdReaders } from "../../app/id-readers.ts";
import { type AgentLines, conversationLines } from "../../cli/text/agent-lines.ts";
import type { AgentSettings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { statOf } from "../../host/regular-file.ts";
import { logLine } from "../../text/log-line.ts";
import { widthOf } from "../../text/render.ts";
import { type LogPage, readLogPage } from "../../view/log-page.ts";
import { readTaskPage, type TaskPage } from "../../view/task-page.ts";
import { isProgressLine } from "../../view/task-progress.ts";
import { WhyOpen } from "../../view/why-open.ts";
import type { TaskShown, ToLines } from "./frame.ts";
import type { Stream } from "./state.ts";

/** How often it finds out why a task has not ended, which may read many files (ms). */
const WHY_AGAIN_MS = 2000;
/** How often the files of the same task are read while the same part of its log is wanted (ms). */
const READ_AGAIN_MS = 450;
const NO_PAGE: LogPage = { lines: [], starts: [], to: 0, size: 0 };

/** The wanted part of a log. */
export interface Wanted {
  stream: Stream;
  /** Where the part ends (bytes); undefined for the end of the log. */
  to: number | undefined;
  /** At most this many lines. */
  rows: number;
}

export class TaskLoader {
  private readonly why: WhyOpen;
  private told: { id: string; atMs: number; why: TaskShown["why"] } | undefined;
  private last: { key: string; atMs: number; task: TaskShown } | undefined;
  private log: { key: string; page: LogPage } = { key: "", page: NO_PAGE };

  /** @param settings of the agents; undefined when they cannot be read */
  constructor(
    private readonly tree: StateTree,
    settings: readonly AgentSettings[] | undefined,
    private readonly agents: AgentLines,
    private readonly colour: boolean,
  ) {
    this.why = new WhyOpen(tree, settings, Date.now(), openIdReaders(tree, settings));
  }

  /** @throws a system error when a file exists and cannot be read */
  load(id: string, wanted: Wanted): TaskShown {
    const key = JSON.stringify([id, wanted]);
    const atMs = performance.now();
    if (this.last?.key === key && atMs - this.last.atMs < READ_AGAIN_MS) return this.last.task;
    const task = this.read(id, wanted);
    this.last = { key, atMs, task };
    return task;
  }

  private read(id: string, wanted: Wanted): TaskShown {
    const page = readTaskPage(this.tree, id);
    const isOpen = page !== undefined && page.state !== "done" && page.state !== "failed";
    if (isOpen) this.askWhy(id);
    const why = isOpen && this.told?.id === id ? this.told.why : undefined;
    return { id, page, why, log: this.readLog(page, wanted) };
  }

  private askWhy(id: string): void {
    const nowMs = performance.now();
    if (this.told?.id === id && nowMs - this.told.atMs < WHY_AGAIN_MS) return;
    const told = { id, atMs: nowMs, why: this.told?.id === id ? this.told.why : undefined };
    this.told = told;
    void this.why.refresh().then(
      () => {
        const why = this.why.explain(id);
        const isNews = why !== undefined && why.text !== "runs";
        told.why = isNews ? { text: why.text, do: why.do } : undefined;
      },
      () => {
        // The reason cannot be read now. A later look asks again.
      },
    );
  }

  private readLog(page: TaskPage | undefined, { stream, to, rows }: Wanted): TaskShown["log"] {
    const runDir = page?.run_dir ?? null;
    if (runDir === null) return undefined;
    const { path, toLines } = this.logOf(runDir, stream);
    const stats = statOf(path);
    const key = `${path} ${stats?.size} ${stats?.mtimeMs} ${to} ${rows}`;
    if (key !== this.log.key) this.log = { key, page: readLogPage(path, to, rows) };
    return { name: basename(path), path, page: this.log.page, toLines };
  }

  private logOf(runDir: string, stream: Stream): { path: string; toLines: ToLines } {
    const events = join(runDir, "events.jsonl");
    const read = stream === "stderr" ? undefined : this.agents.readerOf(runDir);
    if (read !== undefined && fs.existsSync(events)) {
      const toLines: ToLines = (raw, width) =>
        conversationLines(read, raw, { width, colour: this.colour });
      return { path: events, toLines };
    }
    const stdout = join(runDir, "stdout.log");
    const stderr = join(runDir, "stderr.log");
    const isStderr = stream === "stderr" || (stream === "auto" && isOnly(stderr, stdout));
    return { path: isStderr ? stderr : stdout, toLines: plainLines(this.colour) };
  }
}

/** True if only the first of these two files holds anything. */
function isOnly(path: string, other: string): boolean {
  const sizeOf = (file: string): number => statOf(file)?.size ?? 0;
  return sizeOf(path) > 0 && sizeOf(other) === 0;
}

function plainLines(colour: boolean): ToLines {
  return (raw, width) => {
    // The page shows progress reports elsewhere.
    if (isProgressLine(raw)) return [];
    return wrapped(logLine(raw, colour && !Number.isFinite(width)), width);
  };
}

/** Breaks a line at the edge and not between words, so that columns of the output stay. */
function wrapped(line: string, width: number): string[] {
  if (!Number.isFinite(width)) return [line];
  const parts: string[] = [];
  let part = "";
  let room = width;
  for (const c of line) {
    const cells = widthOf(c);
    if (cells > room) {
      parts.push(part);
      part = "";
      room = width;
    }
    part += c;
    room -= cells;
  }
  return [...parts, part];
}
