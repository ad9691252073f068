/**
 * A page as plain data. The browser makes elements of it, each text as text and never as markup. Types, and the few makers of cells.
 * Texts come from tasks and files: `shown` makes invisible characters visible.
 */
import { safe } from "../../text/render.ts";
import type { ListedState } from "../../view/page-of-tasks.ts";
import type { Verb } from "./verbs.ts";

/** `to`: path of a page of ours. */
export interface Link {
  text: string;
  to: string;
}

/** A time, which the browser writes in its own zone. */
export interface Time {
  at_ms: number;
}

/** A button that changes something, or a text with a button. It carries out a verb of the command line: see `actions.ts`. */
export interface Act {
  /** On the button. */
  text: string;
  /** What it does, in the words in which its outcome is told: `retry fix-login`. */
  what: string;
  verb: Verb;
  ids?: string[];
  /** Of slots. */
  number?: number;
  /** A text that goes with it, such as an answer. */
  words?: string;
  /** Label of a field, for a text that a person types. */
  field?: string;
  /** What is lost by it. It is asked before. */
  ask?: string;
  /** In place of `ids`: all tasks of a list. */
  all?: { state: ListedState; q: string };
  /** How many tasks these are; there may be more, when there are very many. */
  count?: number;
}

export type Cell = string | Link | Time | { acts: Act[] };

/** A line of a log: plain, or in parts with the colours that they have, as `red bold`. */
export type Line = string | [text: string, colours: string][];

/** What is drawn: an area of its own units, which is stretched to the width that is there. */
export interface Shape {
  /** `band`: a filled rectangle; `line`: a path. */
  is: "band" | "line";
  /** What it means, as a name of a colour: good, bad, warn, other, soft. */
  look: string;
  /** Of a line. */
  d?: string;
  /** Of a band: left, top, width, height. */
  box?: [number, number, number, number];
  /** Says what it is when a person points at it. */
  tip?: string;
}

export interface Chart {
  kind: "chart";
  title: string;
  /** The size of the drawing in its own units. */
  size: [width: number, height: number];
  shapes: Shape[];
  /** What the top of the drawing is worth; "" when its height says nothing. */
  top: string;
  from: Cell;
  to: Cell;
  legend: { text: string; look: string }[];
  /** The same as a table, which is shown when a person opens it; null when a table follows anyway. */
  table: { columns: string[]; rows: Cell[][] } | null;
}

/** Boxes with lines between them, which a person moves and makes larger. */
export interface Graph {
  kind: "graph";
  title: string;
  size: [width: number, height: number];
  /** Of each box. */
  box: [width: number, height: number];
  nodes: GraphBox[];
  /** Paths. */
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

export type Block =
  | { kind: "heading"; text: string }
  | { kind: "text"; text: string; is_bad: boolean }
  | { kind: "links"; label: string; links: (Link & { is_here: boolean })[] }
  | { kind: "facts"; facts: [name: string, value: Cell][] }
  | { kind: "table"; title: string; columns: string[]; rows: Cell[][]; none: string }
  | { kind: "log"; title: string; lines: Line[]; older: Link | null; end: Link | null }
  | Chart
  | { kind: "charts"; charts: Chart[] }
  | Graph
  | { kind: "acts"; label: string; acts: Act[] }
  /** A field whose text becomes the parameter `name` of the page `to`. */
  | { kind: "find"; label: string; to: string; name: string; value: string };

export interface Page {
  title: string;
  /** The command that prints the same. */
  command: string;
  at_ms: number;
  /** How fresh it is; null: as fresh as the supervisor's last heartbeat, which is added to the page. */
  health: { state: string; text: string } | null;
  blocks: Block[];
  /** Files and folders whose changes are to be seen at once, beside those of the tree that every page follows. They are not sent. */
  watch?: readonly string[];
}

/** A page as it is sent. */
export interface SentPage extends Page {
  /** The pages that this tree has. */
  nav: Link[];
  /** When the browser may ask again (ms from now). */
  again_ms: number;
}

/** Text from a task or a file. */
export function shown(text: unknown): string {
  return safe(text);
}

export function linkToTask(id: string): Link {
  return { text: shown(id), to: taskPath(id) };
}

export function taskPath(id: string): string {
  return `/tasks/${encodeURIComponent(id)}`;
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

export function timeOf(ms: number | null): Cell {
  return ms === null ? "–" : { at_ms: Math.round(ms) };
}

/** Without what changes something, for a page on which nothing may be changed. */
export function withoutActs(blocks: readonly Block[]): Block[] {
  return blocks.flatMap((block): Block[] => {
    if (block.kind === "acts") return [];
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

export function say(text: string, isBad = false): Block {
  return { kind: "text", text, is_bad: isBad };
}
