/** `schedule`: what it shows, and pause, resume and run while a pool is on. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, type Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

function write(pool: Pool, name: string, text: string): void {
  fs.mkdirSync(join(pool.state, "schedules"), { recursive: true });
  fs.writeFileSync(join(pool.state, "schedules", `${name}.yaml`), text);
}

const entry = async (pool: Pool, name: string): Promise<Record<string, unknown>> => {
  const { stdout } = await pool.run(["schedule", "ls", "--json"]);
  const { schedules } = JSON.parse(stdout) as { schedules: Record<string, unknown>[] };
  return schedules.find((one) => one["name"] === name) ?? {};
};

test("ls, show and next say when a schedule fires, and name a file that cannot be used", async () => {
  const pool = newPool();
  expect((await pool.run(["schedule", "ls"])).stderr).toContain("there are no schedules");
  write(pool, "nightly", 'cron: "30 2 * * *"\ntimezone: UTC\ntask: {exec: [make, nightly]}\n');
  expect((await pool.run(["schedule", "ls"])).stdout).toMatch(
    /^nightly +30 2 \* \* \* \(UTC\) +\d{4}-/m,
  );
  const { stdout } = await pool.run(["schedule", "next", "nightly", "-n", "3", "--json"]);
  const { next } = JSON.parse(stdout) as { next: number[] };
  expect(next.map((ms) => new Date(ms).toISOString().slice(11, 16))).toEqual([
    "02:30",
    "02:30",
    "02:30",
  ]);
  expect((next[0] ?? 0) > Date.now() && (next[0] ?? 0) <= Date.now() + 86_400_000).toBe(true);
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const lines = (await pool.run(["schedule", "next", "nightly", "-n", "2"])).stdout.trim();
  expect(lines.split("\n").map((line) => line.split(" ").slice(2).join(" "))).toEqual([zone, zone]);
  expect((await pool.run(["schedule", "show", "nightly"])).stdout).toMatch(
    /task +\{"exec":\["make","nightly"\]\}/,
  );
  write(pool, "bad", "every: 1x\ntask: {exec: [x]}\n");
  const all = await pool.run(["schedule", "ls"]);
  expect(all.code).toBe(1);
  expect(all.stdout).toMatch(/^bad +bad file/m);
  expect(all.stderr).toContain('schedules/bad.yaml: every: "1x" is no time');
  expect((await pool.run(["schedule", "next", "bad"])).stderr).toContain("ErrInvalidConfig");
  expect(await pool.run(["schedule", "show", "nope"])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining("no schedule"),
  });
});

test("next without a name shows the next time of each schedule, without paused ones, and names a bad file", async () => {
  const pool = newPool();
  expect(await pool.run(["schedule", "next"])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("no schedule fires any more"),
  });
  write(pool, "often", "every: 1h\ntask: {exec: [x]}\n");
  write(pool, "less", "every: 2h\ntask: {exec: [x]}\n");
  write(pool, "never", "every: 1h\npaused: true\ntask: {exec: [x]}\n");
  write(pool, "still", "every: 1h\ntask: {exec: [x]}\n");
  await pool.run(["schedule", "pause", "still"]);
  const { stdout } = await pool.run(["schedule", "next", "-n", "3", "--json"]);
  const { next } = JSON.parse(stdout) as { next: { name: string; at_ms: number }[] };
  expect(next.map(({ name }) => name).sort()).toEqual([
    "less",
    "less",
    "less",
    "often",
    "often",
    "often",
  ]);
  expect(next.map(({ at_ms }) => at_ms)).toEqual(
    next.map(({ at_ms }) => at_ms).sort((a, b) => a - b),
  );
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const lines = (await pool.run(["schedule", "next"])).stdout.trim().split("\n");
  expect(lines).toHaveLength(2);
  expect(lines.every((line) => / (often|less)$/.test(line) && line.includes(` ${zone} `))).toBe(
    true,
  );
  expect((await pool.run(["schedule", "ls"])).stdout).toContain(`NEXT (${zone})`);
  expect((await pool.run(["schedule", "show", "often"])).stdout).toMatch(
    new RegExp(`^next .* ${zone}$`, "m"),
  );
  write(pool, "bad", "every: 1x\ntask: {exec: [x]}\n");
  expect(await pool.run(["schedule", "next"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("schedules/bad.yaml cannot be used"),
  });
});

test("a task runs by its schedule and by hand, knows its time, and waits while it is paused", async () => {
  const pool = newPool();
  write(
    pool,
    "tick",
    "every: 1s\ntask: {exec: [sh, -c, 'echo $MAILCHUTE_SCHEDULED_FOR'], metadata: {a: 1}}\n",
  );
  write(pool, "slow", "every: 365d\ntask: {exec: [sleep, '60']}\n");
  await pool.start();
  await waitFor(async () => Number((await entry(pool, "tick"))["fired"]) >= 2, {
    what: "two times",
  });
  expect((await pool.run(["schedule", "pause", "tick"])).stdout).toBe("tick is paused\n");
  expect((await pool.run(["schedule", "pause", "tick"])).stdout).toBe("tick was paused already\n");
  await waitFor(async () => Number((await entry(pool, "tick"))["skipped"]) >= 1, {
    what: "a time that passes",
  });
  const { last_id: id, fired, paused, next_ms: nextMs } = await entry(pool, "tick");
  expect({ paused, nextMs }).toEqual({ paused: true, nextMs: null });
  const record = await pool.result(String(id));
  expect(record).toMatchObject({
    status: "completed",
    task: { title: "tick", metadata: { a: 1, schedule: { name: "tick" } } },
  });
  const { stdout } = await pool.run(["logs", String(id)]);
  expect(`tick.${stdout.trim().slice(0, 19).replace(/[-:]/g, "")}Z`).toBe(id);
  await pool.run(["schedule", "resume", "tick"]);
  await waitFor(async () => Number((await entry(pool, "tick"))["fired"]) > Number(fired), {
    what: "the next time",
  });
  const byHand = await pool.run(["schedule", "run", "slow"]);
  expect(byHand.stdout).toMatch(/^slow\.manual-\w+\n$/);
  const again = await pool.run(["schedule", "run", "slow"]);
  expect(again).toMatchObject({ code: 4, stderr: expect.stringContaining("has not ended") });
});
