/** The watcher reports what happens in a directory, also in the next one of that name, and lets go when stopped. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { DirWatcher } from "../../src/host/dir-watcher.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

function newBell(dir: string): { bell: DirWatcher; rings: (string | undefined)[] } {
  const rings: (string | undefined)[] = [];
  const bell = new DirWatcher(dir, {
    onRing: (name) => rings.push(name),
    onFallback: (error) => {
      throw error;
    },
  });
  onTestFinished(() => bell.stop());
  bell.start();
  return { bell, rings };
}

/** Drops files until one of them is heard. */
async function hears(dir: string, rings: readonly (string | undefined)[]): Promise<void> {
  let n = 0;
  await waitFor(
    () => {
      fs.writeFileSync(join(dir, `file-${n++}`), "");
      return rings.some((name) => name?.startsWith("file-"));
    },
    { what: "a ring", timeoutMs: 5000 },
  );
}

it("rings with the name of a new file", async () => {
  const dir = join(tempDir(), "inbox");
  fs.mkdirSync(dir);
  const { bell, rings } = newBell(dir);
  await hears(dir, rings);
  expect(bell.mode).toBe("events");
  expect(bell.rearm()).toBe(false);
});

it("rings again for a directory that was removed and made again at once", async () => {
  const dir = join(tempDir(), "inbox");
  fs.mkdirSync(dir);
  const { bell, rings } = newBell(dir);
  await hears(dir, rings);
  fs.rmSync(dir, { recursive: true });
  // Some file systems give the new directory the inode number of the old one.
  fs.mkdirSync(dir);
  expect(bell.rearm()).toBe(true);
  rings.length = 0;
  await hears(dir, rings);
});

it("bears a file in the place of the folder around it, while it polls, too", async () => {
  const dir = tempDir();
  const inbox = join(dir, "mailbox", "inbox");
  fs.mkdirSync(inbox, { recursive: true });
  let count = 0;
  const bell = new DirWatcher(inbox, { onRing: () => count++, onFallback: () => {} });
  onTestFinished(() => bell.stop());
  bell.start();
  const replace = (): void => {
    fs.renameSync(join(dir, "mailbox"), join(dir, "away"));
    fs.writeFileSync(join(dir, "mailbox"), "");
  };
  replace();
  expect(bell.rearm()).toBe(true);
  fs.rmSync(join(dir, "mailbox"));
  fs.renameSync(join(dir, "away"), join(dir, "mailbox"));
  expect(bell.rearm()).toBe(true);
  (bell as unknown as { fallBack(error: unknown): void }).fallBack({ code: "ENOSPC" });
  await waitFor(() => count > 0, { what: "a first poll" });
  replace();
  // A poll that threw would end this process.
  const rung = count;
  await waitFor(() => count > rung, { what: "a poll that finds it gone" });
});

it("lets the process go on when events come faster than they are read, and rings also then and afterwards", async () => {
  const dir = tempDir();
  const rings: (string | undefined)[] = [];
  const floodUntilMs = performance.now() + 10_000;
  let isFlood = true;
  const bell = new DirWatcher(dir, {
    onRing: (name) => {
      rings.push(name);
      // Each event makes the next one, so there is always one more to read.
      if (isFlood && performance.now() < floodUntilMs) fs.writeFileSync(join(dir, "flood"), "");
    },
    onFallback: () => {},
  });
  onTestFinished(() => bell.stop());
  bell.start();
  await hears(dir, rings);
  expect(performance.now()).toBeLessThan(floodUntilMs - 5000);
  rings.length = 0;
  await waitFor(() => rings.length > 0, { what: "a ring during the flood" });
  isFlood = false;
  rings.length = 0;
  await hears(dir, rings);
  expect(bell.mode).toBe("events");
});

it("leaves no timer or watch behind when it is stopped", async () => {
  const dir = join(tempDir(), "inbox");
  fs.mkdirSync(dir);
  const kinds = (): string[] =>
    process.getActiveResourcesInfo().filter((kind) => /^(?:Timeout|FSEvent)/.test(kind));
  const before = kinds().length;
  const { bell, rings } = newBell(dir);
  await hears(dir, rings);
  bell.stop();
  await waitFor(() => kinds().length <= before, { what: "the end of it all" });
});

it("is not set up by a look that comes before its start, or after its end", async () => {
  await waitFor(() => watchCount() === 0, { what: "the end of others' watches" });
  const dir = tempDir();
  const bell = new DirWatcher(dir, { onRing: () => {}, onFallback: () => {} });
  expect(bell.rearm()).toBe(false);
  bell.start();
  await waitFor(() => watchCount() === 1, { what: "a watch" });
  bell.stop();
  expect(bell.rearm()).toBe(false);
  await waitFor(() => watchCount() === 0, { what: "no watch" });
});

function watchCount(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind.startsWith("FSEvent")).length;
}
