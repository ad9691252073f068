#!/usr/bin/env node
/** table.mjs FILE...: the nights of the books that `night.mjs --book` keeps, as the Markdown table of docs/nights.md. */
import fs from "node:fs";

const rows = process.argv
  .slice(2)
  .flatMap((file) => fs.readFileSync(file, "utf8").split("\n").filter(Boolean))
  .map((line) => JSON.parse(line));

/** Whom the items wait for that have not landed, and how many for each reason. */
function waitingOf({ waiting }) {
  const reasons = new Map();
  for (const one of waiting) {
    const [, kind] = /\((\w+)\)/.exec(one);
    reasons.set(kind, (reasons.get(kind) ?? 0) + 1);
  }
  return [...reasons].map(([kind, count]) => `${count} ${kind}`).join(", ") || "-";
}

const tokensOf = ({ input, output }) => input + output;
const HEAD = [
  "night",
  "programs",
  "items",
  "can land",
  "landed",
  "waiting or failed",
  "commits",
  "run ended to landed, median and longest",
  "kills",
  "reboots",
  "full disks",
  "tokens booked, charged",
  "time",
  "faults",
];
const line = (cells) => `| ${cells.join(" | ")} |`;
console.log(line(HEAD));
console.log(line(HEAD.map(() => "---")));
for (const row of rows)
  console.log(
    line([
      row.seed,
      row.programs,
      row.items,
      row.can,
      row.landed,
      waitingOf(row),
      row.commits,
      `${row.to_landed_s.median} s, ${row.to_landed_s.max} s`,
      row.kills,
      row.reboots,
      row.full_disks,
      `${tokensOf(row.tokens.booked)}, ${tokensOf(row.tokens.charged)}`,
      `${row.seconds} s`,
      row.wrong.length,
    ]),
  );
