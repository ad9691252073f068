/** README.md names every verb, code and setting that there is, and none that is not. */
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { EXIT } from "../src/cli/exit-codes.ts";
import { REGISTRY } from "../src/cli/registry.ts";
import { COMMAND_NAMES } from "../src/core/command.ts";
import { DEFAULT_SETTINGS } from "../src/core/settings.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const readme = fs.readFileSync(`${ROOT}README.md`, "utf8");

/** Error codes that the sources hold as a string. */
function codesInSources(): string[] {
  const codes = new Set<string>();
  for (const name of fs.readdirSync(`${ROOT}src`, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts")) continue;
    const text = fs.readFileSync(`${ROOT}src/${name}`, "utf8");
    for (const [, code] of text.matchAll(/"(Err[A-Z][A-Za-z]+)"/g)) codes.add(code as string);
  }
  return [...codes].sort();
}

function leaves(value: object, path: string[] = []): [string, unknown][] {
  return Object.entries(value).flatMap(([key, one]): [string, unknown][] =>
    typeof one === "object" && !Array.isArray(one)
      ? leaves(one as object, [...path, key])
      : [[[...path, key].join("."), one]],
  );
}

describe("the README", () => {
  test.each(Object.keys(REGISTRY))("names the command %s", (verb) => {
    expect(readme).toMatch(new RegExp(`^\\|.*\`${verb}[ \`]`, "m"));
  });

  test.each([...COMMAND_NAMES])("names the control command %s", (name) => {
    expect(readme).toContain(`\`${name}\``);
  });

  // Given to what never ran because it was put back: no record can hold it.
  test.each(codesInSources())("explains %s", (code) => {
    expect(readme).toMatch(new RegExp(`^\\| \`${code}\` \\|`, "m"));
  });

  test("explains no error code that does not exist", () => {
    const known = codesInSources();
    for (const [, code] of readme.matchAll(/`(Err[A-Z]\w+)`/g)) expect(known).toContain(code);
  });

  test.each(Object.values(EXIT))("explains exit code %i", (code) => {
    expect(readme).toMatch(new RegExp(`\\| ${code} \\|`));
  });

  test.each(leaves(DEFAULT_SETTINGS))("lists the setting %s with its default", (key, value) => {
    const shown = Array.isArray(value) ? `[${value.join(", ")}]` : String(value);
    const settings = readme.slice(readme.indexOf("## Settings")).split("\n");
    const row = settings.find((line) => line.startsWith(`| \`${key}\` |`));
    expect(row?.split("|")[2]?.trim().replaceAll("`", "")).toBe(shown);
    if (!Array.isArray(value))
      expect(row).toContain(`MAILCHUTE_${key.replace(".", "_").toUpperCase()}\``);
  });
});
