/**
 * Finds the boxes of a Markdown list, with the places of their characters in the text. Pure. It follows CommonMark where the meaning of
 * a line depends on it: nesting by columns, tabs, code, comments. It keeps every list item, because an item without a box may contain one.
 */

export interface Box {
  /** The place of the character between the brackets. */
  at: number;
  isTicked: boolean;
}

export interface ListItem {
  /** Index of its line. */
  line: number;
  /** Index of the last line of the item and of the items in it. Blank lines at the end do not count. */
  lastLine: number;
  /** The column where its content begins. */
  column: number;
  /** The text of its line, without marker and box. */
  head: string;
  box?: Box;
  parent?: ListItem;
}

export interface ParsedList {
  /** Without line breaks. */
  lines: readonly string[];
  /** In the order of the text. */
  items: readonly ListItem[];
}

const MARKER = /^(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$)/;
/** A box needs a text after it, as in GitHub's task lists. */
const BOX = /^\[([ xX])\][ \t]+(?=[^ \t])/;
const RULE = /^(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const FENCE = /^(?:(`{3,})[^`]*|(~{3,}).*)$/;
const HEADING = /^#{1,6}(?:[ \t]|$)/;
const HTML = /^<(?:(!--)|(?:pre|script|style|textarea)(?=[ \t>]|$))/i;
const HTML_END = /<\/(?:pre|script|style|textarea)>/i;
/** How many items may begin on one line; more would take too long to read. */
const MARKERS_MAX = 8;
const TAB = 4;
/** A line with at least this indentation is code, or continues a paragraph. */
const CODE_COLUMNS = 4;
const BYTE_ORDER_MARK = "\ufeff";

/** A block of code or a comment: its lines have no meaning until its end. */
interface Verbatim {
  isEnd(rest: string, depth: number): boolean;
}

interface Place {
  at: number;
  column: number;
}

export function parseList(text: string): ParsedList {
  const reader = new LineReader();
  const lines: string[] = [];
  let start = text.startsWith(BYTE_ORDER_MARK) ? 1 : 0;
  const parts = text.slice(start).split(/(\r\n|\n|\r)/);
  const matterEnd = endOfFrontMatter(parts);
  for (const [index, part] of parts.entries()) {
    if (/^[\r\n]/.test(part)) start += part.length;
    else {
      if (index > matterEnd) reader.read(part, start, lines.length);
      lines.push(part);
      start += part.length;
    }
  }
  return { lines, items: reader.items };
}

/** The index of the last line of the YAML at the beginning of a file, whose lists have no boxes; -1 without it. */
function endOfFrontMatter([first = "", ...rest]: readonly string[]): number {
  if (!/^---[ \t]*$/.test(first)) return -1;
  const end = rest.findIndex((line) => /^(?:---|\.\.\.)[ \t]*$/.test(line));
  return end === -1 ? -1 : end + 1;
}

class LineReader {
  readonly items: ListItem[] = [];
  /** The items that the next line may belong to, the outermost first. */
  private readonly open: ListItem[] = [];
  private verbatim: Verbatim | undefined;
  /** True if the last line was text that the next line may continue. */
  private isParagraph = false;

  /** @param start place of the line in the text */
  read(text: string, start: number, line: number): void {
    const first = skipBlanks(text, { at: 0, column: 0 });
    if (first.at === text.length) {
      this.isParagraph = false;
      return;
    }
    if (this.isVerbatim(text.slice(first.at), first.column)) {
      this.extend(line);
      return;
    }
    this.leave(text.slice(first.at), first.column);
    const { place, hasBox } = this.readMarkers(text, first, start, line);
    const rest = text.slice(place.at);
    const depth = place.column - this.base;
    if (hasBox) this.isParagraph = true;
    else if (depth >= CODE_COLUMNS) this.isParagraph &&= line !== this.items.at(-1)?.line;
    else {
      this.verbatim = verbatimAt(rest);
      this.isParagraph =
        rest !== "" && this.verbatim === undefined && !RULE.test(rest) && !HEADING.test(rest);
    }
    this.extend(line);
  }

  private get base(): number {
    return this.open.at(-1)?.column ?? 0;
  }

  /** True if the line belongs to code or a comment. These end with their own last line, or with the item around them. */
  private isVerbatim(rest: string, column: number): boolean {
    if (this.verbatim === undefined) return false;
    const isInside = column >= this.base;
    if (!isInside || this.verbatim.isEnd(rest, column - this.base)) this.verbatim = undefined;
    return isInside;
  }

  /** Leaves the items that the line is not indented for, unless it continues their paragraph. */
  private leave(rest: string, column: number): void {
    if (this.isParagraph && !beginsBlock(rest)) return;
    while (column < this.base) this.open.pop();
  }

  /** Reads all markers of the line: `- - [ ] a` has two. @returns where the rest of the line begins */
  private readMarkers(
    text: string,
    first: Place,
    start: number,
    line: number,
  ): { place: Place; hasBox: boolean } {
    let place = first;
    for (let markers = 0; ; markers++) {
      const rest = text.slice(place.at);
      if (markers === MARKERS_MAX) return { place, hasBox: false };
      const marker = MARKER.exec(rest)?.[0];
      const isText = place.column - this.base >= CODE_COLUMNS || RULE.test(rest);
      if (isText || marker === undefined) return { place, hasBox: false };
      const end = { at: place.at + marker.length, column: place.column + marker.length };
      const content = skipBlanks(text, end);
      const isCode = content.column - end.column > CODE_COLUMNS;
      const isEmpty = content.at === text.length;
      const box = isCode ? null : BOX.exec(text.slice(content.at));
      const parent = this.open.at(-1);
      const item: ListItem = {
        line,
        lastLine: line,
        column: isCode || isEmpty ? end.column + 1 : content.column,
        head: trimBlanks(text.slice(content.at + (box?.[0].length ?? 0))),
        ...(box === null ? {} : { box: { at: start + content.at + 1, isTicked: box[1] !== " " } }),
        ...(parent === undefined ? {} : { parent }),
      };
      // Of two items on a line, the inner item is the whole text of the outer one.
      if (parent?.line === line) parent.head = "";
      this.items.push(item);
      this.open.push(item);
      place = content;
      if (box !== null || isCode || isEmpty) return { place, hasBox: box !== null };
    }
  }

  private extend(line: number): void {
    for (const item of this.open) item.lastLine = line;
  }
}

function verbatimAt(rest: string): Verbatim | undefined {
  const [, backticks, tildes] = FENCE.exec(rest) ?? [];
  const fence = backticks ?? tildes;
  if (fence !== undefined) {
    const isFence = new RegExp(`^${fence[0]}{${fence.length},}[ \\t]*$`);
    return { isEnd: (line, depth) => depth < CODE_COLUMNS && isFence.test(line) };
  }
  const html = HTML.exec(rest);
  if (html === null) return undefined;
  const end = html[1] === undefined ? HTML_END : /-->/;
  return end.test(rest) ? undefined : { isEnd: (line) => end.test(line) };
}

function beginsBlock(rest: string): boolean {
  return [MARKER, RULE, FENCE, HEADING, HTML, /^>/].some((pattern) => pattern.test(rest));
}

function skipBlanks(text: string, { at, column }: Place): Place {
  let place = { at, column };
  for (let char = text[at]; char === " " || char === "\t"; char = text[place.at])
    place = {
      at: place.at + 1,
      column: place.column + (char === "\t" ? TAB - (place.column % TAB) : 1),
    };
  return place;
}

/** The line without up to `columns` columns of its indentation. */
export function dedent(text: string, columns: number): string {
  let place = { at: 0, column: 0 };
  while (place.column < columns && (text[place.at] === " " || text[place.at] === "\t")) {
    const isTab = text[place.at] === "\t";
    place = {
      at: place.at + 1,
      column: place.column + (isTab ? TAB - (place.column % TAB) : 1),
    };
  }
  return " ".repeat(Math.max(0, place.column - columns)) + text.slice(place.at);
}

function trimBlanks(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, "");
}

/** The text with these boxes ticked. Only one character of each box changes. */
export function tickBoxes(text: string, boxes: readonly Box[]): string {
  const places = boxes.map((box) => box.at).sort((a, b) => a - b);
  let ticked = "";
  let from = 0;
  for (const at of places) {
    if (text.slice(at - 1, at + 2) !== "[ ]") throw new Error(`there is no open box at ${at}`);
    ticked += `${text.slice(from, at)}x`;
    from = at + 1;
  }
  return ticked + text.slice(from);
}
