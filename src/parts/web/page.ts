/**
 * A page as plain data: types, and a few functions that make cells. The browser makes elements of it, each text as text and never
 * as markup. Texts come from tasks and files, so `shown` makes invisible characters visible.
 */
import type { CostSum } from "../../agents/cost-sums.ts";
import { duration, safe } from "../../text/render.ts";
import type { ListedState } from "../../view/page-of-tasks.ts";
import type { Verb } from "./verbs.ts";

/** `to`: the path of one of our pages. */
export interface Link {
  text: string;
  to: string;
  /** A small text below it, such as an id below a title. */
  small?: string;
}

/** An id, with a button that copies it. */
export interface Id {
  id: string;
  /** The page that it leads to. */
  to?: string;
}

/** How much of something is done (0 to 100). */
export interface Progress {
  pct: number;
  text: string;
}

/** A time, which the browser writes in its own zone. */
export interface Time {
  at_ms: number;
}

/** A button that changes something, perhaps with a text field. It runs a verb of the command line: see `verbs.ts`. */
export interface Act {
  /** The text on the button. */
  text: string;
  /** What it does, for the line that tells its outcome: `retry fix-login`. */
  what: string;
  verb: Verb;
  ids?: string[];
  /** The number of slots. */
  number?: number;
  /** A text that is sent with it, such as an answer. */
  words?: string;
  /** Label of a field, for a text that a person types. */
  field?: string;
  /** A question that comes first and says what would be lost. */
  ask?: string;
  /** In place of `ids`: all tasks of a list. */
  all?: { state: ListedState; q: string };
  /** How many tasks these are; a lower bound if there are very many. */
  count?: number;
}

/** How a state looks: its colour and its shape. */
export type Look = "good" | "bad" | "warn" | "run" | "soft";

const LOOKS: Readonly<Record<string, Look>> = {
  done: "good",
  failed: "bad",
  running: "run",
  settling: "run",
  held: "warn",
  cancelled: "warn",
};

/** How the state of a task looks. */
export function lookOf(state: string): Look {
  return LOOKS[state] ?? "soft";
}

/** A state in one or two words. */
export interface Pill {
  look: Look;
  word: string;
}

export type Cell = string | Link | Id | Progress | Time | Pill | { acts: Act[] };

/** A line of a log. */
export type Line = PlainLine | Fold;
/** A text, or parts with their colours, such as `red bold`. */
export type PlainLine = string | [text: string, colours: string][];

/** A line that opens and closes those below it. */
export interface Fold {
  head: PlainLine;
  lines: PlainLine[];
  is_open: boolean;
}

/** A shape of a drawing. A drawing has its own units, and the browser stretches it to the available width. */
export interface Shape {
  /** `band`: a filled rectangle; `line`: a path. */
  is: "band" | "line";
  /** The name of a colour, which says what the shape means: good, bad, warn, other, soft. */
  look: string;
  /** The path of a line. */
  d?: string;
  /** The rectangle of a band: left, top, width, height. */
  box?: [number, number, number, number];
  /** A text that is shown when a person points at the shape. */
  tip?: string;
}

export interface Chart {
  kind: "chart";
  title: string;
  /** The size of the drawing in its own units. */
  size: [width: number, height: number];
  shapes: Shape[];
  /** The value at the top of the drawing; "" when its height means nothing. */
  top: string;
  from: Cell;
  to: Cell;
  legend: { text: string; look: string }[];
  /** The same data as a table, which a person can open. */
  table: { columns: string[]; rows: Cell[][] };
}

/** Rows of bars over time. A person can drag over it to zoom in. */
export interface TimelineBlock {
  kind: "timeline";
  title: string;
  from_ms: number;
  to_ms: number;
  /** `line` is a path, such as that of the costs, and `limits` are levels beside it. */
  rows: {
    name: string;
    height: number;
    /** `text` is written into the shape, as far as it fits. */
    shapes: (Shape & { to?: string; text?: string })[];
    limits: { y: number; text: string }[];
  }[];
  ticks: [x: number, atMs: number][];
  /** Each look with what it stands for; `box` is its top and height in the row. */
  legend: { text: string; look: string; box: [top: number, height: number] }[];
}

/** Boxes with lines between them. A person can move and zoom the drawing. */
export interface Graph {
  kind: "graph";
  title: string;
  size: [width: number, height: number];
  /** The size of each box. */
  box: [width: number, height: number];
  nodes: GraphBox[];
  /** The paths of the lines. */
  edges: string[];
}

export interface GraphBox {
  text: string;
  tip: string;
  /** The name of a colour. */
  look: string;
  /** Its left top corner. */
  at: [x: number, y: number];
  to: string;
  is_here: boolean;
}

/** The lines of files that changed between two commits. */
export interface Diff {
  kind: "diff";
  /** The task that did the work, and the commit at its end. */
  id: string;
  commit: string;
  title: string;
  files: DiffFile[];
  /** Says that there are more files; else "". */
  more: string;
  /** Whether a person may comment on lines, for the block `reject`. */
  can_comment: boolean;
}

export interface DiffFile {
  path: string;
  /** Such as `new`. */
  notes: string[];
  insertions: number | null;
  deletions: number | null;
  /** Why its lines are missing; else "". */
  why: string;
  /** The page with its lines. */
  to: Link | null;
  hunks: DiffHunk[];
  /** Pictures before and after: the ids of their objects, or "" for none. */
  pictures: [old: string, now: string] | null;
}

export interface DiffHunk {
  /** Its first line in the old and in the new file. */
  old: number;
  new: number;
  near: string;
  /** `is`: in both, old, new, or a remark. `marks`: the words that have changed. */
  lines: [is: string, text: string, marks?: [from: number, to: number][]][];
}

export type Block =
  | { kind: "heading"; text: string }
  | { kind: "text"; text: string; is_bad: boolean }
  | { kind: "links"; label: string; links: (Link & { is_here: boolean })[] }
  | { kind: "facts"; facts: [name: string, value: Cell][] }
  | { kind: "table"; title: string; columns: string[]; rows: Cell[][]; none: string }
  | { kind: "log"; title: string; lines: Line[]; older: Link | null; end: Link | null }
  | Chart
  /** Blocks beside each other, as many as the screen has room for. */
  | { kind: "grid"; name: "charts" | "board"; blocks: Block[] }
  | Graph
  | TimelineBlock
  | { kind: "acts"; label: string; acts: Act[] }
  | Diff
  /** Sends work back, with words and with the comments on the lines of the same task. */
  | { kind: "reject"; id: string; act: Act }
  /** Blocks beside others; below them on a narrow screen. */
  | { kind: "split"; main: Block[]; side: Block[] }
  /** Blocks under a line that opens and closes them. */
  | { kind: "fold"; title: string; pill: Pill | null; is_open: boolean; blocks: Block[] }
  /** A field whose text becomes the parameter `name` of the page `to`. */
  | { kind: "find"; label: string; to: string; name: string; value: string };

export interface Page {
  title: string;
  /** The command that prints the same. */
  command: string;
  /** How fresh the page is; left out: `Pages` adds the health of the supervisor. */
  health?: { state: string; text: string };
  blocks: Block[];
  /** Files and folders that this page follows in addition to those of the tree that every page follows. They are not sent. */
  watch?: readonly string[];
}

/** A page as the server sends it. */
export interface SentPage extends Page {
  /** The tree whose pages these are: its name, its path, and the host of this server. */
  tree: { name: string; path: string; host: string };
  /** The pages that this tree has. */
  nav: Link[];
  /** When the browser may ask again (ms from now). */
  again_ms: number;
}

/** Makes text from a task or a file safe to show. */
export function shown(text: unknown): string {
  return safe(text);
}

/** @param title shown in place of the id, which then stands below it */
export function linkToTask(id: string, title = ""): Link {
  const to = taskPath(id);
  if (title === "" || title === id) return { text: shown(id), to };
  return { text: shown(title.slice(0, TITLE_CHARS_MAX)), to, small: shown(id) };
}

const TITLE_CHARS_MAX = 120;

export function taskPath(id: string): string {
  return `/tasks/${encodeURIComponent(id)}`;
}

export function workPath(id: string): string {
  return `/review/${encodeURIComponent(id)}`;
}

/** The page of the work that a task has left. */
export function linkToWork({ task_id: id, title }: { task_id: string; title: string }): Link {
  return { ...linkToTask(id, title), to: workPath(id) };
}

/** `/tasks?state=done&q=a`; empty values are left out. */
export function pathWith(
  path: string,
  values: Readonly<Record<string, string | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) query.set(name, value);
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}

/** `$1.22`; "–" when it is not known. @param micro millionths of a US dollar */
export function usd(micro: number | null): string {
  return micro === null ? "–" : `$${(micro / 1e6).toFixed(2)}`;
}

/** What some runs have cost, as far as it is known. */
export function priceText({
  cost_usd_micro: micro,
  runs,
  runs_without_price: unknown,
}: CostSum): string {
  return unknown === runs ? "–" : `${usd(micro)}${unknown > 0 ? " or more" : ""}`;
}

/** In whole seconds, so that the text changes only each second. */
export function seconds(ms: number): string {
  return duration(Math.max(0, Math.floor(ms / 1000) * 1000));
}

export function timeOf(ms: number | null): Cell {
  return ms === null ? "–" : { at_ms: Math.round(ms) };
}

/** Removes all buttons that change something, for a read-only page. */
export function withoutActs(blocks: readonly Block[]): Block[] {
  return blocks.flatMap((block): Block[] => {
    if (block.kind === "acts" || block.kind === "reject") return [];
    if (block.kind === "diff") return [{ ...block, can_comment: false }];
    if (block.kind === "fold" || block.kind === "grid")
      return [{ ...block, blocks: withoutActs(block.blocks) }];
    if (block.kind === "split")
      return [{ ...block, main: withoutActs(block.main), side: withoutActs(block.side) }];
    if (block.kind === "facts")
      return [{ ...block, facts: block.facts.filter(([, value]) => !isActs(value)) }];
    if (block.kind !== "table") return [block];
    const rows = block.rows.map((cells) => cells.map((cell) => (isActs(cell) ? "" : cell)));
    return [{ ...block, rows }];
  });
}

function isActs(cell: Cell): boolean {
  return typeof cell === "object" && "acts" in cell;
}

/** Links beside each other; the one that is shown is marked. */
export function linksOf(
  label: string,
  links: readonly (readonly [text: string, to: string, isHere?: boolean])[],
): Block {
  const all = links.map(([text, to, isHere = false]) => ({ text, to, is_here: isHere }));
  return { kind: "links", label, links: all };
}

export function say(text: string, isBad = false): Block {
  return { kind: "text", text, is_bad: isBad };
}

/** @param none stands there when there are no rows */
export function table(
  title: string,
  columns: string[],
  rows: Cell[][],
  none = "",
): Extract<Block, { kind: "table" }> {
  return { kind: "table", title, columns, rows, none };
}

/** Names and values. Those that are null are left out. */
export function factsOf(facts: readonly (readonly [name: string, value: Cell | null])[]): Block {
  const known = facts.flatMap(([name, value]): [string, Cell][] =>
    value === null ? [] : [[name, value]],
  );
  return { kind: "facts", facts: known };
}

/** A whole text as a log; no block for no lines. */
export function log(title: string, lines: Line[]): Block[] {
  return lines.length === 0 ? [] : [{ kind: "log", title, lines, older: null, end: null }];
}

/** No block for no buttons. */
export function actsBlock(label: string, acts: Act[]): Block[] {
  return acts.length === 0 ? [] : [{ kind: "acts", label, acts }];
}

export function fold(
  title: string,
  blocks: Block[],
  { isOpen = false, pill = null }: { isOpen?: boolean; pill?: Pill | null } = {},
): Block {
  return { kind: "fold", title, pill, is_open: isOpen, blocks };
}
