/** How many keys and values a YAML text may have: it takes seconds to read so many. */
import { expect, test } from "vitest";
import { parseYaml } from "../../src/codec/yaml.ts";
import { YAML_PARTS_MAX } from "../../src/core/limits.ts";

test("a text is read as long as it is not too much, and refused where it becomes that", () => {
  // A value, the mark that the library puts before it, and a comma each.
  const few = Math.floor((YAML_PARTS_MAX - 20) / 3);
  expect(parseYaml(`[${"a,".repeat(few)}]\n`).errors).toEqual([]);
  const { errors, contents } = parseYaml(`[${"a,".repeat(2 * few)}]\n`);
  expect(errors.map(({ message }) => message)).toEqual([
    `more than ${YAML_PARTS_MAX} keys, values, marks and spaces`,
  ]);
  expect(errors[0]?.pos[0]).toBeGreaterThan(2 * few);
  expect(contents).toBeNull();
});
