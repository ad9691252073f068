/** Lists the files of a task, and shows a part of one: logs, the conversation of its agent, its record, its evidence. Only reads. */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import type { ReadLine } from "../../../agents/stream/facts.ts";
import { parseReadTimes, timesFileOf } from "../../../agents/stream/read-times.ts";
import { type AgentLines, conversationLines } from "../../../cli/text/agent-lines.ts";
import { bytesText } from "../../../core/bytes-text.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { readEnd } from "../../../host/regular-file.ts";
import { type LogPage, readLogPage } from "../../../view/log-page.ts";
import { namesIn, readJsonObject } from "../../../view/scan.ts";
import type { TaskPage } from "../../../view/task-page.ts";
import { isProgressLine } from "../../../view/task-progress.ts";
import { colouredLine, colouredText } from "../coloured.ts";
import { type Block, type Line, pathWith, shown, taskPath } from "../page.ts";
import { withoutSecrets } from "../without-secrets.ts";

const LINES = 200;
const EVIDENCE_MAX = 30;
const JSON_BYTES_MAX = 1024 * 1024;
const JSON_LINES_MAX = 2000;
/** How much of the file of times is read (bytes). That is about half a day. */
const TIMES_BYTES = 1024 * 1024;
/** The file with the stream of an agent, which is shown as a conversation. */
const STREAM = "events.jsonl";

interface TaskFile {
  /** Its name in the address of the page. */
  key: string;
  name: string;
  path: string;
  bytes: number;
}

/** @param query `file`: a key from the list. `to`: where the shown part ends (bytes); left out for the end of the file */
export function fileBlocks(
  tree: StateTree,
  task: TaskPage,
  query: URLSearchParams,
  agents: AgentLines,
): Block[] {
  const files = filesOf(tree, task);
  const asked = files.find(({ key }) => key === query.get("file"));
  const file = asked ?? firstOf(files);
  if (file === undefined) return [];
  const at = (key: string, end?: number): string =>
    pathWith(taskPath(task.id), { file: key, to: end === undefined ? undefined : String(end) });
  const links = files.map(({ key, name, bytes }) => ({
    text: `${shown(name)} ${bytesText(bytes)}`,
    to: at(key),
    is_here: key === file.key,
  }));
  return [{ kind: "links", label: "files", links }, contentOf(file, query, agents, at)];
}

/** The end of the conversation with the agent of a task; undefined when it has none. */
export function conversationBlock(
  tree: StateTree,
  task: TaskPage,
  agents: AgentLines,
): Block | undefined {
  const file = filesOf(tree, task).find(({ key }) => key === STREAM);
  const at = (key: string, end?: number): string =>
    pathWith(taskPath(task.id), { file: key, to: end === undefined ? undefined : String(end) });
  return file && contentOf(file, new URLSearchParams(), agents, at);
}

/** The file that people look for first. */
function firstOf(files: readonly TaskFile[]): TaskFile | undefined {
  return (
    files.find(({ key }) => key === STREAM) ??
    files.find(({ key, bytes }) => key.endsWith(".log") && bytes > 0) ??
    files.find(({ key }) => key !== "file") ??
    files[0]
  );
}

function filesOf(tree: StateTree, { id, state, path, run_dir: dir, files }: TaskPage): TaskFile[] {
  const ofRun =
    dir === null || !isInside(tree.runs, dir)
      ? []
      : files.map(({ name, bytes }): TaskFile => {
          const title = name === STREAM ? "conversation" : name;
          return { key: name, name: title, path: join(dir, name), bytes };
        });
  const own = fs.lstatSync(path, { throwIfNoEntry: false });
  const isRecord = state === "done" || state === "failed";
  const name = isRecord ? basename(path) : "task";
  const file = { key: "file", name, path, bytes: own?.size ?? 0 };
  return [...ofRun, ...evidenceOf(tree, id), ...(own?.isFile() === true ? [file] : [])];
}

function evidenceOf(tree: StateTree, id: string): TaskFile[] {
  const dir = join(tree.evidence, id);
  if (!isInside(tree.evidence, dir)) return [];
  const found: TaskFile[] = [];
  for (const name of namesIn(dir)) {
    const path = join(dir, name);
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    if (stats?.isFile() === true)
      found.push({ key: `evidence/${name}`, name: `artifact: ${name}`, path, bytes: stats.size });
    if (found.length >= EVIDENCE_MAX) break;
  }
  return found.sort((a, b) => (a.key < b.key ? -1 : 1));
}

function contentOf(
  { key, name, path }: TaskFile,
  query: URLSearchParams,
  agents: AgentLines,
  at: (key: string, end?: number) => string,
): Block {
  const object =
    key.endsWith(".json") || key === "file" ? readJsonObject(path, JSON_BYTES_MAX) : undefined;
  if (object !== undefined) {
    const lines = JSON.stringify(withoutSecrets(object), undefined, 2).split("\n");
    const title = `${shown(name)}, without the values of its variables`;
    const first = lines.slice(0, JSON_LINES_MAX).map(colouredLine);
    return { kind: "log", title, lines: first, older: null, end: null };
  }
  const to = /^\d{1,15}$/.test(query.get("to") ?? "") ? Number(query.get("to")) : undefined;
  const page = readLogPage(path, to, LINES);
  const begin = page.starts[0] ?? 0;
  const isEnd = page.to >= page.size;
  return {
    kind: "log",
    title: isEnd
      ? `${shown(name)}, its end`
      : `${shown(name)}, up to byte ${page.to} of ${page.size}`,
    lines: linesOf(key, path, page, agents),
    older: begin > 0 ? { text: "lines before these", to: at(key, begin) } : null,
    end: to === undefined || isEnd ? null : { text: "to its end", to: at(key) },
  };
}

function linesOf(key: string, path: string, page: LogPage, agents: AgentLines): Line[] {
  const { lines } = page;
  const read = key === STREAM ? agents.readerOf(dirname(path)) : undefined;
  if (read !== undefined) return conversationOf(read, path, page);
  // Reports of progress are no output of the program.
  const isPlain = key === "stdout.log" ? (line: string) => !isProgressLine(line) : () => true;
  return lines.filter(isPlain).map(colouredLine);
}

function conversationOf(read: ReadLine, path: string, { lines, starts, to }: LogPage): Line[] {
  const look = { width: Number.POSITIVE_INFINITY, colour: true };
  const times = parseReadTimes(readEnd(timesFileOf(path), TIMES_BYTES));
  return lines.flatMap((line, at) =>
    conversationLines(read, line, look, times.at(starts[at + 1] ?? to)).map(colouredText),
  );
}

/** A run could have replaced its folder by a link that leads elsewhere. */
function isInside(folder: string, path: string): boolean {
  try {
    return fs.realpathSync(path).startsWith(`${fs.realpathSync(folder)}/`);
  } catch {
    return false;
  }
}
