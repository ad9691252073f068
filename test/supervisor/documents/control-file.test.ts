/** What the pool was told, over the restart of its supervisor. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ControlFile } from "../../../src/supervisor/documents/control-file.ts";
import { newPool } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const QUICK = ["pause", "--wait", "--timeout", "10s"];

function open(path: string): { control: ControlFile; told: string[] } {
  const told: string[] = [];
  return { control: new ControlFile(path, false, (message) => told.push(message)), told };
}

/** @returns false when the file came again before the directory */
function takePlace(path: string): boolean {
  fs.rmSync(path, { recursive: true, force: true });
  try {
    fs.mkdirSync(path);
    return true;
  } catch {
    return false;
  }
}

test("a pause outlives its supervisor; rubbish in its place is no pause", () => {
  const path = join(tempDir(), "control.json");
  open(path).control.change({ paused: true });
  expect(open(path).control.current.paused).toBe(true);
  fs.writeFileSync(path, "{");
  expect(open(path).control.current.paused).toBe(false);
});

test("a file that cannot be read just now is not taken for one that tells nothing", () => {
  // Its first byte is mapped nowhere: a regular file that opens, and answers EIO.
  expect(() => open("/proc/self/mem")).toThrow("EIO");
});

test("a directory in the place of the file is moved aside and told, and the change is saved", () => {
  const path = join(tempDir(), "control.json");
  const { control, told } = open(path);
  control.change({ max_workers: 3 });
  for (const n of [1, 2]) {
    fs.rmSync(path, { recursive: true });
    fs.mkdirSync(path);
    fs.writeFileSync(join(path, "inside"), "precious");
    control.change({ paused: n === 1 });
    expect(control.save()).toBe(true);
    expect(open(path).control.current).toMatchObject({ paused: n === 1, max_workers: 3 });
    expect(fs.readFileSync(join(`${path}.bad-${n}`, "inside"), "utf8")).toBe("precious");
    expect(told[n - 1]).toContain(`it is kept as ${path}.bad-${n}`);
  }
  expect(told).toHaveLength(2);
});

test.each([
  ["half a document", (path: string) => fs.writeFileSync(path, '{"paused": tru')],
  ["an empty file", (path: string) => fs.writeFileSync(path, "")],
  ["a list", (path: string) => fs.writeFileSync(path, "[]")],
  ["a directory", (path: string) => fs.mkdirSync(path)],
  ["a link to nothing", (path: string) => fs.symlinkSync("/nonexistent/nothing", path)],
  ["a pipe", (path: string) => execFileSync("mkfifo", [path])],
])("%s is damaged: only its owner moves it, and tells it once", (_what, make) => {
  const path = join(tempDir(), "control.json");
  make(path);
  const { control, told } = open(path);
  expect(fs.readdirSync(join(path, ".."))).toEqual(["control.json"]);
  control.keepDamaged();
  control.keepDamaged();
  expect(fs.readdirSync(join(path, ".."))).toEqual(["control.json.bad-1"]);
  expect(told).toEqual([expect.stringContaining(`is kept as ${path}.bad-1`)]);
  control.change({ paused: true });
  expect(open(path).control.current.paused).toBe(true);
});

test.each([
  ["a missing file", undefined],
  ["an object without members", "{}"],
])("%s is not damaged", (_what, text) => {
  const path = join(tempDir(), "control.json");
  if (text !== undefined) fs.writeFileSync(path, text);
  const { control, told } = open(path);
  control.keepDamaged();
  expect(told).toEqual([]);
  expect(fs.existsSync(path)).toBe(text !== undefined);
});

test("a change that comes before the damaged file is kept does not replace it", () => {
  const path = join(tempDir(), "control.json");
  fs.writeFileSync(path, "{");
  const { control, told } = open(path);
  control.change({ paused: true });
  expect(fs.readFileSync(`${path}.bad-1`, "utf8")).toBe("{");
  expect(told).toHaveLength(1);
});

test("a pool answers a pause though a directory has taken the place of its file", async () => {
  const pool = newPool();
  await pool.start();
  const path = join(pool.state, "control.json");
  // The supervisor may save the slots in between.
  await waitFor(() => takePlace(path), { what: "the directory in its place" });
  expect(await pool.run(QUICK)).toMatchObject({ code: 0 });
  expect(open(path).control.current.paused).toBe(true);
  expect(pool.alerts()).toMatchObject([{ alert: "control_damaged" }]);
  expect(fs.statSync(`${path}.bad-1`).isDirectory()).toBe(true);
});

test("a pool says at its start that a damaged file ended a pause, and keeps the file", async () => {
  const pool = newPool();
  const path = join(pool.state, "control.json");
  fs.writeFileSync(path, '{"paused": tru');
  pool.drop("a", { exec: ["true"] });
  const { code, stderr } = await pool.run(["run", "--drain"]);
  expect(code, stderr).toBe(0);
  expect(stderr).toContain(
    `control.json was damaged and is kept as ${path}.bad-1: pause, workers and limits are those of config.yaml again; set them anew`,
  );
  expect(pool.alerts()).toMatchObject([{ alert: "control_damaged" }]);
  expect(fs.readFileSync(`${path}.bad-1`, "utf8")).toBe('{"paused": tru');
});
