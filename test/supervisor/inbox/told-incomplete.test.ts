/** A file that is just being dropped is no news; one that stays incomplete is. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { IncompleteFiles } from "../../../src/supervisor/inbox/pending-files.ts";
import { newPool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

it("people hear of a file when it has been incomplete for half a second, also when it still grows", () => {
  let nowMs = 1000;
  const files = new IncompleteFiles(
    { monotonicMs: () => nowMs, wallMs: () => nowMs, random: () => 0.5 },
    60_000,
  );
  const facts = {
    kind: "file",
    dev: 1,
    ino: 1,
    mtimeMs: 1,
    ctimeMs: 1,
    nlink: 1,
    mode: 0,
    uid: 0,
  } as const;
  const look = (size: number): boolean => files.isQuiet("a.json", { ...facts, size });
  look(1);
  expect([files.count, files.toldCount()]).toEqual([1, 0]);
  nowMs += 300;
  look(2);
  expect(files.toldCount()).toBe(0);
  nowMs += 300;
  look(3);
  expect(files.toldCount()).toBe(1);
  files.forget("a.json");
  expect(files.toldCount()).toBe(0);
});

it("status says nothing of a task right after enqueue, and names a file that stays torn", async () => {
  const pool = newPool();
  await pool.start();
  await pool.run(["pause", "--wait"]);
  for (let n = 0; n < 4; n++) {
    await pool.run(["enqueue", "--id", `t${n}`, "--", "true"]);
    expect((await pool.run(["status"])).stdout).not.toContain("still being written");
  }
  const torn = fs.openSync(join(pool.inbox, "torn.json"), "w");
  onTestFinished(() => fs.closeSync(torn));
  fs.writeSync(torn, '{"exec": [');
  await waitFor(
    async () => (await pool.run(["status"])).stdout.includes("1 task is still being written"),
    { what: "the torn file in status" },
  );
});
