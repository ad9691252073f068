/** A folder of documents: what stands in the place of one, and what is made and kept. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { isCount, type Of, oneOf, shape } from "../../src/core/shape.ts";
import { Documents } from "../../src/host/document-store.ts";
import { tempDir } from "../support/temp-dir.ts";

const counted = shape({ v: oneOf(1), count: isCount });

function newStore(folder = join("a", "b")): { dir: string; all: Documents<Of<typeof counted>> } {
  const dir = tempDir();
  return { dir, all: new Documents(dir, folder, counted, { isDurable: true }) };
}

it("documents are written, read, listed and removed; other files in the folder are none", () => {
  const { all } = newStore();
  expect([all.read("x"), all.load("x"), all.readAll(), all.loadAll()]).toEqual([
    undefined,
    undefined,
    [],
    [],
  ]);
  all.replace("x", { v: 1, count: 1 });
  expect(all.create("y", { v: 1, count: 2 })).toBe(true);
  expect(all.create("y", { v: 1, count: 3 })).toBe(false);
  fs.writeFileSync(join(all.dir, "z.txt"), '{"v":1,"count":1}');
  expect(all.loadAll().sort(([a], [b]) => (a < b ? -1 : 1))).toEqual([
    ["x", { v: 1, count: 1 }],
    ["y", { v: 1, count: 2 }],
  ]);
  all.remove("x");
  expect(all.readAll()).toEqual([["y", { v: 1, count: 2 }]]);
  expect(fs.readdirSync(join(all.dir, ".tmp"))).toEqual([]);
});

it("a tree that is gone is not made again", async () => {
  const { dir, all } = newStore();
  fs.rmSync(dir, { recursive: true });
  expect(() => all.replace("x", { v: 1, count: 1 })).toThrow("ENOENT");
  expect(() => all.create("x", { v: 1, count: 1 })).toThrow("ENOENT");
  await expect(all.update("x", () => ({ v: 1, count: 1 }))).rejects.toThrow("ENOENT");
  expect(fs.existsSync(dir)).toBe(false);
});

const BROKEN: Record<string, (path: string) => void> = {
  "a pipe": (path) => execFileSync("mkfifo", [path]),
  "a directory": (path) => fs.mkdirSync(join(path, "in"), { recursive: true }),
  "a link": (path) => fs.symlinkSync("/dev/zero", path),
  "torn bytes": (path) => fs.writeFileSync(path, '{"v": 1, "cou'),
  nothing: (path) => fs.writeFileSync(path, ""),
  "another shape": (path) => fs.writeFileSync(path, '{"v": 1, "count": "1"}'),
  "a document of a later version": (path) => fs.writeFileSync(path, '{"v": 2, "count": 1}'),
};

it.each(Object.entries(BROKEN))(
  "%s counts as no document, and an update keeps it beside the new one",
  async (_, put) => {
    const { all } = newStore();
    fs.mkdirSync(all.dir, { recursive: true });
    put(all.path("x"));
    const there = fs.lstatSync(all.path("x")).ino;
    expect([all.read("x"), all.load("x"), all.readAll(), all.loadAll()]).toEqual([
      undefined,
      undefined,
      [],
      [],
    ]);
    await all.update("x", (before) => before);
    expect(fs.lstatSync(all.path("x")).ino).toBe(there);
    await all.update("x", (before) => ({ v: 1, count: (before?.count ?? 0) + 1 }));
    expect(all.read("x")).toEqual({ v: 1, count: 1 });
    expect(fs.lstatSync(`${all.path("x")}.bad-1`).ino).toBe(there);
  },
);

it("a directory in the place of a document is kept beside the one that replaces it", () => {
  const { all } = newStore();
  fs.mkdirSync(join(all.path("x"), "in"), { recursive: true });
  all.replace("x", { v: 1, count: 1 });
  expect(all.read("x")).toEqual({ v: 1, count: 1 });
  expect(fs.readdirSync(`${all.path("x")}.bad-1`)).toEqual(["in"]);
});

it("updates at the same time all count, and one that changes nothing writes nothing", async () => {
  const { all } = newStore();
  const add = () =>
    all.update("x", (before) => ({ v: 1 as const, count: (before?.count ?? 0) + 1 }));
  await Promise.all(Array.from({ length: 5 }, add));
  expect(all.read("x")?.count).toBe(5);
  const { ino } = fs.statSync(all.path("x"));
  await all.update("x", (before) => before);
  expect(fs.statSync(all.path("x")).ino).toBe(ino);
  await all.update("x", () => undefined);
  expect(fs.existsSync(all.path("x"))).toBe(false);
});

it("what cannot be read is unknown: it is told, and no update overwrites it", async () => {
  const { all } = newStore("");
  const unknown = new Documents(join(all.dir, "x".repeat(300)), "", counted);
  expect(unknown.read("x")).toBeUndefined();
  expect(() => unknown.load("x")).toThrow("ENAMETOOLONG");
  await expect(unknown.update("x", () => ({ v: 1, count: 1 }))).rejects.toThrow("ENAMETOOLONG");
});
