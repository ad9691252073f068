/** Where a log stands after a key. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scrolled, searched } from "../../../src/parts/top/log-moves.ts";
import { taskPage } from "../../../src/parts/top/press.ts";
import type { TaskPageState } from "../../../src/parts/top/state.ts";
import { readLogPage } from "../../../src/view/log-page.ts";
import { tempDir } from "../../support/temp-dir.ts";

const ROWS = 3;

/** A log of ten lines, `line 0` to `line 9`, on a screen with room for three. */
function newLog() {
  const path = join(tempDir(), "stdout.log");
  fs.writeFileSync(path, Array.from({ length: 10 }, (_, i) => `line ${i}\n`).join(""));
  const logAt = (page: TaskPageState) => ({
    name: "stdout.log",
    path,
    page: readLogPage(path, page.to, ROWS),
    toLines: (raw: string) => [raw],
  });
  const shown = (page: TaskPageState): string[] => logAt(page).page.lines;
  const scroll = (page: TaskPageState, by: "line" | "page" | "all", direction: "back" | "on") => {
    const log = logAt(page);
    const firstStart = log.page.starts[0] ?? 0;
    return scrolled(page, { does: "scroll", by, direction }, log, { rows: ROWS, firstStart });
  };
  return { path, logAt, shown, scroll };
}

it("lines, pages, the begin and the end", () => {
  const { shown, scroll } = newLog();
  let page: TaskPageState = { ...taskPage("x"), search: "" };
  page = scroll(page, "line", "back");
  expect(shown(page)).toEqual(["line 6", "line 7", "line 8"]);
  page = scroll(page, "page", "back");
  expect(shown(page)).toEqual(["line 3", "line 4", "line 5"]);
  page = scroll(page, "page", "on");
  expect(shown(page)).toEqual(["line 6", "line 7", "line 8"]);
  page = scroll(page, "all", "back");
  expect(shown(page)).toEqual(["line 0", "line 1", "line 2"]);
  expect(scroll(page, "page", "back")).toEqual(page);
  page = scroll(page, "line", "on");
  expect(shown(page)).toEqual(["line 1", "line 2", "line 3"]);
  page = scroll(page, "all", "on");
  expect(page.to).toBeUndefined();
});

it("going on over the end follows it, and a log that fits does not move", () => {
  const { path, shown, scroll } = newLog();
  let page: TaskPageState = { ...taskPage("x"), to: 63 };
  expect(shown(page)).toEqual(["line 6", "line 7", "line 8"]);
  page = scroll(page, "line", "on");
  expect(page.to).toBeUndefined();
  fs.appendFileSync(path, "line 10\n");
  expect(shown(page)).toEqual(["line 8", "line 9", "line 10"]);
  fs.writeFileSync(path, "one\ntwo\n");
  for (const by of ["line", "page", "all"] as const)
    expect(scroll(taskPage("x"), by, "back").to).toBeUndefined();
});

it("a search goes from line to line, and says when there is nothing more", () => {
  const { logAt, shown } = newLog();
  let page: TaskPageState = { ...taskPage("x"), search: "9" };
  const search = (direction: "back" | "on", isFirst?: true) => {
    const deed = { does: "search", direction, ...(isFirst && { isFirst }) } as const;
    return searched(page, deed, logAt(page));
  };
  page = search("back", true) as TaskPageState;
  expect(shown(page).at(-1)).toBe("line 9");
  page = { ...page, search: "line" };
  page = search("back") as TaskPageState;
  expect(shown(page).at(-1)).toBe("line 8");
  page = search("on") as TaskPageState;
  expect(shown(page).at(-1)).toBe("line 9");
  page = { ...page, search: "absent" };
  expect(search("back")).toBe("absent is not in the 8 MiB before this");
  expect(search("back", true)).toBe("absent is not in the 8 MiB before or after this");
  // From the first lines a new search finds what is below them.
  page = { ...page, to: "line 1\nline 2\n".length, search: "line 7" };
  page = search("back", true) as TaskPageState;
  expect(shown(page).at(-1)).toBe("line 7");
});
