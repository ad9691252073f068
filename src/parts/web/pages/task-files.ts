/** Lists the files of a task, and shows a part of one: logs, the conversation of its agent, its record, its evidence. Only reads. */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { Conversation } from "../../../agents/stream/conversation.ts";
import type { ReadLine } from "../../../agents/stream/facts.ts";
import { parseReadTimes, timesFileOf } from "../../../agents/stream/read-times.ts";
import { type AgentLines, entriesOf } from "../../../cli/text/agent-lines.ts";
import { entryLines } from "../../../cli/text/conversation-lines.ts";
import { bytesText } from "../../../core/bytes-text.ts";
import { parseRun } from "../../../core/names.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { readEnd, statOf } from "../../../host/regular-file.ts";
import { logLine } from "../../../text/log-line.ts";
import { findInLog, type LogPage, placeAfter, readLogPage } from "../../../view/log-page.ts";
import { namesIn, readJsonObject } from "../../../view/scan.ts";
import type { TaskPage } from "../../../view/task-page.ts";
import { isProgressLine } from "../../../view/task-progress.ts";
import { colouredLine, colouredText, isMarked, markedLine } from "../coloured.ts";
import {
  type Block,
  type Fold,
  type Line,
  log,
  type PlainLine,
  pathWith,
  say,
  shown,
  taskPath,
} from "../page.ts";
import { withoutSecrets } from "../without-secrets.ts";

const LINES = 200;
/** So many lines follow the one that was found. */
const LINES_AFTER = 20;
/** So many lines of the result of a tool are shown. */
const RESULT_LINES = 100;
const EVIDENCE_MAX = 30;
const JSON_BYTES_MAX = 1024 * 1024;
const JSON_LINES_MAX = 2000;
/** How much of the file of times is read (bytes). That is about half a day. */
const TIMES_BYTES = 1024 * 1024;
/** The file with the stream of an agent, which is shown as a conversation. */
const STREAM = "events.jsonl";
/** The files that are shown together. */
const OUTPUT = ["stdout.log", "stderr.log"];

interface TaskFile {
  /** Its name in the address of the page. */
  key: string;
  name: string;
  path: string;
  bytes: number;
}

/** What of a file is asked for. */
interface Wanted {
  /** Where the shown part ends (bytes); undefined for the end of the file. */
  to: number | undefined;
  /** A text: then the shown part ends soon after its last place before `to`. */
  find: string;
  agents: AgentLines;
  /** The page of a part of a file. */
  at: (key: string, end?: number) => string;
}

/** @param query `file`: a key from the list. `run`, `to`, `find`: see `Wanted` */
export function fileBlocks(
  tree: StateTree,
  task: TaskPage,
  query: URLSearchParams,
  agents: AgentLines,
): Block[] {
  const files = filesOf(tree, task);
  const output = outputOf(files, task.state);
  const isOutput = (key: string): boolean => OUTPUT.includes(key);
  const tabs = files.filter(({ key }) => !isOutput(key));
  if (output.length > 0) {
    const bytes = output.reduce((sum, one) => sum + one.bytes, 0);
    tabs.unshift({ key: "output", name: "output", path: "", bytes });
  }
  const key = query.get("file") ?? "";
  const file = isOutput(key)
    ? files.find((one) => one.key === key)
    : tabs.find((one) => one.key === key);
  const open = file ?? tabs.find((one) => one.key === STREAM) ?? tabs[0];
  if (open === undefined) return [];
  const [run, find] = [query.get("run") ?? undefined, query.get("find") ?? ""];
  const at = (name: string, end?: number): string =>
    pathWith(taskPath(task.id), { run, file: name, find, to: end?.toString() });
  const to = /^\d{1,15}$/.test(query.get("to") ?? "") ? Number(query.get("to")) : undefined;
  const links = tabs.map(({ key: name, name: text, bytes }) => ({
    text: `${shown(text)} ${bytesText(bytes)}`,
    to: at(name),
    is_here: name === open.key || (name === "output" && isOutput(open.key)),
  }));
  const shownFiles = open.key === "output" ? output : [open];
  const { attempt = 1 } = parseRun(basename(task.run_dir ?? "")) ?? {};
  const path = pathWith(taskPath(task.id), { run, file: open.key });
  return [
    ...(attempt > 1 || run !== undefined
      ? [{ kind: "heading" as const, text: `Run ${attempt}` }]
      : []),
    { kind: "links", label: "files", links },
    { kind: "find", label: "find in it", to: path, name: "find", value: find },
    ...(shownFiles.length > 1 ? [say(ORDER)] : []),
    ...shownFiles.flatMap((one) => contentOf(one, { to, find, agents, at })),
  ];
}

const ORDER =
  "Two files: which line of one came before a line of the other is not known. After the end of a run, the one that was written last comes last.";

/** What the program wrote. While it runs, the two keep their places. */
function outputOf(files: readonly TaskFile[], state: TaskPage["state"]): TaskFile[] {
  const output = files.filter(({ key, bytes }) => OUTPUT.includes(key) && bytes > 0);
  const writtenMs = ({ path }: TaskFile): number => statOf(path)?.mtimeMs ?? 0;
  return state === "running" ? output : output.sort((a, b) => writtenMs(a) - writtenMs(b));
}

/** The end of the conversation with the agent of a task; no block when it has none. */
export function conversationBlock(tree: StateTree, task: TaskPage, agents: AgentLines): Block[] {
  const file = filesOf(tree, task).find(({ key }) => key === STREAM);
  const at = (key: string, end?: number): string =>
    pathWith(taskPath(task.id), { file: key, to: end?.toString() });
  return file === undefined ? [] : contentOf(file, { to: undefined, find: "", agents, at });
}

function filesOf(tree: StateTree, { id, state, path, run_dir: dir, files }: TaskPage): TaskFile[] {
  const isOfRun = dir !== null && isInside(tree.runs, dir);
  const ofRun = !isOfRun
    ? []
    : files.map((file): TaskFile => {
        const name = file.name === STREAM ? "conversation" : file.name;
        return { ...file, key: file.name, name, path: join(dir, file.name) };
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

function contentOf(file: TaskFile, wanted: Wanted): Block[] {
  const { key, path } = file;
  const name = shown(file.name);
  const { find, at } = wanted;
  const object =
    key.endsWith(".json") || key === "file" ? readJsonObject(path, JSON_BYTES_MAX) : undefined;
  if (object !== undefined) {
    const lines = JSON.stringify(withoutSecrets(object), undefined, 2).split("\n");
    const title = `${name}, without the values of its variables`;
    const first = lines.slice(0, JSON_LINES_MAX).map((one) => markedLine(colouredLine(one), find));
    return log(title, first);
  }
  const found = find === "" ? wanted.to : placeOf(file, wanted);
  const page = readLogPage(path, found, LINES);
  const begin = page.starts[0] ?? 0;
  const isEnd = page.to >= page.size;
  const where = isEnd ? "its end" : `up to byte ${page.to} of ${page.size}`;
  const isMissing = find !== "" && found === undefined;
  const block: Block = {
    kind: "log",
    title: isMissing ? `${name}: not found in the last 8 MiB` : `${name}, ${where}`,
    lines: linesOf(file, page, wanted),
    older:
      begin > 0
        ? { text: find === "" ? "lines before these" : "find before these", to: at(key, begin) }
        : null,
    end: wanted.to === undefined || isEnd ? null : { text: "to its end", to: at(key) },
  };
  return [block];
}

/** Where the part with the text ends; undefined when the text is not there. */
function placeOf(file: TaskFile, { to = file.bytes, find, agents }: Wanted): number | undefined {
  const { path, bytes } = file;
  const read = readerOf(file, agents);
  const isMeant = (raw: string): boolean =>
    read === undefined
      ? isOutputLine(file, raw) && logLine(raw, false).includes(find)
      : entriesOf(new Conversation(RESULT_LINES), read, raw)
          .flatMap((entry) => entryLines(entry, undefined, { width: undefined, colour: false }))
          .some((line) => line.includes(find));
  const hit = findInLog(path, isMeant, Math.min(to, bytes), "back");
  return hit === undefined ? undefined : (placeAfter(path, hit, LINES_AFTER) ?? bytes);
}

/** Undefined for a file that is shown as it is. */
function readerOf({ key, path }: TaskFile, agents: AgentLines): ReadLine | undefined {
  return key === STREAM ? agents.readerOf(dirname(path)) : undefined;
}

/** Reports of progress are no output of the program. */
function isOutputLine({ key }: TaskFile, raw: string): boolean {
  return key !== "stdout.log" || !isProgressLine(raw);
}

function linesOf(file: TaskFile, page: LogPage, { agents, find }: Wanted): Line[] {
  const mark = (line: PlainLine): PlainLine => markedLine(line, find);
  const read = readerOf(file, agents);
  if (read !== undefined) return conversationOf(read, file.path, page, mark);
  return page.lines
    .filter((line) => isOutputLine(file, line))
    .map((line) => mark(colouredLine(line)));
}

/** A call of a tool is a line that opens, with its result below it. One that failed, or in which a text was found, is open. */
function conversationOf(
  read: ReadLine,
  path: string,
  { lines, starts, to }: LogPage,
  mark: (line: PlainLine) => PlainLine,
): Line[] {
  const times = parseReadTimes(readEnd(timesFileOf(path), TIMES_BYTES));
  const talk = new Conversation(RESULT_LINES);
  const shownLines: Line[] = [];
  for (const [at, raw] of lines.entries())
    for (const entry of entriesOf(talk, read, raw)) {
      const atMs = times.at(starts[at + 1] ?? to);
      const texts = entryLines(entry, atMs, { width: undefined, colour: true });
      const own = texts.map((text) => mark(colouredText(text)));
      const [head = "", ...more] = own;
      const before = shownLines.at(-1);
      const isBad = entry.kind === "failure";
      if (entry.kind === "call") shownLines.push({ head, lines: [], is_open: false });
      else if (!isBad && entry.kind !== "result") shownLines.push(...own);
      else if (isFold(before) && before.lines.length === 0)
        shownLines.splice(-1, 1, { ...before, lines: own, is_open: isBad || own.some(isMarked) });
      else shownLines.push({ head, lines: more, is_open: isBad || more.some(isMarked) });
    }
  return shownLines.map((line) => (isFold(line) && line.lines.length === 0 ? line.head : line));
}

function isFold(line: Line | undefined): line is Fold {
  return typeof line === "object" && "head" in line;
}

/** A run could have replaced its folder by a link that leads elsewhere. */
function isInside(folder: string, path: string): boolean {
  try {
    return fs.realpathSync(path).startsWith(`${fs.realpathSync(folder)}/`);
  } catch {
    return false;
  }
}
