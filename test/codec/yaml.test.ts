/** How deep a YAML text may nest, and how much may stand in it: what is beyond is refused before it costs the process its stack or memory. */
import { describe, expect, it } from "vitest";
import { parseYaml } from "../../src/codec/yaml.ts";
import { YAML_DEPTH_MAX } from "../../src/core/limits.ts";

const WAYS: [string, (depth: number) => string][] = [
  ["lists in brackets", (depth) => "[".repeat(depth) + "]".repeat(depth)],
  ["lists in brackets, around a value", (depth) => `${"[".repeat(depth)}x${"]".repeat(depth)}`],
  ["maps in braces", (depth) => `${"{a: ".repeat(depth)}1${"}".repeat(depth)}`],
  [
    "lists of maps",
    (depth) => nest(depth, (inner, level) => (level % 2 ? `{a: ${inner}}` : `[${inner}]`)),
  ],
  ["dashes on one line", (depth) => `${"- ".repeat(depth)}x\n`],
  ["dashes on lines of their own", (depth) => lines(depth, "-")],
  ["keys on lines of their own", (depth) => lines(depth, "a:")],
  ["keys that are lists", (depth) => `${"? - ".repeat(depth / 2)}x\n`],
];

function nest(depth: number, around: (inner: string, level: number) => string): string {
  let text = "1";
  for (let level = 0; level < depth; level++) text = around(text, level);
  return text;
}

function lines(depth: number, head: string): string {
  const heads = Array.from({ length: depth }, (_, level) => `${" ".repeat(level)}${head}\n`);
  return `${heads.join("")}${" ".repeat(depth)}x\n`;
}

describe("nesting", () => {
  it.each(WAYS)(
    "of %s is read as deep as is allowed, and refused a little deeper",
    (_way, textOf) => {
      expect(parseYaml(textOf(YAML_DEPTH_MAX)).errors).toEqual([]);
      const { errors, contents } = parseYaml(textOf(YAML_DEPTH_MAX + 4));
      expect(errors.map(({ message }) => message)).toEqual([
        `nested deeper than ${YAML_DEPTH_MAX} levels`,
      ]);
      expect(contents).toBeNull();
    },
  );

  it.each(WAYS)("of %s without end is refused where it becomes too deep", (_way, textOf) => {
    // Of lines that are longer each, a tenth says the same.
    const text = textOf(textOf(2).includes("\n ") ? 2000 : 100_000);
    const { errors } = parseYaml(text.slice(0, text.length / 2));
    expect(errors).toHaveLength(1);
    expect(errors[0]?.message).toContain("nested deeper");
    const before = parseYaml(text.slice(0, (errors[0]?.pos[0] ?? 0) - 1));
    expect(before.errors.map(({ message }) => message).join()).not.toContain("nested deeper");
  });

  it("of a later document counts as well", () => {
    expect(parseYaml(`a: 1\n---\n${"[".repeat(1000)}`).errors[0]?.message).toContain(
      "nested deeper",
    );
  });

  it("is no matter of what stands side by side, nor of what stands in texts", () => {
    const wide = `a: [${"[x], ".repeat(1000)}]\nb: |\n  ${"[{".repeat(1000)}\nc: "${"[".repeat(1000)}"\n`;
    expect(parseYaml(wide).errors).toEqual([]);
  });
});

describe("what stands side by side", () => {
  it("may be wrong throughout: no error keeps the stack that it was found with", () => {
    const { errors } = parseYaml(`[${",".repeat(100_000)}`);
    expect(errors.length).toBeGreaterThan(99_000);
    expect(errors[0]?.stack).not.toMatch(/\n {4}at /);
    expect(new Error("here").stack).toMatch(/\n {4}at /);
  });
});
