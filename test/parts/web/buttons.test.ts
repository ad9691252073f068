/** Each button asks for something that the server understands, and what loses something is asked before. */
import { expect, it } from "vitest";
import {
  actsOnList,
  actsOnPool,
  actsOnReview,
  actsOnTask,
  answersTo,
  retryThese,
} from "../../../src/parts/web/buttons.ts";
import type { Act } from "../../../src/parts/web/page.ts";
import { lineOf, readWish } from "../../../src/parts/web/verbs.ts";
import { LISTED_STATES } from "../../../src/view/page-of-tasks.ts";

const many = Array.from({ length: 250 }, (_, n) => `task-${n}`);
const ACTS: readonly Act[] = [
  ...LISTED_STATES.flatMap((state) => actsOnTask("a", state)),
  ...LISTED_STATES.flatMap((state) => actsOnList({ state, q: "a" })),
  ...retryThese(["a"]),
  ...retryThese(many),
  ...actsOnPool({ paused: true }, 0),
  ...actsOnPool({ paused: false }, 4),
  ...answersTo({ id: "q" }, "text"),
  ...answersTo({ id: "q" }, "limit"),
  ...actsOnReview("a"),
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
