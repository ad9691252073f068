/** Words quoted for a shell, tried with the shell. */
import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { shellWord } from "../../src/text/shell-word.ts";

const WORDS = [
  "plain",
  "a b",
  "it's",
  '"',
  "$(touch x)",
  "`id`",
  "a\\b",
  "*",
  "~",
  "-n",
  "",
  "é",
  "a;b&c|d",
];

it("a shell reads each quoted word as it was", () => {
  const script = `printf '%s\\n' ${WORDS.map(shellWord).join(" ")}`;
  expect(execFileSync("sh", ["-c", script], { encoding: "utf8" })).toBe(`${WORDS.join("\n")}\n`);
});

it("a control character becomes a question mark, so that a pasted line ends where it is seen to end", () => {
  expect(shellWord("a\nrm -rf x\u001b[2J")).toBe("'a?rm -rf x?[2J'");
});
