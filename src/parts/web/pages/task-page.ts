/** The page of one task: where it is, why it has not ended, and a part of one of its files. Reads only. */
import fs from "node:fs";
import { join } from "node:path";
import { bytesText } from "../../../core/bytes-text.ts";
import { isId } from "../../../core/names.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { logLine } from "../../../text/log-line.ts";
import { shellWord } from "../../../text/shell-word.ts";
import { readLogPage } from "../../../view/log-page.ts";
import { readTaskPage, type TaskPage } from "../../../view/task-page.ts";
import type { Why } from "../../../view/why-open.ts";
import { actsOnTask } from "../buttons.ts";
import {
  type Block,
  type Cell,
  linkToTask,
  type Page,
  pathWith,
  say,
  shown,
  taskPath,
  timeOf,
} from "../page.ts";

const LINES = 200;
const TEXT_CHARS_MAX = 4000;
const AFTER_MAX = 20;

/** Says why a task has not ended. */
export type ExplainOpen = (id: string) => Promise<Why | undefined>;

/** @param query `file`: a name from the list of its files; `to`: where the shown part ends (bytes), left out: the end */
export async function taskPage(
  tree: StateTree,
  id: string,
  query: URLSearchParams,
  explain: ExplainOpen,
): Promise<Page> {
  const found = isId(id) ? readTaskPage(tree, id) : undefined;
  const blocks =
    found === undefined
      ? [say(`no tray has a task ${JSON.stringify(shown(id))} at this moment`, true)]
      : await blocksOf(tree, found, query, explain);
  const name = found === undefined ? "" : shellWord(id);
  return {
    title: shown(id),
    command: found === undefined ? "mailchute ls" : `mailchute show ${name}`,
    at_ms: Date.now(),
    health: null,
    blocks,
  };
}

async function blocksOf(
  tree: StateTree,
  task: TaskPage,
  query: URLSearchParams,
  explain: ExplainOpen,
): Promise<Block[]> {
  const isOpen = task.state !== "done" && task.state !== "failed";
  const why = isOpen ? await explain(task.id) : undefined;
  const blocks: Block[] = [];
  if (task.title !== "") blocks.push(say(shown(task.title.slice(0, TEXT_CHARS_MAX))));
  blocks.push({ kind: "facts", facts: factsOf(task) });
  const acts = actsOnTask(task.id, task.state);
  if (acts.length > 0) blocks.push({ kind: "acts", label: "this task", acts });
  if (why !== undefined && why.text !== "runs")
    blocks.push(
      say(
        `it ${shown(why.text)}${why.do === undefined ? "" : `; do: ${shown(why.do)}`}`,
        why.isStuck,
      ),
    );
  if (task.error !== null) {
    const { kind, text, do: todo } = task.error;
    blocks.push(say(`${shown(kind)}: ${shown(text.slice(0, TEXT_CHARS_MAX))}`, true));
    if (todo !== null) blocks.push(say(`do: ${shown(todo)}`));
  }
  if (task.after.length > 0)
    blocks.push({
      kind: "table",
      title: "Runs after",
      columns: ["task"],
      rows: task.after.slice(0, AFTER_MAX).map((one) => [linkToTask(one)]),
      none: "",
    });
  return [...blocks, ...fileBlocks(tree, task, query)];
}

function factsOf(task: TaskPage): [string, Cell][] {
  const { attempt, attempts_max: max, agent, group, priority } = task;
  const isEnded = task.state === "done" || task.state === "failed";
  const facts: [string, Cell | null][] = [
    ["state", task.state],
    ["run", attempt === null ? null : `${attempt}${max === null ? "" : ` of ${max}`}`],
    ["agent", agent],
    ["group", group],
    ["priority", priority === null ? null : String(priority)],
    ["run began", task.began_ms === null ? null : timeOf(task.began_ms)],
    ["ended", isEnded && task.changed_ms !== null ? timeOf(task.changed_ms) : null],
    ["file", task.path],
  ];
  return facts.flatMap(([name, value]): [string, Cell][] => {
    if (value === null) return [];
    return [[name, typeof value === "string" ? shown(value) : value]];
  });
}

/** The list of its files, and the end of one of them. */
function fileBlocks(
  tree: StateTree,
  { id, run_dir: dir, files }: TaskPage,
  query: URLSearchParams,
): Block[] {
  if (dir === null || !isInside(tree.runs, dir)) return [];
  const asked = files.find(({ name }) => name === query.get("file"));
  const file =
    asked ?? files.find(({ name, bytes }) => name.endsWith(".log") && bytes > 0) ?? files[0];
  if (file === undefined) return [];
  const to = /^\d{1,15}$/.test(query.get("to") ?? "") ? Number(query.get("to")) : undefined;
  const page = readLogPage(join(dir, file.name), to, LINES);
  const at = (name: string, end?: number): string =>
    pathWith(taskPath(id), { file: name, to: end === undefined ? undefined : String(end) });
  const begin = page.starts[0] ?? 0;
  const isEnd = page.to >= page.size;
  return [
    {
      kind: "links",
      label: "files of the run",
      links: files.map(({ name, bytes }) => ({
        text: `${name} ${bytesText(bytes)}`,
        to: at(name),
        is_here: name === file.name,
      })),
    },
    {
      kind: "log",
      title: isEnd
        ? `${file.name}, its end`
        : `${file.name}, up to byte ${page.to} of ${page.size}`,
      lines: page.lines.map((line) => logLine(line, false)),
      older: begin > 0 ? { text: "lines before these", to: at(file.name, begin) } : null,
      end: to === undefined || isEnd ? null : { text: "to its end", to: at(file.name) },
    },
  ];
}

/** A run could have put a link in the place of its folder. */
function isInside(folder: string, path: string): boolean {
  try {
    return fs.realpathSync(path).startsWith(`${fs.realpathSync(folder)}/`);
  } catch {
    return false;
  }
}
