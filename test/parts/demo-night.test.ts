/** The demo of a night, as `npm run demo:night` plays it: its own counts are right, its page says what happened, and no process is left. */
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import type { Report } from "../../src/parts/report/report.ts";
import { homeIn, personAt } from "../support/persons-folders.ts";
import { newPool } from "../support/pool.ts";
import { expectSameNumbers, HAS_JQ } from "./report/reader.ts";

const SCRIPT = fileURLToPath(new URL("../../scripts/demo-night.mjs", import.meta.url));
const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
const PAINTER = new URL("../../scripts/night-picture.mjs", import.meta.url);
/** Many times what it takes on a free machine (s). */
const LIMIT_S = 280;

it("plays a quota wait, a crash, a conflict, a question, a budget and a review, and all counts are right", async () => {
  const pool = newPool();
  // Its temporary directory lies in the pool's, whose `pids` then finds all that belongs to it.
  const demo = spawn(process.execPath, [SCRIPT, "--keep", "--limit", String(LIMIT_S)], {
    env: { ...personAt(homeIn(pool)), TMPDIR: pool.dir, PATH: process.env["PATH"] },
  });
  let text = "";
  for (const stream of [demo.stdout, demo.stderr])
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  const code = await new Promise<number | null>((resolve) => demo.once("close", resolve));
  expect(code, text).toBe(0);
  for (const said of [
    "is at the limit of her account",
    '"Build the index": its worker is dead, taken back',
    'gets "Greet politely" back, to mend it',
    'reviews "Mend the parser": fail, the empty line is missing',
    '"Add a licence" waits for a person',
    "Blue or green?",
    "- [x] Greet politely",
    "- [ ] Add a licence",
    "ok    7  items that have landed",
    "All counts are as expected: 8 items, none lost",
  ])
    expect(text).toContain(said);
  expect(text).not.toContain("OFF");
  const wide = text.split("\n").filter((line) => line.length > 80);
  expect(wide.filter((line) => !line.includes("state tree: "))).toEqual([]);
  // The picture of README.md; MAILCHUTE_WRITE_DOCS=1 makes it anew of this night.
  const { drawNight, PICTURE } = (await import(PAINTER.href)) as {
    drawNight: (text: string) => string;
    PICTURE: string;
  };
  const picture = drawNight(text);
  expect(Buffer.byteLength(picture)).toBeLessThan(60_000);
  for (const said of ["its worker is dead, taken back", "[x] Greet politely", "none lost"])
    for (const one of [picture, fs.readFileSync(PICTURE, "utf8")]) expect(one).toContain(said);
  if (process.env["MAILCHUTE_WRITE_DOCS"]) fs.writeFileSync(PICTURE, picture);
  expect(pool.pids()).toEqual([]);
  expect(fs.readdirSync(homeIn(pool))).toEqual([]);
  // Quota waits, costs, landings, crashes and questions as they really come: another reader finds the same numbers.
  const [folder = ""] = fs
    .readdirSync(pool.dir)
    .filter((name) => name.startsWith("mailchute-demo-"));
  const state = join(pool.dir, folder, "state");
  const words = ["report", "--since", "1h", "--json", "--state", state];
  const report = JSON.parse(
    execFileSync(process.execPath, [LAUNCHER, ...words], { encoding: "utf8" }),
  ) as Report;
  const { counts, gates, costs, work } = report;
  expect([counts.landed, counts.not_landed, counts.crashes]).toEqual([7, 1, 1]);
  for (const list of [gates, costs.rows, work]) expect(list.length).toBeGreaterThan(0);
  if (HAS_JQ) expectSameNumbers(state, report);
});
