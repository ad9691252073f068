/** Short texts for a screen of fixed cells: times, money, counts and bars. Pure. */
import { cut, duration, widthOf } from "../../text/render.ts";

/** How the screen is drawn. */
export interface Look {
  colour: boolean;
  signs: Signs;
}

export interface Signs {
  here: string;
  line: string;
  column: string;
  full: string;
  empty: string;
  /** From few to many; the first is zero. */
  spark: string;
}

export const UNICODE_SIGNS: Signs = {
  here: "▸",
  line: "─",
  column: "│",
  full: "▓",
  empty: "░",
  spark: "▁▂▃▄▅▆▇█",
};
export const ASCII_SIGNS: Signs = {
  here: ">",
  line: "-",
  column: "|",
  full: "#",
  empty: ".",
  spark: "_.:-=+*#",
};
const UNKNOWN_MINUTE = " ";

/** Cuts or fills a text to exactly `width` cells. */
export function sized(text: string, width: number, align: "left" | "right" = "left"): string {
  const shown = cut(text, width);
  const room = " ".repeat(Math.max(0, width - widthOf(shown)));
  return align === "left" ? shown + room : room + shown;
}

/** `left` and `right` on one line; `left` is cut when both do not fit. */
export function spread(left: string, right: string, width: number): string {
  const room = width - widthOf(right) - 1;
  return room < 8 ? sized(left, width) : `${sized(left, room)} ${right}`;
}

/** The end of a text: of a path or an id it tells more than the beginning. */
export function endOf(text: string, width: number): string {
  const characters = Array.from(text);
  while (widthOf(characters.join("")) > width) characters.shift();
  return characters.join("");
}

/** An id that is too long loses its middle, because ids of one kind differ at their ends. */
export function shortId(id: string, width: number): string {
  if (widthOf(id) <= width || width < 8) return cut(id, width);
  const end = endOf(id, Math.floor((width - 1) / 2));
  return cut(id, width - widthOf(end)) + end;
}

/** A title and its id at the right edge. The title is cut first; where both have no room the id stays. */
export function named(title: string, id: string, width: number): string {
  const room = width - widthOf(title) - 1;
  if (title === "" || title === id || (width < 18 && room < widthOf(id)))
    return sized(shortId(id, width), width);
  const shown = shortId(id, Math.max(room, Math.min(width - 9, Math.floor((width * 2) / 3))));
  return `${sized(title, width - widthOf(shown) - 1)} ${shown}`;
}

/** `0:07`, `12:04`; an hour or longer: `2 h 10 min`. */
export function clock(ms: number): string {
  if (ms >= 3_600_000) return duration(ms);
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** `$1.22`. @param micro millionths of a US dollar */
export function money(micro: number): string {
  return `$${(micro / 1e6).toFixed(2)}`;
}

export function bar(pct: number, cells: number, { full, empty }: Signs): string {
  const filled = Math.round((Math.min(100, Math.max(0, pct)) / 100) * cells);
  return full.repeat(filled) + empty.repeat(cells - filled);
}

/** One cell for each value; an unknown value is blank. */
export function sparkline(values: readonly (number | null)[], { spark }: Signs): string {
  const most = Math.max(1, ...values.map((value) => value ?? 0));
  return values
    .map((value) => {
      if (value === null) return UNKNOWN_MINUTE;
      const level = value === 0 ? 0 : Math.max(1, Math.round((value / most) * (spark.length - 1)));
      return spark.charAt(level);
    })
    .join("");
}
