/** Finds the place of a log after a key. Places are offsets in its file, so a log of any size costs the same. Reads the file. */
import { withoutColours } from "../../text/render.ts";
import { findInLog, placeAfter } from "../../view/log-page.ts";
import type { LogShown, TaskShown } from "./frame.ts";
import type { Deed, TaskPageState } from "./state.ts";

/** @throws a system error */
export function scrolled(
  page: TaskPageState,
  { by, direction }: Extract<Deed, { does: "scroll" }>,
  log: TaskShown["log"],
  { rows, firstStart }: LogShown,
): TaskPageState {
  if (log === undefined) return page;
  const { starts, to } = log.page;
  const count = Math.max(1, rows);
  if (direction === "on") {
    if (by === "all" || page.to === undefined) return { ...page, to: undefined };
    return { ...page, to: placeAfter(log.path, to, by === "line" ? 1 : count) };
  }
  const first = placeAfter(log.path, 0, count);
  // Nothing is above the first page.
  if (first === undefined) return page;
  const wanted = by === "all" ? first : by === "line" ? (starts.at(-1) ?? to) : firstStart;
  return { ...page, to: Math.max(first, wanted) };
}

/** @returns a text for people when it is not found. @throws a system error */
export function searched(
  page: TaskPageState,
  { direction, isFirst = false }: Extract<Deed, { does: "search" }>,
  log: TaskShown["log"],
): TaskPageState | string {
  if (log === undefined || page.search === "") return "/ names what to search for";
  const { starts, to } = log.page;
  const isShown = (raw: string): boolean =>
    log
      .toLines(raw, Number.POSITIVE_INFINITY)
      .some((line) => withoutColours(line).includes(page.search));
  // A search starts at the last shown line. Only the first search includes that line.
  const from = direction === "on" || isFirst ? to : (starts.at(-1) ?? 0);
  const inDirection = findInLog(log.path, isShown, from, direction);
  // The first search also looks in the other direction.
  const found = inDirection ?? (isFirst ? findInLog(log.path, isShown, to, "on") : undefined);
  const where = isFirst ? "before or after" : direction === "back" ? "before" : "after";
  return found === undefined
    ? `${page.search} is not in the 8 MiB ${where} this`
    : { ...page, to: found };
}
