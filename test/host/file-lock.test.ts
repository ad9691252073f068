/** Locks between processes. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { lockFile } from "../../src/host/file-lock.ts";
import { tempDir } from "../support/temp-dir.ts";

test("two locks that one process holds in one directory are given back each by itself", async () => {
  const dir = tempDir();
  const [one, other] = [join(dir, "one.lock"), join(dir, "other.lock")];
  const giveBackOne = await lockFile(one);
  const giveBackOther = await lockFile(other);
  await giveBackOne?.();
  expect(fs.readdirSync(dir).sort()).toEqual(["other.lock", "other.lock.owner"]);
  await giveBackOther?.();
  expect(fs.readdirSync(dir)).toEqual([]);
});

test("a lock whose owner cannot be written down is not kept", async () => {
  const path = join(tempDir(), "one.lock");
  fs.mkdirSync(`${path}.owner`);
  await expect(lockFile(path)).rejects.toThrow("EISDIR");
  expect(fs.existsSync(path)).toBe(false);
});

test("a lock whose owner's name cannot be removed is given back all the same", async () => {
  const path = join(tempDir(), "one.lock");
  const giveBack = await lockFile(path);
  fs.rmSync(`${path}.owner`);
  fs.mkdirSync(`${path}.owner`);
  await giveBack?.();
  expect(fs.existsSync(path)).toBe(false);
});

test("each waits for a lock that others hold as long as it asked for", async () => {
  const path = join(tempDir(), "one.lock");
  const giveBack = await lockFile(path);
  const patient = lockFile(path, 60_000);
  expect(await lockFile(path, 50)).toBeUndefined();
  await giveBack?.();
  await (await patient)?.();
  expect(fs.existsSync(path)).toBe(false);
});
