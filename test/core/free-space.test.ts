/** How much of a disk must stay free: the setting, less on a small disk, more when work is to begin again; and so with files. */
import { expect, test } from "vitest";
import { explainShortage, lackOf, roomOf } from "../../src/core/free-space.ts";

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const LARGE = { size: 100 * GIB, free: 50 * GIB, files: 1_000_000, freeFiles: 500_000 };
const SMALL = { ...LARGE, size: 8 * MIB, files: 800 };

test("a large disk keeps what the setting says, a small one at most an eighth of it", () => {
  expect(lackOf({ ...LARGE, free: 128 * MIB }, 128 * MIB, false)).toBeUndefined();
  expect(lackOf({ ...LARGE, free: 128 * MIB - 1 }, 128 * MIB, false)).toBeDefined();
  expect(lackOf({ ...SMALL, free: MIB }, 128 * MIB, false)).toBeUndefined();
  expect(lackOf({ ...SMALL, free: MIB - 1 }, 128 * MIB, false)).toBeDefined();
});

test("a large disk keeps room for 2,000 files, a small one for at most an eighth of those it takes", () => {
  expect(lackOf({ ...LARGE, freeFiles: 2000 }, MIB, false)).toBeUndefined();
  expect(lackOf({ ...LARGE, freeFiles: 1999 }, MIB, false)).toEqual({
    free_files: 1999,
    wanted_files: 2200,
  });
  expect(lackOf({ ...SMALL, freeFiles: 100 }, MIB, false)).toBeUndefined();
  expect(lackOf({ ...SMALL, freeFiles: 99 }, MIB, false)).toBeDefined();
});

test("what has stopped begins again with a tenth more, so that it does not go back and forth", () => {
  const space = { ...LARGE, free: 105 * MIB };
  expect(lackOf(space, 100 * MIB, false)).toBeUndefined();
  expect(lackOf(space, 100 * MIB, true)).toEqual({
    free_bytes: 105 * MIB,
    wanted_bytes: 110 * MIB,
  });
  expect(lackOf({ ...space, free: 110 * MIB }, 100 * MIB, true)).toBeUndefined();
});

test("a file system without a size, or that counts no files, has room", () => {
  expect(lackOf({ size: 0, free: 0, files: 0, freeFiles: 0 }, MIB, false)).toBeUndefined();
  const none = { bytes: Number.POSITIVE_INFINITY, files: Number.POSITIVE_INFINITY };
  expect(roomOf({ size: 0, free: 0, files: 0, freeFiles: 0 }, MIB)).toEqual(none);
});

test("it is nearly full with less than a quarter of what must stay free, and never when nothing must", () => {
  const space = { ...LARGE, free: 40 * MIB, freeFiles: 499 };
  expect(roomOf(space, 128 * MIB)).toEqual({ bytes: 8 * MIB, files: -1 });
  expect(roomOf({ ...space, free: 0 }, 0).bytes).toBe(Number.POSITIVE_INFINITY);
});

test("a shortage says where, of what, how much, and which setting", () => {
  const bytes = explainShortage({ path: "/s", free_bytes: 37 * MIB, wanted_bytes: 128 * MIB });
  expect(bytes).toContain("intake stopped: disk: /s has 37 MiB free");
  expect(bytes).toContain("128 MiB (setting free_bytes_min)");
  const files = explainShortage({ path: "/s", free_files: 12, wanted_files: 55 });
  expect(files).toContain("/s has 12 files free");
  expect(files).toContain("55 files (inodes)");
});
