/** `events`: a span of time over rotated files, the last few, and both while following. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { type Cli, newCli, put } from "./run-cli.ts";

const JOURNAL = "analytics/supervisor_lifecycle.jsonl";
const HOUR = 3_600_000;

const event = (id: string, t: number): string =>
  `${JSON.stringify({ event: "completed", task_id: id, t })}\n`;

/** A journal with one rotated file: `old` five hours ago, `mid` three, `new` one, `now` just now. */
function newJournal(): Cli {
  const cli = newCli();
  const nowMs = Date.now();
  put(cli, "analytics/supervisor_lifecycle.20260101T000000Z.jsonl", event("old", nowMs - 5 * HOUR));
  const lines = [event("mid", nowMs - 3 * HOUR), event("new", nowMs - HOUR), event("now", nowMs)];
  put(cli, JOURNAL, lines.join(""));
  return cli;
}

async function idsOf(cli: Cli, ...args: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await cli(["events", ...args]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout.split("\n").flatMap((line) => (line === "" ? [] : JSON.parse(line).task_id));
}

test("--since and --until choose a span of time, also of rotated files", async () => {
  const cli = newJournal();
  expect(await idsOf(cli)).toEqual(["mid", "new", "now"]);
  expect(await idsOf(cli, "--since", "6h")).toEqual(["old", "mid", "new", "now"]);
  expect(await idsOf(cli, "--since", "4h", "--until", "30m")).toEqual(["mid", "new"]);
  expect(await idsOf(cli, "--until", "4h")).toEqual(["old"]);
});

test("-n shows the last few of those that are wanted", async () => {
  const cli = newJournal();
  expect(await idsOf(cli, "-n", "2")).toEqual(["new", "now"]);
  expect(await idsOf(cli, "--since", "6h", "-n", "3")).toEqual(["mid", "new", "now"]);
  expect(await idsOf(cli, "--task", "mid", "--task", "new", "-n", "1")).toEqual(["new"]);
  expect(await idsOf(cli, "-n", "100")).toEqual(["mid", "new", "now"]);
});

test("a time that is none, and a span that is empty, are refused", async () => {
  const cli = newJournal();
  const refusals = [
    [["--since", "yesterday"], "--since wants a time of the day"],
    [["--since", "1h", "--until", "2h"], "--since is not before --until"],
    [["-f", "--until", "1h"], "--follow and --until exclude each other"],
    [["-n", "0"], "-n wants a whole number"],
  ] as const;
  for (const [args, words] of refusals) {
    const { code, stderr } = await cli(["events", ...args]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(words) });
  }
});

test("-f with -n and --since shows the last ones that were there, and then all that come", async () => {
  const cli = newJournal();
  const launcher = new URL("../../bin/mailchute.js", import.meta.url).pathname;
  const args = ["events", "-f", "--since", "6h", "-n", "2"];
  const child = spawn(process.execPath, [launcher, ...args], { cwd: cli.dir });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const seen: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    seen.push(JSON.parse(line).task_id);
    if (seen.length === 2)
      for (const id of ["a", "b", "c"])
        fs.appendFileSync(join(cli.dir, "state", JOURNAL), event(id, Date.now()));
    if (seen.length === 5) break;
  }
  expect(seen).toEqual(["new", "now", "a", "b", "c"]);
});
