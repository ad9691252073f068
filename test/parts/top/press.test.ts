/** What each key does, as a function of what is on the screen. */
import { describe, expect, it } from "vitest";
import { press } from "../../../src/parts/top/press.ts";
import { rowsOf } from "../../../src/parts/top/rows.ts";
import { chosenRow, type Deed, START, type TopState } from "../../../src/parts/top/state.ts";
import type { Overview } from "../../../src/view/overview.ts";
import { overview } from "./made.ts";

/** Presses keys one after the other, a second apart. */
function pressed(names: readonly string[], of: Overview = overview(), isReadOnly = false) {
  const deeds: Deed[] = [];
  let state: TopState = START;
  let nowMs = 0;
  for (const name of names) {
    nowMs += 1000;
    const text = name.startsWith("paste:") ? name.slice(6) : undefined;
    const key = text === undefined ? { name } : { name: "paste", text };
    const panes = rowsOf(of, state.filter);
    const after = press(state, key, {
      overview: of,
      panes,
      pageRows: 5,
      nowMs,
      isReadOnly,
      isStderr: false,
    });
    state = after.state;
    if (after.deed !== undefined) deeds.push(after.deed);
  }
  return { state, deeds, row: chosenRow(state, rowsOf(of, state.filter)) };
}

describe("moving", () => {
  it.each([
    [["j"], "running crawl-eu"],
    [["down", "up"], "running fix-login"],
    [["G"], "running crawl-eu"],
    [["j", "j", "j"], "running crawl-eu"],
    [["G", "g"], "running fix-login"],
    [["pgdn"], "running crawl-eu"],
    [["2"], "waiting blocked"],
    [["tab", "tab"], "failed timeout it ran longer than its limit"],
    [["backtab"], "group gpu"],
    [["3", "j"], "failed exit connect ECONNREFUSED <>"],
    [["4"], "question plan-7"],
    [["6", "G"], "limit cuda"],
    [["n", "n"], "waiting blocked"],
    [["N"], "limit cuda"],
  ])("%j leads to %s", (keys, key) => {
    expect(pressed(keys).row?.key).toBe(key);
  });

  it("the chosen row stays chosen when others come and go", () => {
    const { state } = pressed(["j"]);
    const [first, second] = overview().running;
    const of = overview({ running: [...(second ? [second] : []), ...(first ? [first] : [])] });
    expect(chosenRow(state, rowsOf(of, ""))?.key).toBe("running crawl-eu");
    const gone = overview({ running: first ? [first] : [] });
    expect(chosenRow(state, rowsOf(gone, ""))?.key).toBe("running fix-login");
  });

  it("enter opens a task, or the tasks of a group, and esc leads back", () => {
    expect(pressed(["enter"]).state.pages).toMatchObject([{ kind: "task", id: "fix-login" }]);
    const { pages } = pressed(["3", "j", "enter", "j", "enter"]).state;
    expect(pages).toMatchObject([{ kind: "group" }, { kind: "task", id: "sync-c" }]);
    expect(pressed(["3", "j", "enter", "j", "enter", "esc", "left"]).state.pages).toEqual([]);
    expect(pressed(["3", "enter"]).state.pages).toMatchObject([{ id: "crawl-us" }]);
    expect(pressed(["6", "enter"]).state.pages).toMatchObject([{ key: "group gpu" }]);
  });
});

describe("the filter", () => {
  it("hides what does not match while it is typed, and esc clears it", () => {
    const typed = pressed(["/", "S", "y", "n", "c"]);
    expect(rowsOf(overview(), typed.state.filter).map((rows) => rows.length)).toEqual([
      0, 0, 1, 0, 0, 0,
    ]);
    expect(pressed(["/", "s", "enter", "esc"]).state.filter).toBe("");
    expect(pressed(["/", "s", "y", "esc"]).state.filter).toBe("");
    expect(pressed(["/", "a", "b", "backspace", "enter"]).state.filter).toBe("a");
  });

  it("shows waiting tasks one a row, each with its reason, and a group when it means the group", () => {
    const { state } = pressed(["/", "e", "u", "r", "o", "enter", "2", "enter"]);
    const { waiting } = overview();
    expect(rowsOf(overview(), "europe")[1]?.map(({ shown }) => shown)).toEqual([
      {
        kind: "task",
        id: "deploy-eu",
        title: "Deploy to Europe",
        text: waiting[0]?.tasks[0]?.why,
        due_ms: null,
      },
    ]);
    expect(state.pages).toMatchObject([{ kind: "task", id: "deploy-eu" }]);
    expect(rowsOf(overview(), "free slot")[1]?.map(({ shown }) => shown.kind)).toEqual(["waiting"]);
  });

  it("is text: no key in it acts, and a backspace deletes nothing else", () => {
    const { deeds, state } = pressed([
      "/",
      "c",
      "y",
      "q",
      "backspace",
      "backspace",
      "backspace",
      "backspace",
      "paste:p r\ny",
    ]);
    expect(deeds).toEqual([]);
    expect(state.filter).toBe("p r y");
  });

  it("with enter looks for a task of this id", () => {
    expect(pressed(["/", "x", "enter"]).deeds).toEqual([{ does: "find", id: "x" }]);
  });
});

describe("acting", () => {
  it("p pauses, and lets a paused pool go on", () => {
    expect(pressed(["p"]).deeds).toEqual([{ does: "pause" }]);
    expect(pressed(["p"], overview({ paused: "paused 1 s ago" })).deeds).toEqual([
      { does: "resume" },
    ]);
  });

  it("+ and - change the slots by one", () => {
    expect(pressed(["+", "=", "-"]).deeds.map((deed) => "by" in deed && deed.by)).toEqual([
      1, 1, -1,
    ]);
  });

  it("c asks, and only y ends the task for good", () => {
    const asked = pressed(["c"]);
    expect(asked.deeds).toEqual([]);
    expect(asked.state.prompt).toMatchObject({
      kind: "confirm",
      text: "End run 2 of fix-login after 1:05 and $1.22, for good?",
    });
    const cancel = { does: "cancel", ids: ["fix-login"] };
    expect(pressed(["c", "y"]).deeds).toEqual([{ ...cancel, isFinal: true }]);
    expect(pressed(["c", "b"]).deeds).toEqual([{ ...cancel, isFinal: false }]);
    for (const key of ["c", "n", "enter", "esc", "Y", "constructor", " "])
      expect(pressed(["c", key]).deeds, key).toEqual([]);
    expect(pressed(["c", "paste:y"]).deeds).toEqual([]);
    expect(pressed(["c", "c", "y"]).deeds).toEqual([]);
  });

  it("a key that comes with the question does not answer it", () => {
    const around = {
      overview: overview(),
      panes: rowsOf(overview(), ""),
      pageRows: 5,
      isReadOnly: false,
      isStderr: false,
    };
    const { state } = press(START, { name: "c" }, { ...around, nowMs: 1000 });
    const early = press(state, { name: "y" }, { ...around, nowMs: 1299 });
    expect(early.deed).toBeUndefined();
    expect(early.state.prompt).toBeDefined();
    expect(press(early.state, { name: "y" }, { ...around, nowMs: 1300 }).deed).toBeDefined();
  });

  it("r retries a failed task at once, and asks before it retries several", () => {
    expect(pressed(["3", "r"]).deeds).toEqual([{ does: "retry", ids: ["crawl-us"] }]);
    expect(pressed(["3", "j", "r"]).deeds).toEqual([]);
    expect(pressed(["3", "j", "r", "y"]).deeds).toEqual([
      { does: "retry", ids: ["sync-a", "sync-b", "sync-c", "sync-d"] },
    ]);
    // The newest one is the first.
    expect(pressed(["3", "j", "enter", "j", "r"]).deeds).toEqual([
      { does: "retry", ids: ["sync-c"] },
    ]);
    expect(pressed(["r"]).state.note).toBe("it runs; c ends it");
  });

  it("the number of very many tasks has to be typed", () => {
    const [cause] = overview().failures.causes;
    const tasks = Array.from({ length: 120 }, (_, i) => `t-${i}`);
    const causes = cause === undefined ? [] : [{ ...cause, count: 120, tasks }];
    const of = overview({ failures: { causes, titles: {}, grouped: 120, is_all: true } });
    expect(pressed(["3", "r", "y"], of).deeds).toEqual([]);
    expect(pressed(["3", "r", "1", "2", "enter"], of).deeds).toEqual([]);
    expect(pressed(["3", "r", "1", "2", "0", "enter"], of).deeds).toEqual([
      { does: "retry", ids: tasks },
    ]);
    expect(pressed(["3", "r", "1", "3", "backspace", "2", "0", "enter"], of).deeds).toHaveLength(1);
  });

  it("tasks that are not all listed are not cancelled together", () => {
    expect(pressed(["2", "c", "y"]).deeds).toEqual([]);
    expect(pressed(["2", "c"]).state.note).toMatch(/open the group/);
  });

  it("a answers the chosen question, or the only one", () => {
    const answer = { does: "answer", id: "plan-7", text: "no, keep" };
    expect(pressed(["4", "a", ...Array.from("no, keep"), "enter"]).deeds).toEqual([answer]);
    expect(pressed(["a", "paste:no,\nkeep", "enter"]).deeds).toEqual([answer]);
    expect(pressed(["a", "x", "esc"]).deeds).toEqual([]);
    expect(pressed(["a", " ", "enter"]).deeds).toEqual([]);
    expect(pressed(["a"], overview({ questions: [] })).state.note).toMatch(/no question waits/);
  });

  it("nothing is changed when it is read only", () => {
    for (const key of ["p", "+", "-", "r", "c", "a"]) {
      const { deeds, state } = pressed(["3", key], overview(), true);
      expect(deeds, key).toEqual([]);
      expect(state.prompt, key).toBeUndefined();
      expect(state.note, key).toMatch(/read only/);
    }
  });
});

it("in the page of a task keys move its log, and act on it", () => {
  expect(pressed(["enter", "up", "pgup", "g", "G", "n"]).deeds).toEqual([
    { does: "scroll", by: "line", direction: "back" },
    { does: "scroll", by: "page", direction: "back" },
    { does: "scroll", by: "all", direction: "back" },
    { does: "scroll", by: "all", direction: "on" },
    { does: "search", direction: "on" },
  ]);
  expect(pressed(["enter", "o", "w"]).state.pages).toMatchObject([
    { stream: "stderr", isWrapped: true },
  ]);
  const found = pressed(["enter", "/", "x", "enter"]);
  expect(found.deeds).toEqual([{ does: "search", direction: "back", isFirst: true }]);
  expect(found.state.pages).toMatchObject([{ search: "x" }]);
  expect(pressed(["enter", "c"]).state.prompt).toMatchObject({ kind: "confirm" });
});

it.each([
  ["q", "quit"],
  ["ctrl-c", "interrupt"],
  ["ctrl-z", "suspend"],
  ["ctrl-l", "redraw"],
])("%s means %s, also in a page", (key, does) => {
  expect(pressed([key]).deeds).toEqual([{ does }]);
  expect(pressed(["enter", key]).deeds).toEqual([{ does }]);
});

it("? shows the keys, and any key leads back", () => {
  expect(pressed(["?"]).state.isHelp).toBe(true);
  expect(pressed(["?", "c"])).toMatchObject({ state: { isHelp: false, prompt: undefined } });
});
