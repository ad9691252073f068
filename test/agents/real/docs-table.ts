/** The table of the documents that says what works with which program: it replaces the rows of programs that have been tried again. */
import fs from "node:fs";
import { fileURLToPath } from "node:url";

const PAGE = fileURLToPath(new URL("../../../docs/agents.md", import.meta.url));
const BETWEEN = /(?<=<!-- programs: begin.*-->\n)[\s\S]*?(?=<!-- programs: end -->)/;

/** @param rows by their first cell, each in the order of the columns @param order of all first cells */
export function replaceRows(
  columns: readonly string[],
  rows: ReadonlyMap<string, readonly string[]>,
  order: readonly string[],
): void {
  const page = fs.readFileSync(PAGE, "utf8");
  const before = BETWEEN.exec(page)?.[0].split("\n") ?? [];
  const lineOf = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const lines = order.flatMap((name) => {
    const cells = rows.get(name);
    if (cells !== undefined) return [lineOf([name, ...cells])];
    return before.filter((line) => line.startsWith(`| ${name} |`));
  });
  const table = [lineOf(columns), `|${"---|".repeat(columns.length)}`, ...lines].join("\n");
  fs.writeFileSync(
    PAGE,
    page.replace(BETWEEN, () => `\n${table}\n\n`),
  );
}
