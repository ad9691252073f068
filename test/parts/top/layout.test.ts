/** The screen of `top` as lines of text, in many sizes. */
import { describe, expect, it } from "vitest";
import { UNICODE_SIGNS } from "../../../src/parts/top/cells.ts";
import type { PastShown, TaskShown } from "../../../src/parts/top/frame.ts";
import { keyTexts } from "../../../src/parts/top/help.ts";
import { layout, wantedTask } from "../../../src/parts/top/layout.ts";
import { share } from "../../../src/parts/top/pane-lines.ts";
import { taskPage } from "../../../src/parts/top/press.ts";
import { rowsOf } from "../../../src/parts/top/rows.ts";
import { START } from "../../../src/parts/top/state.ts";
import { widthOf } from "../../../src/text/render.ts";
import type { Column } from "../../../src/view/timeline/lay-out.ts";
import { ASCII_SIGNS, ended, frame, NOW_MS, overview, runningRow } from "./made.ts";

const SIZES = [
  { columns: 80, rows: 24 },
  { columns: 200, rows: 60 },
  { columns: 40, rows: 10 },
  { columns: 20, rows: 4 },
  { columns: 1, rows: 1 },
  { columns: 500, rows: 100 },
] as const;
const COLOURS = /\x1b\[[0-9;]*m/g;
const pastOf = (columns: PastShown["columns"]): PastShown => ({ columns, ended: [] });
const textOf = (lines: readonly string[]): string => lines.join("\n");

const SHOWN: TaskShown = {
  id: "fix-login",
  page: {
    id: "fix-login",
    state: "running",
    path: "/srv/pool/state/mailbox/processing/fix-login@x.2~w-y.json",
    title: "Fix the login redirect",
    attempt: 2,
    attempts_max: 3,
    agent: "coder",
    group: "web",
    priority: 5,
    program: [],
    prompt: "",
    failed_lines: null,
    after: ["write-tests"],
    error: null,
    run_dir: "/srv/pool/state/runs/2026-03-01/fix-login@x.2",
    files: [{ name: "stdout.log", bytes: 2048 }],
    began_ms: NOW_MS - 724_000,
    changed_ms: NOW_MS,
  },
  why: undefined,
  log: {
    name: "stdout.log",
    path: "/nowhere",
    page: { lines: ["first", "second", "third"], starts: [0, 6, 13], to: 19, size: 19 },
    toLines: (raw) => [raw],
  },
};

describe.each(SIZES)("in $columns × $rows", (size) => {
  const screens = {
    panes: frame(),
    "coloured panes": frame({ look: { colour: true, signs: ASCII_SIGNS } }),
    help: frame({ state: { isHelp: true } }),
    task: frame({ state: { pages: [taskPage("fix-login")] }, task: SHOWN }),
    group: frame({
      state: {
        pages: [
          {
            kind: "group",
            pane: 2,
            key: "failed exit connect ECONNREFUSED <>",
            cursor: { key: "", index: 0 },
          },
        ],
      },
    }),
    question: frame({
      state: {
        prompt: { kind: "input", what: "answer", label: "answer plan-7", text: "no", id: "plan-7" },
      },
    }),
    trouble: frame({ trouble: "EACCES: permission denied" }),
  };

  it.each(Object.entries(screens))("the %s take exactly the screen", (_name, made) => {
    const { lines } = layout(made, size);
    expect(lines).toHaveLength(size.rows);
    for (const line of lines)
      expect(widthOf(line.replace(COLOURS, ""))).toBeLessThanOrEqual(size.columns);
  });
});

describe("in 80 × 24", () => {
  const { lines } = layout(frame(), { columns: 80, rows: 24 });
  const text = textOf(lines);
  const lineWith = (part: string): string => lines.find((line) => line.includes(part)) ?? "";

  it("the head says how fresh it is, the counts, and the rates of the last whole minute", () => {
    expect(lines[0]).toMatch(/^top {2}LIVE {2}\/srv\/pool\/state .* 2\/3 slots {2}\$18\.40 today/);
    expect(text).toContain("waiting 410  ready 2  running 2  done 100,000+  failed 5");
    expect(text).toMatch(/done\/min +█▂ 42 {3}failed\/min 1 {3}run p50 12 s p95 4 min/);
  });

  it("what ran in the last hours is a line of blocks: low where tasks only waited, blank where nothing is known", () => {
    const column = (running: number, worst: Column["worst"]): Column => ({ running, worst });
    const past = [column(2, "running"), column(1, "failed"), column(0, "wait"), null];
    const lines = layout(frame({ past: pastOf(past) }), { columns: 80, rows: 24 }).lines;
    expect(lines[4]).toBe("last 12 h  █▅▁ ".padEnd(80));
    const look = { colour: true, signs: UNICODE_SIGNS };
    const coloured = layout(frame({ past: pastOf(past), look }), { columns: 80, rows: 24 }).lines;
    expect(coloured[4]).toContain("█\u001b[31m▅\u001b[39m\u001b[33m▁\u001b[39m");
  });

  it("what is most urgent stands below the title, with what to do", () => {
    expect(lines[1]).toBe(
      "! the number of slots is set to 0; do: mailchute set-workers N".padEnd(80),
    );
  });

  it("a running task has its title, id, run, time, agent, cost, progress and words in one line", () => {
    expect(lineWith("fix-login")).toBe(
      "▸ title of fix-login fix-login run 2 1:05 coder $1.22 40 % tests 118/240".padEnd(80),
    );
    expect(lineWith("crawl-eu")).toMatch(/title of crawl-eu +crawl-eu +1:05 +page 9,702/);
  });

  it("what waits is grouped by its reason, with the first task", () => {
    expect(text).toContain("2 WAITING, and why (412)");
    expect(lineWith("wait for other tasks")).toMatch(
      / 372 {2}wait for other tasks {2}Deploy to Europe deploy-eu waits for migrate…/,
    );
  });

  it("failures are grouped by cause, the newest first, with title and id of the newest and the first words of the reason", () => {
    const at = lines.findIndex((line) => line.includes("3 FAILED, by cause, newest first (5)"));
    expect(lines[at + 1]).toMatch(
      /^ {2}Crawl the shops of America crawl-us +1 min ago it ran longer than its limit/,
    );
    expect(lines[at + 2]).toMatch(
      /^ {2}Sync accounts to the CRM +sync-d 4x 2 min ago connect ECONNREFUSED/,
    );
  });

  it("what just ended has its title, id, end, duration and age", () => {
    const ends = [ended("done-b"), ended("bad-a", { end: "failed", why: "exit code 1" })];
    const shown = frame({ past: { columns: [], ended: ends } });
    const drawn = layout(shown, { columns: 80, rows: 24 }).lines;
    const at = drawn.findIndex((line) => line.includes("5 JUST ENDED (2)"));
    expect(drawn[at + 1]).toMatch(/^ {2}title of done-b done-b done +0:40 1 min ago +$/);
    expect(drawn[at + 2]).toMatch(/^ {2}title of bad-a +bad-a failed 0:40 1 min ago +$/);
  });

  it("what needs you, what runs and what has failed is seen, whatever else there is", () => {
    const many = Array.from({ length: 100 }, (_, i) => ended(`end-${i}`));
    const running = Array.from({ length: 100 }, (_, i) => runningRow(`run-${i}`));
    const waiting = Array.from({ length: 9 }, (_, i) => {
      return { code: `${i}`, text: `wait ${i}`, count: null, tasks: [], do: null };
    });
    const made = frame({
      of: overview({ running, waiting }),
      past: { columns: [], ended: many },
      state: { pane: 4 },
    });
    const drawn = textOf(layout(made, { columns: 80, rows: 24 }).lines);
    for (const words of [
      "? plan-7",
      "! the number",
      "run-0",
      "run-1",
      "crawl-us",
      "sync-d",
      "end-0",
    ])
      expect(drawn).toContain(words);
    expect(drawn).toContain("6 GROUPS, LIMITS (3, 1 held)");
  });

  it("a task that waits for its time is named with how long that is", () => {
    const tasks = [{ id: "sync-crm", title: "Sync", why: "", due_ms: NOW_MS + 41_000 }];
    const text = "wait for their time (not_before, backoff)";
    const waiting = [
      { code: "delayed", text, count: { count: 9, is_exact: true }, tasks, do: null },
    ];
    const drawn = layout(frame({ of: overview({ waiting }) }), { columns: 80, rows: 24 });
    expect(textOf(drawn.lines)).toContain(` 9  ${text}  in 0:41  Sync sync-crm`);
  });

  it("the help has room for each key", () => {
    const help = layout(frame({ state: { isHelp: true } }), { columns: 80, rows: 24 });
    const missing = keyTexts().filter((text) => {
      const [keys = ""] = text.split(": ");
      return !help.lines.some((line) => line.startsWith(keys));
    });
    expect(missing).toEqual([]);
    expect(keyTexts().length).toBeGreaterThan(10);
  });

  it("questions come first in the last pane, then obstacles and alerts", () => {
    const at = (part: string): number => lines.findIndex((line) => line.includes(part));
    expect(at("? plan-7  Drop column users.legacy?")).toBeGreaterThan(0);
    expect(lineWith("? plan-7")).toContain("asked 22 min ago");
    expect(at("! the number of slots is set to 0 ")).toBeGreaterThan(at("? plan-7"));
  });

  it("the last line names keys, as many as fit and none cut", () => {
    expect(lines.at(-1)?.trimEnd()).toMatch(/^\? help {2}q quit .*p pause$/);
  });
});

it("a screen below 80 columns leaves out columns, and keeps names, times and words", () => {
  const { lines } = layout(frame(), { columns: 40, rows: 10 });
  expect(lines[3]).toMatch(/^▸ fix-login +1:05 tests 118\/240/);
  // The other panes have no room.
  expect(textOf(lines)).not.toContain("FAILED");
});

it("a wide screen shows beside the rows what is chosen, with its log", () => {
  const { lines } = layout(frame({ task: SHOWN }), { columns: 200, rows: 60 });
  expect(lines[4]).toContain("│ fix-login  RUNNING run 2 of 3, 12:04, $1.22");
  expect(textOf(lines)).toContain("│ third");
  const cursors = START.cursors.map((one, i) => (i === 2 ? { key: "", index: 1 } : one));
  const group = layout(frame({ state: { pane: 2, cursors } }), { columns: 200, rows: 60 });
  expect(textOf(group.lines)).toContain("│   Sync accounts to the CRM sync-d");
});

it("a wide screen has the groups below what is chosen, and fills the rows with what ended", () => {
  const many = Array.from({ length: 60 }, (_, i) => ended(`end-${i}`, { why: `reason ${i}` }));
  const made = frame({ past: { columns: [], ended: many }, task: SHOWN });
  const { lines } = layout(made, { columns: 200, rows: 60 });
  const groups = lines.slice(-6, -2).map((line) => line.split("│")[1] ?? "");
  expect(groups[0]).toMatch(/^ ─6 GROUPS, LIMITS \(3, 1 held\)─/);
  expect(groups[1]).toMatch(/group gpu +1 of 4 in work ▓░░░░ +2 wait \$1.50 today limits cuda/);
  expect(groups[2]).toMatch(/group nightly +0 in work +12 wait +paused: mailchute group resum/);
  expect(groups[3]).toMatch(/limit cuda +– of 1 in work +– wait +at most 6\/min/);
  const left = lines.slice(5, -2).map((line) => line.split("│")[0]?.trim() ?? "");
  expect(left.filter((line) => line === "")).toEqual([]);
  expect(textOf(left)).toMatch(/title of end-36 end-36 done 0:40 1 min ago reason 36/);
});

it("on a wide screen the chosen group is told above the groups, also when nothing has ended", () => {
  const { lines } = layout(frame({ state: { pane: 5 } }), { columns: 200, rows: 60 });
  expect(lines[4]?.split("│")[1]).toMatch(/^ group gpu *$/);
  expect(lines.at(-5)?.split("│")[1]).toMatch(/^ ▸ group gpu +1 of 4 in work ▓░░░░/);
});

it("the page of a group says what is held, why, and what to do, with the tasks that wait there", () => {
  const page = { kind: "group", pane: 5, key: "group nightly", cursor: START.cursors[0]! } as const;
  const { lines } = layout(frame({ state: { pages: [page] } }), { columns: 80, rows: 24 });
  const text = textOf(lines);
  expect(text).toMatch(/group nightly\n0 in work 12 wait/);
  expect(text).toContain("paused: mailchute group resume nightly");
  expect(text).toContain("do: mailchute group resume nightly");
  expect(text).toContain("▸ Weekly report report-7");
});

it("an id that does not fit loses its middle, so that ids of one kind differ", () => {
  const running = ["a", "b"].map((end) => runningRow(`crawl-${"customers-".repeat(4)}${end}`));
  const { lines } = layout(frame({ of: overview({ running }) }), { columns: 80, rows: 24 });
  for (const end of ["a", "b"])
    expect(textOf(lines)).toMatch(new RegExp(`title of craw… crawl-customer…s-customers-${end}`));
});

it("a task is read only when its page or a wide screen needs it", () => {
  const panes = rowsOf(overview(), "");
  expect(wantedTask(START, panes, { columns: 80 })).toBeUndefined();
  expect(wantedTask(START, panes, { columns: 200 })).toBe("fix-login");
  const open = { ...START, pages: [taskPage("x")] };
  expect(wantedTask(open, panes, { columns: 80 })).toBe("x");
});

it.each([
  [
    { state: "silent", text: "silent: last heartbeat 14 s ago", is_attended: true },
    "SILENT: last heartbeat 14 s ago",
  ],
  [{ state: "stopped", text: "stopped 3 min ago", is_attended: false }, "STOPPED 3 min ago"],
  [{ state: "none", text: "no supervisor", is_attended: false }, "NO SUPERVISOR"],
  [{ state: "dead", text: "dead: pid 7 is gone", is_attended: false }, "DEAD: pid 7 is gone"],
  [{ state: "unknown", text: "unknown: it runs on b", is_attended: true }, "UNKNOWN: it runs on b"],
] as const)("freshness is said in words: %o", (health, words) => {
  const { lines } = layout(frame({ of: overview({ health }) }), { columns: 100, rows: 24 });
  expect(lines[0]).toContain(words);
});

it("a tree that cannot be read keeps what was shown, with its age", () => {
  const made = frame({ trouble: "EIO: i/o error", nowMs: NOW_MS + 65_000 });
  const { lines } = layout(made, { columns: 80, rows: 24 });
  expect(lines[0]).toContain("UNREADABLE");
  expect(lines[1]).toContain("! EIO: i/o error; what is shown is from 1 min ago");
  expect(textOf(lines)).toContain("fix-login");
});

it("an empty pool says so in each pane", () => {
  const { counts } = overview();
  const zero = { count: 0, is_exact: true };
  const empty = overview({
    counts: {
      ...counts,
      waiting: zero,
      ready: 0,
      running: 0,
      done: zero,
      failed: zero,
      skipped: zero,
    },
    running: [],
    waiting: [],
    groups: [],
    failures: { causes: [], titles: {}, grouped: 0, is_all: true },
    questions: [],
    obstacles: [],
    alerts: [],
    run_time: null,
    cost: { today_usd_micro: null, is_complete: true },
  });
  const text = textOf(layout(frame({ of: empty }), { columns: 80, rows: 24 }).lines);
  for (const words of [
    "1 RUNNING (0) nothing runs",
    "nothing waits",
    "nothing has failed",
    "nothing needs you",
    "nothing has ended",
    "config.yaml names none",
  ])
    expect(text).toContain(words);
  expect(text).toContain("run –");
  expect(text).not.toContain("$");
});

it("of more failures than were grouped the number of both is said", () => {
  const of = overview({ failures: { ...overview().failures, is_all: false } });
  const text = textOf(layout(frame({ of }), { columns: 80, rows: 24 }).lines);
  expect(text).toContain("3 FAILED, by cause, newest first (the latest 5 of 5)");
});

it("the chosen row stays on the screen, however long the list", () => {
  const running = Array.from({ length: 200 }, (_, i) => runningRow(`task-${i}`));
  const of = overview({ running });
  for (const index of [0, 7, 100, 199]) {
    const cursors = START.cursors.map((one, i) => (i === 0 ? { key: "", index } : one));
    const { lines } = layout(frame({ of, state: { cursors } }), { columns: 80, rows: 24 });
    expect(lines.filter((line) => line.startsWith(`▸ title of task-${index} `))).toHaveLength(1);
  }
});

it("each pane gets its least, then the chosen one what it needs", () => {
  expect(share(20, [50, 50, 50, 50, 50, 50], 1)).toEqual([3, 9, 3, 2, 2, 1]);
  // As many as 80 x 24 has room for: no pane is without a row.
  expect(share(11, [9, 9, 9, 9, 9, 9], 0)).toEqual([2, 2, 2, 2, 2, 1]);
  expect(share(16, [0, 2, 0, 1], 0)).toEqual([13, 2, 0, 1]);
  expect(share(3, [9, 9, 9, 9], 3)).toEqual([1, 0, 1, 1]);
  expect(share(9, [1, 1, 1, 1, 1], 5)).toEqual([1, 1, 1, 1, 5]);
});

it("without UTF-8 no sign of ours is beyond ASCII", () => {
  const made = frame({ look: { colour: false, signs: ASCII_SIGNS } });
  const text = textOf(layout(made, { columns: 200, rows: 60 }).lines);
  expect(text).toMatch(/^[ -~\n]*$/);
});

it("a log shows its last lines, and where the page stands", () => {
  const follows = frame({ state: { pages: [taskPage("fix-login")] }, task: SHOWN });
  const first = layout(follows, { columns: 80, rows: 24 });
  expect(textOf(first.lines)).toContain("stdout.log 19 B, follows the end");
  expect(first.log.firstStart).toBe(0);
  const paused = frame({
    state: { pages: [{ ...taskPage("fix-login"), to: 13 }] },
    task: { ...SHOWN, log: { ...SHOWN.log!, page: { ...SHOWN.log!.page, to: 13 } } },
  });
  expect(textOf(layout(paused, { columns: 80, rows: 24 }).lines)).toContain("6 B below, G returns");
});
