/** A state tree says which programs can read it, and a program that is too old changes nothing in it. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Mailbox } from "../../src/library/mailbox.ts";
import { newPool, type Pool } from "../support/pool.ts";

const NEWER = '{"version": 7, "min_reader": 7}';

const formatPath = (pool: Pool): string => join(pool.state, "format.json");

it("is written by the first supervisor, and stays as it is", async () => {
  const pool = newPool();
  await pool.start();
  const text = fs.readFileSync(formatPath(pool), "utf8");
  expect(JSON.parse(text)).toEqual({ version: 2, min_reader: 2 });
  const { ino } = fs.statSync(formatPath(pool));
  await pool.stop();
  await pool.start();
  expect(fs.statSync(formatPath(pool)).ino).toBe(ino);
});

it("keeps the higher numbers of a newer program that this one can still follow", async () => {
  const pool = newPool();
  fs.writeFileSync(formatPath(pool), '{"version": 7, "min_reader": 1}');
  await pool.start();
  expect(JSON.parse(fs.readFileSync(formatPath(pool), "utf8"))).toMatchObject({ version: 7 });
});

it("is written anew when it is broken", async () => {
  const pool = newPool();
  fs.writeFileSync(formatPath(pool), "{");
  await pool.start();
  expect(JSON.parse(fs.readFileSync(formatPath(pool), "utf8"))).toMatchObject({ min_reader: 2 });
});

it.each([[["run", "--once"]], [["worker"]], [["enqueue", "--", "true"]], [["recover"]]])(
  "of a newer program ends `mailchute %s` with an error that says what to do",
  async (args) => {
    const pool = newPool();
    fs.writeFileSync(formatPath(pool), NEWER);
    pool.drop("task", { exec: ["true"] });
    const { code, stderr } = await pool.run(args);
    expect(code).toBe(73);
    expect(stderr).toContain("needs a newer mailchute");
    expect(stderr).toContain("run --drain");
    expect(fs.readdirSync(pool.inbox)).toEqual(["task.json"]);
    expect(fs.readFileSync(formatPath(pool), "utf8")).toBe(NEWER);
  },
);

it("of a newer program keeps the library from opening the mailbox", () => {
  const pool = newPool();
  fs.writeFileSync(formatPath(pool), NEWER);
  expect(() => Mailbox.open(pool.mailbox)).toThrow(/needs a newer mailchute/);
});
