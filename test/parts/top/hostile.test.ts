/** Whatever tasks, agents and file names say, only our own steering reaches the terminal, and every line keeps its cells. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { frameOf } from "../../../src/cli/text/live-screen.ts";
import { ASCII_SIGNS, UNICODE_SIGNS } from "../../../src/parts/top/cells.ts";
import { layout } from "../../../src/parts/top/layout.ts";
import { taskPage } from "../../../src/parts/top/press.ts";
import { inert } from "../../../src/text/inert.ts";
import { logLine } from "../../../src/text/log-line.ts";
import { widthOf } from "../../../src/text/render.ts";
import { ended, frame, NOW_MS, overview, runningRow } from "./made.ts";

/** Ours: a place, erasing, and colours; the update around them. */
const OURS =
  /\x1b\[\?2026[hl]|\x1b\[\d{1,3}H|\x1b\[[KJ]|\x1b\[(?:(?:0|1|2|3|4|7|22|23|24|27|3[0-79]|9[0-7])(?:;(?:0|1|2|3|4|22|23|24|3[0-79]|9[0-7]))*)m/g;
const STEERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/u;

const PIECES = [
  "\x1b[31m",
  "\x1b[38;5;196m",
  "\x1b[48;2;1;2;3;8m",
  "\x1b[8mhidden",
  "\x1b]52;c;aGk=\x07",
  "\x1b]0;title\x1b\\",
  "\x1bP1$tx\x1b\\",
  "\x1b[2J\x1b[H",
  "\x1b[?1049l",
  "\x9b2J",
  "\x1b",
  "\x07\b\r\n\t\0",
  "\u202eevil\u2066",
  "\u200b\ufeff\u00ad",
  "e\u0301\u0301\u0301\u0301\u0301",
  "日本語",
  "👍🏽",
  "⚠\ufe0f",
  "👨\u200d👩\u200d👧",
  "\u{20000}",
  "\ud800",
  "\u2028",
  "plain text",
  "::progress 40 x",
];
const text = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: "binary", maxLength: 8 })), {
    maxLength: 12,
  })
  .map((parts) => parts.join(""));

it("no escape byte but our own reaches the terminal (1,000 generated screens)", () => {
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 12, maxLength: 12 }),
      fc.constantFrom(1, 20, 40, 80, 200),
      fc.boolean(),
      fc.constantFrom("panes", "task", "group", "answer"),
      (texts, columns, colour, screen) => {
        const t = (n: number): string => texts[n] ?? "";
        const base = overview();
        const of = overview({
          state_dir: t(0),
          health: { state: "dead", text: t(1), is_attended: false },
          running: [
            runningRow(t(2), { agent: t(3), last_line: t(4), progress: { pct: 1, text: t(5) } }),
            runningRow("b", { last_line: t(4), title: t(6) }),
          ],
          waiting: [
            {
              code: t(0),
              text: t(1),
              count: null,
              tasks: [{ id: t(2), title: t(5), why: t(3), due_ms: 1 }],
              do: t(4),
            },
          ],
          failures: {
            ...base.failures,
            titles: { [t(8)]: t(9) },
            causes: [
              { kind: t(5), error: t(6), count: 2, tasks: [t(7), t(8)], first_ms: 0, last_ms: 0 },
            ],
          },
          groups: base.groups.map((one, i) => {
            return { ...one, name: t(i), why: t(i + 3), do: t(i + 6), limits: [t(9)] };
          }),
          questions: [{ id: t(9), question: t(10), who: t(11), expects: "text", asked_at_ms: 0 }],
          obstacles: [{ what: t(1), do: t(2) }],
          alerts: [{ kind: t(3), message: t(4), at_ms: NOW_MS }],
        });
        const page = { lines: [t(0), t(1), t(2)], starts: [0, 1, 2], to: 3, size: 3 };
        const made = frame({
          of,
          trouble: t(7),
          past: { columns: [], ended: [ended(t(0), { title: t(1), why: t(2), end: "failed" })] },
          step: inert(t(8)),
          look: { colour, signs: columns === 20 ? ASCII_SIGNS : UNICODE_SIGNS },
          state: {
            filter: screen === "panes" ? t(11).slice(0, 1) : "",
            pages:
              screen === "task"
                ? [{ ...taskPage("x"), search: t(9) }]
                : screen === "group"
                  ? [
                      {
                        kind: "group",
                        pane: columns === 80 ? 5 : 3,
                        key: columns === 80 ? `group ${t(0)}` : `question ${t(9)}`,
                        cursor: { key: "", index: 0 },
                      },
                    ]
                  : [],
            prompt:
              screen === "answer"
                ? { kind: "input", what: "answer", label: inert(t(10)), text: t(11), id: t(9) }
                : undefined,
          },
          task: {
            id: screen === "task" ? "x" : t(2),
            page: {
              id: t(2),
              state: "failed",
              path: t(3),
              title: t(4),
              attempt: 1,
              attempts_max: 2,
              agent: t(5),
              group: t(6),
              priority: 1,
              program: [],
              prompt: "",
              failed_lines: null,
              after: [t(7)],
              error: { kind: t(8), text: t(9), do: t(10) },
              run_dir: null,
              files: [{ name: t(11), bytes: 1 }],
              began_ms: 1,
              changed_ms: 1,
            },
            why: { text: t(0), do: t(1) },
            log: { name: "stdout.log", path: "/", page, toLines: (raw) => [logLine(raw, colour)] },
          },
        });
        const { lines } = layout(made, { columns, rows: 24 });
        expect(lines).toHaveLength(24);
        const sent = frameOf(undefined, lines, { columns, rows: 24 });
        const plain = sent.replace(OURS, "");
        expect(plain).not.toMatch(STEERS);
        for (const line of lines) {
          const shown = line.replace(OURS, "");
          expect(widthOf(shown)).toBeLessThanOrEqual(columns);
          // More would be drawn over the lines around it.
          expect(shown).not.toMatch(/\p{M}{3}/u);
        }
        if (!colour) expect(sent).not.toMatch(/\x1b\[[0-9;]*m/);
      },
    ),
    { numRuns: 1000 },
  );
});

it("a line of a log keeps its colours, and nothing that hides, blinks or lasts", () => {
  expect(logLine("\x1b[1;31mred\x1b[0m plain", true)).toBe("\x1b[1;31mred\x1b[0m plain\x1b[0m");
  expect(logLine("\x1b[8;5;7mx", true)).toBe("x\x1b[0m");
  expect(logLine("\x1b[38;5;196;1mx\x1b[48;2;1;2;3my", true)).toBe("\x1b[1mxy\x1b[0m");
  expect(logLine("\x1b[31mred", false)).toBe("red");
  expect(logLine("10 %\r50 %\r100 %\r", false)).toBe("100 %");
  expect(logLine("a\tb\t\tc", false)).toBe("a       b               c");
  expect(logLine("\x1b]0;t\x07x", true)).toBe("\\x1b]0;t\\x07x");
});

it("widths are those of a terminal", () => {
  for (const [shown, width] of [
    ["⚠", 1],
    ["✓✗▶", 3],
    ["👍", 2],
    ["🇩🇪", 2],
    ["日本", 4],
    ["\u{20000}", 2],
    ["e\u0301", 1],
    ["▓░─│▸", 5],
  ] as const)
    expect(widthOf(shown), shown).toBe(width);
});
