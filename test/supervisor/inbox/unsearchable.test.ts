/** The inbox cannot be searched for a while: a look at one of its files ends no tick. */
import { EventEmitter } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Backlog } from "../../../src/core/backlog.ts";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { InboxScanner } from "../../../src/supervisor/inbox/scanner.ts";
import { tempDir } from "../../support/temp-dir.ts";

test("a file of an inbox that cannot be searched is left until a scan finds it again", () => {
  const trays = openTrays(tempDir());
  let isClosed = true;
  const refuse = (path: string): void => {
    if (isClosed && path.startsWith(trays.inbox))
      throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
  };
  const storage = new Proxy(trays.storage, {
    get: (target, name: "look" | "read" | "walk") =>
      ["look", "read", "walk"].includes(name)
        ? (path: string, ...more: never[]): unknown => {
            refuse(path);
            return (target[name] as (...all: unknown[]) => unknown).call(target, path, ...more);
          }
        : target[name],
  });
  const told: string[] = [];
  const env = {
    trays: { ...trays, storage },
    settings: { ...DEFAULT_SETTINGS, settle_ms: 0 },
    facts: new EventEmitter(),
    alerts: { report: (key: string) => told.push(key), notice: () => {} },
    wake: () => {},
  };
  const backlog = new Backlog();
  const ids = { isTaken: () => false, hasLeftResults: () => false };
  const questions = { ids, keys: { unsureCount: 0 }, isMet: () => true };
  const scanner = new InboxScanner(env as never, backlog, {} as never, questions as never);
  const work = (): void => scanner.work(Number.POSITIVE_INFINITY);
  fs.writeFileSync(join(trays.inbox, "a.json"), '{"exec": ["true"]}');
  scanner.hint("a.json");
  work();
  expect(told).toEqual(["inbox:EACCES:", "inbox:EACCES:"]);
  expect(backlog.size).toBe(0);
  isClosed = false;
  scanner.hint(undefined);
  work();
  expect(backlog.get("a")?.file).toBe("a.json");
});
