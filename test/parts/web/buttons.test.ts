/** Each button asks for something that the server understands, and what loses something is asked before. */
import { expect, it } from "vitest";
import {
  actsOnList,
  actsOnPool,
  actsOnReview,
  actsOnTask,
  answersTo,
  rejectIt,
  retryThese,
} from "../../../src/parts/web/buttons.ts";
import type { Act } from "../../../src/parts/web/page.ts";
import { lineOf, readWish } from "../../../src/parts/web/verbs.ts";
import { LISTED_STATES } from "../../../src/view/page-of-tasks.ts";

const many = Array.from({ length: 250 }, (_, n) => `task-${n}`);
const WORK = { task_id: "a", agent: "ada", target: "main", protected: [], reviewer: null };
const ACTS: readonly Act[] = [
  ...LISTED_STATES.flatMap((state) => actsOnTask("a", state)),
  ...LISTED_STATES.flatMap((state) => actsOnList({ state, q: "a" }, { count: 3, is_exact: true })),
  ...retryThese(["a"]),
  ...retryThese(many),
  ...actsOnPool({ paused: true }, 0),
  ...actsOnPool({ paused: false }, 4),
  ...answersTo({ id: "q" }, "text"),
  ...answersTo({ id: "q" }, "limit"),
  ...actsOnReview(WORK),
  ...actsOnReview({ ...WORK, protected: ["verify.sh"] }),
  ...actsOnReview({ ...WORK, reviewer: { name: "critic", verdict: "fail" } }),
  rejectIt(WORK),
];

it.each(ACTS.map((act) => [act.what, act.text, act] as const))("%s: %s", (_what, _text, act) => {
  const { verb, ids, number, all, words, field } = act;
  const text = field === undefined ? words : "a text";
  const wish = readWish(JSON.stringify({ verb, ids, number, all, text }));
  if (typeof wish === "string") throw new Error(wish);
  expect(wish).toMatchObject({ verb });
  expect(act.ask !== undefined).toBe(act.text.endsWith("…"));
  expect(["cancel", "requeue"].includes(verb)).toBe(lineOf(wish).verb === "cancel");
  if (verb === "cancel" || verb === "requeue") expect(act.ask).toBeDefined();
});

it("no text is taken for an option of the command line", () => {
  const wish = readWish(JSON.stringify({ verb: "answer", ids: ["--failed"], text: "--json" }));
  expect(lineOf(wish as never)).toEqual({
    verb: "answer",
    positionals: ["--failed", "--json"],
    options: {},
  });
});

it.each(["answer", "reject"])("no text of %s holds a NUL character, and none is blank", (verb) => {
  const read = (text: string) => readWish(JSON.stringify({ verb, ids: ["a"], text }));
  for (const text of ["\0", "a\0", "\0a", "a\0b", " \0 ", " ", ""])
    expect(typeof read(text), JSON.stringify(text)).toBe("string");
  for (const text of ["a", " a b\n"]) expect(read(text)).toMatchObject({ text });
});

it("the question of a long list names how many tasks it has, or at least how many", () => {
  const askOf = (count: number, isExact: boolean): string | undefined =>
    actsOnList({ state: "failed", q: "" }, { count, is_exact: isExact })[0]?.ask;
  expect(askOf(50, true)).toBe("Retry all that are failed?");
  expect(askOf(51, true)).toBe("Retry all that are failed (51 tasks)?");
  expect(askOf(10_000, false)).toBe("Retry all that are failed (more than 10,000 tasks)?");
});
