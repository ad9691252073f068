/** The watcher reports what happens in a directory, also in the next one of that name, and lets go when stopped. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { DirWatcher } from "../../src/host/dir-watcher.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

function newWatcher(dir: string): { watcher: DirWatcher; changes: (string | undefined)[] } {
  const changes: (string | undefined)[] = [];
  const watcher = new DirWatcher(dir, {
    onChange: (name) => changes.push(name),
    onFallback: (error) => {
      throw error;
    },
  });
  onTestFinished(() => watcher.stop());
  watcher.start();
  return { watcher, changes };
}

/** Drops files until one of them is heard. */
async function hears(dir: string, changes: readonly (string | undefined)[]): Promise<void> {
  let n = 0;
  await waitFor(
    () => {
      fs.writeFileSync(join(dir, `file-${n++}`), "");
      return changes.some((name) => name?.startsWith("file-"));
    },
    { what: "a ring", timeoutMs: 5000 },
  );
}

it("changes with the name of a new file", async () => {
  const dir = join(tempDir(), "inbox");
  fs.mkdirSync(dir);
  const { watcher, changes } = newWatcher(dir);
  await hears(dir, changes);
  expect(watcher.mode).toBe("events");
  expect(watcher.rearm()).toBe(false);
});

it("changes again for a directory that was removed and made again at once", async () => {
  const dir = join(tempDir(), "inbox");
  fs.mkdirSync(dir);
  const { watcher, changes } = newWatcher(dir);
  await hears(dir, changes);
  fs.rmSync(dir, { recursive: true });
  // Some file systems give the new directory the inode number of the old one.
  fs.mkdirSync(dir);
  expect(watcher.rearm()).toBe(true);
  changes.length = 0;
  await hears(dir, changes);
});

it("bears a file in the place of the folder around it, while it polls, too", async () => {
  const dir = tempDir();
  const inbox = join(dir, "mailbox", "inbox");
  fs.mkdirSync(inbox, { recursive: true });
  let count = 0;
  const watcher = new DirWatcher(inbox, { onChange: () => count++, onFallback: () => {} });
  onTestFinished(() => watcher.stop());
  watcher.start();
  const replace = (): void => {
    fs.renameSync(join(dir, "mailbox"), join(dir, "away"));
    fs.writeFileSync(join(dir, "mailbox"), "");
  };
  replace();
  expect(watcher.rearm()).toBe(true);
  fs.rmSync(join(dir, "mailbox"));
  fs.renameSync(join(dir, "away"), join(dir, "mailbox"));
  expect(watcher.rearm()).toBe(true);
  (watcher as unknown as { fallBack(error: unknown): void }).fallBack({ code: "ENOSPC" });
  await waitFor(() => count > 0, { what: "a first poll" });
  replace();
  // A poll that threw would end this process.
  const rung = count;
  await waitFor(() => count > rung, { what: "a poll that finds it gone" });
});

it("lets the process go on when events come faster than they are read, and changes also then and afterwards", async () => {
  const dir = tempDir();
  const changes: (string | undefined)[] = [];
  const floodUntilMs = performance.now() + 10_000;
  let isFlood = true;
  const watcher = new DirWatcher(dir, {
    onChange: (name) => {
      changes.push(name);
      // Each event makes the next one, so there is always one more to read.
      if (isFlood && performance.now() < floodUntilMs) fs.writeFileSync(join(dir, "flood"), "");
    },
    onFallback: () => {},
  });
  onTestFinished(() => watcher.stop());
  watcher.start();
  await hears(dir, changes);
  expect(performance.now()).toBeLessThan(floodUntilMs - 5000);
  changes.length = 0;
  await waitFor(() => changes.length > 0, { what: "a ring during the flood" });
  isFlood = false;
  changes.length = 0;
  await hears(dir, changes);
  expect(watcher.mode).toBe("events");
});

it("leaves no timer or watch behind when it is stopped", async () => {
  const dir = join(tempDir(), "inbox");
  fs.mkdirSync(dir);
  const kinds = (): string[] =>
    process.getActiveResourcesInfo().filter((kind) => /^(?:Timeout|FSEvent)/.test(kind));
  const before = kinds().length;
  const { watcher, changes } = newWatcher(dir);
  await hears(dir, changes);
  watcher.stop();
  await waitFor(() => kinds().length <= before, { what: "the end of it all" });
});

it("is not set up by a look that comes before its start, or after its end", async () => {
  await waitFor(() => watchCount() === 0, { what: "the end of others' watches" });
  const dir = tempDir();
  const watcher = new DirWatcher(dir, { onChange: () => {}, onFallback: () => {} });
  expect(watcher.rearm()).toBe(false);
  watcher.start();
  await waitFor(() => watchCount() === 1, { what: "a watch" });
  watcher.stop();
  expect(watcher.rearm()).toBe(false);
  await waitFor(() => watchCount() === 0, { what: "no watch" });
});

function watchCount(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind.startsWith("FSEvent")).length;
}
