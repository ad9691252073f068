/** The check of an object whose members may all be left out looks at each member alone. */
import { expect, it } from "vitest";
import { compileCheck } from "../../src/codec/schema.ts";
import { TaskSchema } from "../../src/codec/task-codec.ts";
import { Type, Value } from "../../src/codec/typebox.ts";

const VALUES: readonly unknown[] = [
  undefined,
  null,
  true,
  0,
  1,
  -1,
  1.5,
  2 ** 60,
  Number.NaN,
  "",
  "text",
  "a\u0000b",
  "auto",
  "none",
  "file:/x",
  [],
  ["x"],
  [""],
  [["x"]],
  [{ id: "x" }],
  [{ id: "x", required_status: "terminal", more: 1 }],
  {},
  { read: ["x"] },
  { A: "file:/x" },
  { A: 1 },
  { dependencies: ["x"] },
  { dependencies: [1] },
  { soft_usd: 1 },
  { soft_usd: -1 },
  { memory_bytes: 0, more: 1 },
];

const check = compileCheck(TaskSchema);
const fits = (value: unknown): boolean => check(value) === undefined;

it.each([...Object.keys(TaskSchema.properties), "other", "constructor"])(
  "a task's %s fits when the whole schema says so",
  (name) => {
    for (const value of VALUES) {
      const task = { id: "a", [name]: value };
      expect(fits(task), JSON.stringify(task)).toBe(Value.Check(TaskSchema, task));
    }
  },
);

it("what is no object does not fit", () => {
  for (const value of [undefined, null, 1, "x", [], [["id", "x"]]]) expect(fits(value)).toBe(false);
});

it("of two bad members one is named", () => {
  expect(check({ id: "a", priority: "high", title: 1 })?.message).toMatch(/^(title|priority): /);
});

it("a wrong word is answered with the words that are allowed", () => {
  const words = ["now", "next"].map((word) => Type.Literal(word));
  const when = Type.Union(words, { description: "when it comes" });
  const choice = compileCheck(Type.Object({ when }));
  expect(choice({ when: "later" })?.message).toBe(
    "when: expected one of now, next, found a text of 5 characters",
  );
});
