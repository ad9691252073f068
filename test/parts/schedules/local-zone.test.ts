/** The zone of a schedule that names none, whatever `TZ` says. */
import { execFile } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { programPath } from "../../support/programs.ts";
import { tempDir } from "../../support/temp-dir.ts";

const run = promisify(execFile);
const MAILCHUTE = programPath("../../../bin/mailchute.js");

/** `TZ`, and the hours between 07:00 there and 07:00 in UTC. */
const ZONES: readonly (readonly [string, number])[] = [
  ["", 0],
  ["   ", 0],
  [":UTC", 0],
  ["garbage", 0],
  ["../../etc/passwd", 0],
  [":Asia/Tokyo", -9],
  ["/usr/share/zoneinfo/Asia/Tokyo", -9],
  // What other programs make of it: the sign says how far it is to the west.
  ["UTC+3", 3],
];

async function treeWithSchedule(): Promise<string> {
  const state = join(tempDir(), "state");
  await run(process.execPath, [MAILCHUTE, "init", state]);
  fs.mkdirSync(join(state, "schedules"), { recursive: true });
  fs.writeFileSync(
    join(state, "schedules", "d.yaml"),
    'cron: "0 7 * * *"\ntask: {exec: ["true"]}\n',
  );
  return state;
}

it("takes a schedule without a zone with any TZ, at the times that Date has", async () => {
  const state = await treeWithSchedule();
  const hours = await Promise.all(
    ZONES.map(async ([zone]) => {
      const { stdout } = await run(
        process.execPath,
        [MAILCHUTE, "schedule", "next", "d", "-n", "1", "--json", "--state", state],
        { env: { ...process.env, TZ: zone } },
      ).catch((error: { stderr: string }) => ({ stdout: error.stderr }));
      const [, ms] = /"next":\[(\d+)\]/.exec(stdout) ?? [];
      return [zone, ms === undefined ? stdout : new Date(Number(ms)).getUTCHours() - 7];
    }),
  );
  expect(
    hours.map(([zone, h]) => [zone, typeof h === "number" ? ((h + 36) % 24) - 12 : h]),
  ).toEqual(ZONES);
});

it("shows no zone that nobody knows", async () => {
  const state = await treeWithSchedule();
  const { stdout } = await run(
    process.execPath,
    [MAILCHUTE, "schedule", "next", "d", "-n", "1", "--state", state],
    { env: { ...process.env, TZ: "" } },
  );
  expect(stdout).toMatch(/ 07:00 UTC\n$/);
});
