/** Asking about very many settled names: a listing answers only while the directory cannot have changed since. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import { openTrays, type Trays } from "../../src/mailbox/files/trays.ts";
import { SettledNames } from "../../src/mailbox/find/settled-names.ts";
import { submitAll } from "../../src/mailbox/submit/submit.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

interface Watched {
  trays: Trays;
  settled: SettledNames;
  /** Calls since the last question. */
  looksAt(name: string): number;
  listCount(): number;
}

function open(): Watched {
  const looked: string[] = [];
  let listCount = 0;
  const trays = openTrays(join(tempDir(), "mailbox"), {
    durability: "process",
    storage: {
      ...nodeStorage,
      look(path) {
        looked.push(String(path));
        return nodeStorage.look(path);
      },
      list(dir) {
        listCount++;
        return nodeStorage.list(dir);
      },
    },
  });
  return {
    trays,
    settled: new SettledNames(trays),
    looksAt: (name) => looked.filter((path) => path.endsWith(`/${name}`)).length,
    listCount: () => listCount,
  };
}

/** The clock that dates files has moved on from where it dated these directories. */
async function letTheClockMoveOn({ trays, settled }: Watched): Promise<void> {
  const probe = join(trays.tmp, "probe");
  const datedMs = Math.max(fs.statSync(trays.outbox).ctimeMs, fs.statSync(trays.failed).ctimeMs);
  await waitFor(
    () => {
      fs.writeFileSync(probe, "");
      fs.chmodSync(probe, 0o600);
      return fs.statSync(probe).ctimeMs > datedMs;
    },
    { what: "a later date" },
  );
  settled.noteNew(probe);
}

describe("names of settled tasks", () => {
  it("are looked up one by one as long as nothing shows that the directory's date is past", () => {
    const watched = open();
    const { settled, trays } = watched;
    fs.writeFileSync(join(trays.outbox, "a_result.json"), "{}");
    settled.refresh(true);
    expect(settled.has("outbox", "a_result.json")).toBe(true);
    settled.refresh(true);
    expect(settled.has("outbox", "b_result.json")).toBe(false);
    expect(watched.listCount()).toBe(0);
    expect(watched.looksAt("b_result.json")).toBe(1);
  });

  it("are answered from a listing once it is, and no name is looked at", async () => {
    const watched = open();
    const { settled, trays } = watched;
    fs.writeFileSync(join(trays.outbox, "a_result.json"), "{}");
    settled.has("outbox", "x_result.json");
    await letTheClockMoveOn(watched);
    settled.refresh(true);
    expect(watched.listCount()).toBe(1);
    expect(settled.has("outbox", "a_result.json")).toBe(true);
    expect(settled.has("outbox", "b_result.json")).toBe(false);
    expect(watched.looksAt("a_result.json") + watched.looksAt("b_result.json")).toBe(0);
  });

  it("that came or went since the listing are seen after a refresh", async () => {
    const watched = open();
    const { settled, trays } = watched;
    fs.writeFileSync(join(trays.failed, "gone_error.json"), "{}");
    settled.has("failed", "x_error.json");
    settled.has("failed", "y_error.json");
    await letTheClockMoveOn(watched);
    settled.refresh(true);
    fs.writeFileSync(join(trays.failed, "new_error.json"), "{}");
    fs.rmSync(join(trays.failed, "gone_error.json"));
    settled.refresh(false);
    expect(settled.has("failed", "new_error.json")).toBe(true);
    expect(settled.has("failed", "gone_error.json")).toBe(false);
  });

  it("are not listed again before as many were looked at as the last listing had", async () => {
    const watched = open();
    const { settled, trays } = watched;
    for (let i = 0; i < 10; i++) fs.writeFileSync(join(trays.outbox, `r${i}_result.json`), "{}");
    settled.has("outbox", "x_result.json");
    await letTheClockMoveOn(watched);
    settled.refresh(true);
    expect(watched.listCount()).toBe(1);
    for (let i = 0; i < 10; i++) {
      fs.writeFileSync(join(trays.outbox, `late${i}_result.json`), "{}");
      await letTheClockMoveOn(watched);
      settled.refresh(true);
      settled.has("outbox", `late${i}_result.json`);
    }
    expect(watched.listCount()).toBe(1);
    await letTheClockMoveOn(watched);
    settled.refresh(true);
    expect(watched.listCount()).toBe(2);
  });

  it("of a task that settles while a later group is submitted still refuse its id", async () => {
    const watched = open();
    const { settled, trays } = watched;
    const task = (id: string) => ({ id, bytes: Buffer.from(JSON.stringify({ id, prompt: "x" })) });
    await submitAll(trays, [task("first")], settled);
    await letTheClockMoveOn(watched);
    trays.storage.create = (path, bytes) => {
      nodeStorage.create(path, bytes);
      // Another task of this id is settled between our look and our link.
      fs.writeFileSync(join(trays.outbox, "late_result.json"), "{}");
    };
    const outcomes = await submitAll(trays, [task("late"), task("other")], settled);
    expect(watched.listCount()).toBeGreaterThan(0);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["refused", "submitted"]);
    expect(fs.readdirSync(trays.inbox).sort()).toEqual(["first.json", "other.json"]);
  });
});
