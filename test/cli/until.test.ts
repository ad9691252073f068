/** run --until and --keep-awake: nothing new starts after a time, and the machine stays awake until then. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readUntil } from "../../src/cli/shell/until.ts";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";

it("takes a time of the day for the next one of that name, and a duration from now", () => {
  const now = new Date(2026, 2, 1, 22, 30).getTime();
  expect(readUntil("07:00", now)).toBe(new Date(2026, 2, 2, 7, 0).getTime());
  expect(readUntil("23:15", now)).toBe(new Date(2026, 2, 1, 23, 15).getTime());
  expect(readUntil("22:30", now)).toBe(new Date(2026, 2, 2, 22, 30).getTime());
  expect(readUntil("8h", now)).toBe(now + 8 * 3_600_000);
  for (const wrong of ["25:00", "7:60", "noon", ""])
    expect(() => readUntil(wrong, now), wrong).toThrow("wants a time of the day or a duration");
});

it("is what --delay of enqueue and edit takes, too", async () => {
  const pool = newPool();
  const dueOf = async (args: readonly string[]): Promise<number> => {
    expect(await pool.run(args)).toMatchObject({ code: 0 });
    return 1000 * JSON.parse(fs.readFileSync(join(pool.inbox, "a.json"), "utf8"))["not_before"];
  };
  const near = (found: number, wanted: number): void => {
    expect(Math.abs(found - wanted)).toBeLessThan(timeLimitMs(60_000));
  };
  const due = await dueOf(["enqueue", "--id", "a", "--delay", "1h30m", "--", "true"]);
  near(due, Date.now() + 5_400_000);
  near(await dueOf(["edit", "a", "--delay", "2h"]), Date.now() + 7_200_000);
  const clock = new Date(await dueOf(["edit", "a", "--delay", "07:05"]));
  expect([clock.getHours(), clock.getMinutes(), clock.getSeconds()]).toEqual([7, 5, 0]);
  expect(await dueOf(["edit", "a", "--delay", "0"])).toBeNaN();
  const { code, stderr } = await pool.run(["edit", "a", "--delay", "noon"]);
  expect(code).toBe(2);
  expect(stderr).toContain('--delay wants a time of the day or a duration, found "noon"');
});

it("starts nothing after its time, lets what runs end, and leaves the rest in the inbox", async () => {
  const pool = newPool({ config: QUICK_CONFIG.replace("workers: 4", "workers: 1") });
  const go = join(pool.dir, "go");
  pool.drop("a", { exec: ["sh", "-c", `until [ -e ${go} ]; do sleep 0.1; done`] });
  // On a busy machine the start of a takes longer, too.
  const untilMs = Math.round(timeLimitMs(5000));
  const run = await pool.start(["--until", `${untilMs}ms`]);
  await waitFor(() => fs.readdirSync(pool.processing).some((name) => name.includes("~w")), {
    what: "the start of a",
  });
  pool.drop("b", { exec: ["true"] });
  await waitFor(() => run.stderr().includes("the time of --until has come"), {
    what: "its time",
    timeoutMs: 30_000,
  });
  fs.writeFileSync(go, "");
  expect(await run.ended).toEqual({ exitCode: 0, signal: null });
  expect(pool.results().map(({ task_id: id }) => id)).toEqual(["a"]);
  expect(fs.readdirSync(pool.inbox)).toEqual(["b.json"]);
});

it("refuses a time that is none", async () => {
  const { code, stderr } = await newPool().run(["run", "--until", "dawn"]);
  expect(code).toBe(2);
  expect(stderr).toContain("for example 07:00");
});

/** A folder with a systemd-inhibit that does what the text says. */
function withInhibit(text: string): { PATH: string } {
  const dir = tempDir();
  fs.writeFileSync(join(dir, "systemd-inhibit"), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return { PATH: `${dir}:${process.env["PATH"]}` };
}

it("holds a lock against sleep until it ends", async () => {
  const dir = tempDir();
  const env = withInhibit(`echo "$@" > ${dir}/args; cat; echo over > ${dir}/over`);
  const pool = newPool({ env });
  const run = await pool.start(["--keep-awake"]);
  await waitFor(() => fs.existsSync(join(dir, "args")), { what: "the lock" });
  expect(fs.readFileSync(join(dir, "args"), "utf8")).toContain("--what=sleep:idle");
  expect(fs.existsSync(join(dir, "over"))).toBe(false);
  run.child.kill("SIGKILL");
  await waitFor(() => fs.existsSync(join(dir, "over")), { what: "the end of the lock" });
});

it("says so when it cannot keep the machine awake, and runs all the same", async () => {
  const env = withInhibit("echo 'Failed to inhibit: no bus' >&2; exit 1");
  const pool = newPool({ env });
  const run = await pool.start(["--keep-awake"]);
  await waitFor(() => run.stderr().includes("cannot keep the machine from sleeping"), {
    what: "the notice",
  });
  expect(run.stderr()).toContain("no bus");
  pool.drop("a", { exec: ["true"] });
  await pool.result("a");
});
