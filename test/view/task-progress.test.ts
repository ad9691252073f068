/** How far a run is, as the task itself says. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseProgress, progressText, readTaskProgress } from "../../src/view/task-progress.ts";
import { newPool } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

it.each([
  ["40 half of the pages", { pct: 40, text: "half of the pages" }],
  ["40% half", { pct: 40, text: "half" }],
  ["40 %", { pct: 40, text: "" }],
  ["99.5", { pct: 99.5, text: "" }],
  ["250 files", { pct: 100, text: "files" }],
  ["reading", { pct: null, text: "reading" }],
  ["12:30 o'clock", { pct: null, text: "12:30 o'clock" }],
])("reads %j", (line, expected) => {
  expect(parseProgress(line)).toEqual(expected);
});

it("takes the last line of the file, then the last mark in the output, and neither from rubbish", () => {
  const dir = tempDir();
  const write = (name: string, text: string | Buffer): void =>
    fs.writeFileSync(join(dir, name), text);
  expect(readTaskProgress(dir)).toBeUndefined();
  write("stdout.log", "::progress 10 begun\nother\n::progress 20 more\nand so on\n");
  expect(readTaskProgress(dir)).toEqual({ pct: 20, text: "more" });
  write("progress", "30 a\n35 b\n\n");
  expect(readTaskProgress(dir)).toEqual({ pct: 35, text: "b" });
  write("progress", Buffer.alloc(100_000, 0x61));
  expect(readTaskProgress(dir)?.text).toHaveLength(200);
  fs.rmSync(join(dir, "progress"));
  fs.symlinkSync("/dev/zero", join(dir, "progress"));
  expect(readTaskProgress(dir)).toEqual({ pct: 20, text: "more" });
});

it("is drawn as a bar of 20 cells", () => {
  expect(progressText({ pct: 40, text: "x" })).toBe("[########------------]  40 %  x");
  expect(progressText({ pct: 100, text: "" })).toBe("[####################] 100 %");
  expect(progressText({ pct: null, text: "reading" })).toBe("reading");
});

it("status, show and why show it while the task runs, and control characters as text", async () => {
  const pool = newPool();
  await pool.start();
  const go = join(pool.dir, "go");
  const until = `while ! test -e ${go}; do sleep 0.1; done`;
  pool.drop("file", {
    exec: ["sh", "-c", `echo "40 of \\033[2Jall" > "$MAILCHUTE_PROGRESS_FILE"; ${until}`],
  });
  pool.drop("marks", { exec: ["sh", "-c", `echo ::progress 75 nearly; ${until}`] });
  const status = async (): Promise<string> => (await pool.run(["status"])).stdout;
  const hasBoth = async (): Promise<boolean> => {
    const shown = await status();
    return [" 40 %", " 75 %"].every((part) => shown.includes(part));
  };
  await waitFor(hasBoth, { what: "both" });
  const text = await status();
  expect(text).toContain("[###############-----]  75 %  nearly");
  expect(text).not.toContain("\u001b");
  expect((await pool.run(["show", "marks"])).stdout).toMatch(
    /^progress +\[#{15}-{5}\] {2}75 % {2}nearly$/m,
  );
  expect((await pool.run(["why", "marks"])).stdout).toMatch(/^ {2}progress +\[#{15}-{5}\]/m);
  fs.writeFileSync(go, "");
  await pool.result("file");
  expect((await pool.run(["show", "file"])).stdout).not.toMatch(/^progress/m);
});
