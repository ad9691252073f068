import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stateTree } from "../../../src/core/state-tree.ts";
import { cleanDocuments } from "../../../src/supervisor/maintenance/clean-documents.ts";
import { tempDir } from "../../support/temp-dir.ts";

test("what the dead had staged of a document goes, what a living process stages stays", () => {
  const dir = tempDir();
  const dead = spawnSync(process.execPath, ["-e", ""]).pid;
  const now = Date.now();
  const put = (path: string, ageS: number): void => {
    fs.mkdirSync(join(dir, path, ".."), { recursive: true });
    fs.writeFileSync(join(dir, path), "{");
    fs.utimesSync(join(dir, path), now / 1000 - ageS, now / 1000 - ageS);
  };
  const gone = [
    `.tmp/control.json.${dead}`,
    `.tmp/supervisor.json.${dead}.123456`,
    `workers/.tmp/w-1.json.${dead}`,
    `kv/.tmp/of-nobody`,
    `analytics/.tmp/metrics.json.${process.pid}`,
  ];
  for (const path of gone) put(path, path.includes(`${dead}`) ? 120 : 2 * 60 * 60);
  const stay = [
    `.tmp/metrics.json.${process.pid}`,
    `.tmp/fresh.json.${dead}`,
    "mailbox/.tmp/a@s.1~ok-x.json",
    "control/.tmp/c@s.subject",
    "control.json",
  ];
  for (const path of stay)
    put(path, path.includes("mailbox") || path.includes("control/") ? 1e6 : 20);
  expect(cleanDocuments(stateTree(dir), now, true)).toBe(gone.length);
  expect(cleanDocuments(stateTree(dir), now)).toBe(gone.length);
  expect(gone.filter((path) => fs.existsSync(join(dir, path)))).toEqual([]);
  expect(stay.filter((path) => !fs.existsSync(join(dir, path)))).toEqual([]);
});

test("the document of a worker that says nothing any more goes when no worker has touched it for an hour", () => {
  const dir = tempDir();
  const now = Date.now();
  const put = (name: string, text: string, ageS: number): string => {
    const path = join(dir, "workers", name);
    fs.mkdirSync(join(dir, "workers"), { recursive: true });
    fs.writeFileSync(path, text);
    fs.utimesSync(path, now / 1000 - ageS, now / 1000 - ageS);
    return path;
  };
  const whole = JSON.stringify({ id: "w-9-9", pid: 9, place: "x", start_ticks: 9, slots: 1 });
  const old = 2 * 60 * 60;
  const gone = [put("w-1-1.json", "", old), put("w-2-2.json", whole.slice(0, 20), old)];
  const stay = [
    put("w-3-3.json", "", 60),
    put("w-9-9.json", whole, old),
    put("notes.txt", "", old),
  ];
  expect(cleanDocuments(stateTree(dir), now, true)).toBe(2);
  expect(cleanDocuments(stateTree(dir), now)).toBe(2);
  expect(gone.filter((path) => fs.existsSync(path))).toEqual([]);
  expect(stay.filter((path) => !fs.existsSync(path))).toEqual([]);
});

test("the lock of a process that died goes, one that is held stays", () => {
  const dir = tempDir();
  const now = Date.now();
  const lock = (path: string, ageS: number): string => {
    const whole = join(dir, path);
    fs.mkdirSync(whole, { recursive: true });
    fs.utimesSync(whole, now / 1000 - ageS, now / 1000 - ageS);
    return whole;
  };
  const gone = [lock(".tmp/roadmap.yaml.lock", 2 * 60 * 60), lock("kv/.tmp/a.lock", 2 * 60 * 60)];
  const stay = [lock("kv/.tmp/b.lock", 1), lock("kv/.tmp/somebody's", 2 * 60 * 60)];
  expect(cleanDocuments(stateTree(dir), now, true)).toBe(2);
  expect(cleanDocuments(stateTree(dir), now)).toBe(2);
  expect(gone.filter((path) => fs.existsSync(path))).toEqual([]);
  expect(stay.filter((path) => !fs.existsSync(path))).toEqual([]);
});
