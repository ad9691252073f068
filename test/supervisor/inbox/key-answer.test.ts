/** A file with a key goes while the note that it is the holder is on its way to the disk: nobody waits for it then. */
import { EventEmitter } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Backlog } from "../../../src/core/backlog.ts";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { openTrays, type Trays } from "../../../src/mailbox/files/trays.ts";
import { KeyHolders } from "../../../src/supervisor/inbox/key-holders.ts";
import { InboxScanner } from "../../../src/supervisor/inbox/scanner.ts";
import { tempDir } from "../../support/temp-dir.ts";

/** @param left how often the sync of a note fails */
function open(left = 0): {
  trays: Trays;
  scanner: InboxScanner;
  backlog: Backlog;
  work: () => void;
  endSync: () => Promise<void>;
} {
  const trays = openTrays(tempDir(), { durability: "power" });
  let release: () => void = () => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  let failures = left;
  const storage = new Proxy(trays.storage, {
    get: (target, name: "syncFiles") =>
      name === "syncFiles"
        ? async (paths: string[]): Promise<void> => {
            await gate;
            if (failures-- > 0) throw Object.assign(new Error("EIO"), { code: "EIO" });
            await target.syncFiles(paths);
          }
        : target[name],
  });
  const env = {
    trays: { ...trays, storage },
    settings: { ...DEFAULT_SETTINGS, settle_ms: 0 },
    facts: new EventEmitter(),
    alerts: { report: () => {}, notice: () => {} },
    wake: () => {},
  };
  const backlog = new Backlog();
  const keys = new KeyHolders(env as never, () => false);
  const ids = { isTaken: () => false, hasLeftResults: () => false };
  const rejections = { refuse: ({ name }: { name: string }) => fs.rmSync(join(trays.inbox, name)) };
  const questions = { ids, keys, isMet: () => true };
  const scanner = new InboxScanner(env as never, backlog, rejections as never, questions);
  const work = (): void => {
    while (scanner.hasWork) scanner.work(Number.POSITIVE_INFINITY);
  };
  const endSync = (): Promise<void> => {
    release();
    return keys.idle();
  };
  fs.writeFileSync(join(trays.inbox, "a.json"), '{"exec": ["true"], "dedup_key": "k"}');
  work();
  expect([scanner.unsettledCount, backlog.size]).toEqual([1, 0]);
  return { trays, scanner, backlog, work, endSync };
}

const WAYS: [how: string, change: (path: string, scanner: InboxScanner) => void][] = [
  ["it is gone", (path) => fs.rmSync(path)],
  ["a task without a key is in its place", (path) => fs.writeFileSync(path, '{"exec": ["true"]}')],
  ["what is in its place is no task", (path) => fs.writeFileSync(path, "[]")],
  [
    "it is gone, and more names came than are remembered",
    (path, scanner) => {
      fs.rmSync(path);
      for (let n = 0; n < 5000; n++) scanner.hint(`x${n}.json`);
    },
  ],
];

test.each(WAYS)("nothing is unsettled when %s", async (_how, change) => {
  for (const failures of [0, 1]) {
    const { trays, scanner, work, endSync } = open(failures);
    change(join(trays.inbox, "a.json"), scanner);
    await endSync();
    work();
    expect(scanner.unsettledCount).toBe(0);
  }
});

test("a file that stays is taken when the note is on the disk", async () => {
  const { scanner, backlog, work, endSync } = open();
  await endSync();
  work();
  expect([scanner.unsettledCount, backlog.get("a")?.file]).toEqual([0, "a.json"]);
});
