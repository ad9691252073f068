/** Settled ids: no false "free" without case, no lasting false alarm, and never a long look at once. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { errorName, resultName } from "../../../src/core/names.ts";
import { nodeStorage } from "../../../src/mailbox/files/node-storage.ts";
import { openTrays, type Trays } from "../../../src/mailbox/files/trays.ts";
import { FinishedIds } from "../../../src/supervisor/queue/taken-ids.ts";
import { tempDir } from "../../support/temp-dir.ts";

function someTrays(): Trays {
  return openTrays(join(tempDir(), "mailbox"), { durability: "process" });
}

function newIds(trays: Trays): { ids: FinishedIds; errors: unknown[] } {
  const errors: unknown[] = [];
  return { ids: new FinishedIds(trays, (error) => errors.push(error)), errors };
}

const FOREVER = Number.POSITIVE_INFINITY;

/** Asks, walks if told to, and asks again. */
function answer(ids: FinishedIds, id: string): boolean | "unsure" {
  const first = ids.has(id);
  if (first !== "unsure") return first;
  ids.work(FOREVER);
  return ids.has(id);
}

function putError(trays: Trays, id: string, kind: string, attempts: number): void {
  fs.writeFileSync(
    join(trays.failed, errorName(id)),
    JSON.stringify({ task_id: id, status: "failed", kind, attempts }),
  );
}

describe("FinishedIds", () => {
  it("finds what settled before the start, in any case, in both trays", () => {
    const trays = someTrays();
    fs.writeFileSync(join(trays.outbox, resultName("Report-1")), "{}");
    putError(trays, "Broken", "exit", 3);
    const { ids } = newIds(trays);
    expect(ids.isComplete).toBe(false);
    ids.work(FOREVER);
    expect(ids.isComplete).toBe(true);
    expect(ids.hasWork).toBe(false);
    expect(answer(ids, "REPORT-1")).toBe(true);
    expect(answer(ids, "report-1")).toBe(true);
    expect(answer(ids, "bROKEN")).toBe(true);
    expect(ids.has("report-2")).toBe(false);
    // Asking again costs no walk.
    expect(ids.hasWork).toBe(false);
  });

  it("knows results in any case, and takes no error record for one", () => {
    const trays = someTrays();
    fs.writeFileSync(join(trays.outbox, resultName("Report-1")), "{}");
    putError(trays, "Broken", "exit", 3);
    const { ids } = newIds(trays);
    ids.work(FOREVER);
    expect([ids.hasResult("report-1"), ids.hasResult("broken"), ids.hasResult("none")]).toEqual([
      false,
      false,
      false,
    ]);
    ids.work(FOREVER);
    expect([ids.hasResult("report-1"), ids.hasResult("broken")]).toEqual([true, false]);
    expect(ids.hasWork).toBe(false);
    fs.rmSync(join(trays.outbox, resultName("Report-1")));
    expect(ids.hasResult("report-1")).toBe(false);
  });

  it("learns what settles later", () => {
    const trays = someTrays();
    const { ids } = newIds(trays);
    ids.work(FOREVER);
    expect(ids.has("LATE")).toBe(false);
    fs.writeFileSync(join(trays.outbox, resultName("late")), "{}");
    ids.add("late");
    expect(answer(ids, "LATE")).toBe(true);
  });

  it("needs no walk for a record whose place it was told, until that record is gone", () => {
    const trays = someTrays();
    const { ids } = newIds(trays);
    ids.work(FOREVER);
    putError(trays, "Skipped", "dependency_failed", 0);
    const path = join(trays.failed, errorName("Skipped"));
    ids.add("Skipped", path);
    expect([ids.has("skipped"), ids.hasResult("skipped"), ids.failedAs("SKIPPED")]).toEqual([
      true,
      false,
      "Skipped",
    ]);
    expect(ids.hasWork).toBe(false);
    fs.rmSync(path);
    expect(ids.has("skipped")).toBe("unsure");
    ids.work(FOREVER);
    expect(ids.has("skipped")).toBe(false);
  });

  it("finds the result of a task that was retried after its error record was known", () => {
    const trays = someTrays();
    const { ids } = newIds(trays);
    ids.work(FOREVER);
    putError(trays, "Again", "exit", 1);
    ids.add("Again", join(trays.failed, errorName("Again")));
    expect(ids.hasResult("again")).toBe(false);
    fs.rmSync(join(trays.failed, errorName("Again")));
    fs.writeFileSync(join(trays.outbox, resultName("Again")), "{}");
    ids.add("Again");
    expect(ids.hasResult("again")).toBe(false);
    ids.work(FOREVER);
    expect(ids.hasResult("again")).toBe(true);
  });

  it("walks again for the oldest of very many records whose places it was told", () => {
    const trays = someTrays();
    const { ids } = newIds(trays);
    ids.work(FOREVER);
    for (let i = 0; i <= 8192; i++) ids.add(`t${i}`, trays.failed);
    expect([ids.has("t5000"), ids.has("t8192"), ids.hasWork]).toEqual([true, true, false]);
    putError(trays, "t0", "dependency_failed", 0);
    expect(ids.has("t0")).toBe("unsure");
    ids.work(FOREVER);
    expect(ids.has("t0")).toBe(true);
  });

  it("sets an id free whose record is gone, and the record of a refusal takes none", () => {
    const trays = someTrays();
    fs.writeFileSync(join(trays.outbox, resultName("swept")), "{}");
    putError(trays, "refused", "invalid", 0);
    const { ids } = newIds(trays);
    ids.work(FOREVER);
    expect(answer(ids, "Refused")).toBe(false);
    expect(answer(ids, "SWEPT")).toBe(true);
    fs.rmSync(join(trays.outbox, resultName("swept")));
    expect(answer(ids, "SWEPT")).toBe(false);
    // Free for good: no walk the next time.
    expect(ids.has("swept")).toBe(false);
    expect(ids.hasWork).toBe(false);
  });

  it("keeps what settles behind the back of a walk", () => {
    const trays = someTrays();
    fs.writeFileSync(join(trays.outbox, resultName("a")), "{}");
    const { ids } = newIds(trays);
    ids.work(FOREVER);
    fs.rmSync(join(trays.outbox, resultName("a")));
    expect(ids.has("A")).toBe("unsure");
    let isFirst = true;
    trays.storage = {
      ...nodeStorage,
      walk(dir) {
        const walk = nodeStorage.walk(dir);
        if (isFirst) {
          isFirst = false;
          // It settles again after the listing was read.
          return {
            next(max) {
              const names = walk.next(max);
              fs.writeFileSync(join(trays.outbox, resultName("a")), "{}");
              ids.add("a");
              return names;
            },
            close: () => walk.close(),
          };
        }
        return walk;
      },
    };
    ids.work(FOREVER);
    expect(answer(ids, "A")).toBe(true);
  });

  it("calls nothing free that it could not look for, and goes on when it can", () => {
    const trays = someTrays();
    const { ids, errors } = newIds(trays);
    ids.work(FOREVER);
    fs.writeFileSync(join(trays.outbox, resultName("a")), "{}");
    ids.add("a");
    trays.storage = {
      ...nodeStorage,
      walk: () => {
        throw Object.assign(new Error("EMFILE"), { code: "EMFILE" });
      },
    };
    expect(answer(ids, "A")).toBe("unsure");
    expect(errors).toHaveLength(2);
    trays.storage = nodeStorage;
    expect(answer(ids, "A")).toBe(true);
  });

  it("has no false answer among 20,000 ids, whatever their spelling", () => {
    const trays = someTrays();
    const { ids } = newIds(trays);
    ids.work(FOREVER);
    for (let i = 0; i < 20_000; i++) ids.add(`Task-${i}`);
    const count = (form: (i: number) => string, wanted: boolean | "unsure"): number =>
      Array.from({ length: 20_000 }, (_, i) => ids.has(form(i))).filter((it) => it === wanted)
        .length;
    expect(count((i) => `TASK-${i}`, "unsure")).toBe(20_000);
    expect(count((i) => `task_${i}`, false)).toBe(20_000);
    // None of them has a record: one walk sets them all free.
    ids.work(FOREVER);
    expect(count((i) => `task-${i}`, false)).toBe(20_000);
  });

  it("walks in slices", () => {
    const trays = someTrays();
    const names = Array.from({ length: 100_000 }, (_, i) => resultName(`t${i}`));
    let nowMs = 0;
    trays.clock = { ...trays.clock, monotonicMs: () => nowMs++ };
    const walk = (dir: string): ReturnType<typeof nodeStorage.walk> => {
      let at = 0;
      return {
        next(max) {
          at += max;
          return dir === trays.outbox ? names.slice(at - max, at) : [];
        },
        close: () => {},
      };
    };
    trays.storage = { ...nodeStorage, walk };
    const { ids } = newIds(trays);
    ids.work(nowMs + 3);
    expect(ids.hasWork).toBe(true);
    expect(ids.isComplete).toBe(false);
    ids.work(FOREVER);
    expect(ids.isComplete).toBe(true);
    expect(ids.has("T99999")).toBe("unsure");
  });
});
