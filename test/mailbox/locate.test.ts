/** Where an id is: in the inbox, in `processing/` under which name, or in a record. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openTrays } from "../../src/mailbox/files/trays.ts";
import {
  findClaim,
  findLive,
  isBeingSettled,
  isInFlight,
  liveIds,
  locate,
} from "../../src/mailbox/find/locate.ts";
import { tempDir } from "../support/temp-dir.ts";

function newTrays() {
  const trays = openTrays(join(tempDir(), "mailbox"), { durability: "process" });
  const put = (tray: "inbox" | "processing" | "outbox" | "failed", name: string): void =>
    fs.writeFileSync(join(trays[tray], name), "{}");
  return { trays, put };
}

test("an id is looked for where its task goes: the inbox first, then processing/, then the records", () => {
  const { trays, put } = newTrays();
  expect(locate(trays, "a")).toBeUndefined();
  put("failed", "a_error.json");
  expect(locate(trays, "a")?.tray).toBe("failed");
  put("outbox", "a_result.json");
  expect(locate(trays, "a")?.tray).toBe("outbox");
  put("processing", "A@s.1~ready.json");
  expect(locate(trays, "a")).toMatchObject({ tray: "processing", id: "A", name: { attempt: 1 } });
  put("inbox", "a.ndjson");
  expect(locate(trays, "a")).toMatchObject({ tray: "inbox", isBatch: true });
});

test("a file that is being refused is not the task of its id, but its id is known", () => {
  const { trays, put } = newTrays();
  put("processing", "a@s.0~bad-x.json");
  expect(locate(trays, "a")).toBeUndefined();
  expect(isInFlight(trays, "a", ["bad"])).toBe(false);
  expect(isInFlight(trays, "a")).toBe(true);
});

test("the plain claim of a foreign worker counts, in any case, and is no claim of ours", () => {
  const { trays, put } = newTrays();
  put("processing", "Job.json");
  expect(findLive(trays, "job")).toMatchObject([{ id: "Job", name: undefined }]);
  expect([...liveIds(trays)]).toEqual(["job"]);
  expect(findClaim(trays, "Job")).toBeUndefined();
});

test("only a task that a worker may claim or has claimed is found as a claim, by its very id", () => {
  const { trays, put } = newTrays();
  put("processing", "a@s.1~ok-x.json");
  expect(findClaim(trays, "a")).toBeUndefined();
  expect(isBeingSettled(trays, "a@s.")).toBe(true);
  expect(isBeingSettled(trays, "a@t.")).toBe(false);
  put("processing", "a@t.2~w-o.json");
  expect(findClaim(trays, "A")).toBeUndefined();
  expect(findClaim(trays, "a")).toMatchObject({ file: "a@t.2~w-o.json", name: { stage: "w" } });
});

test("ids cannot be told when processing/ is not there", () => {
  const { trays } = newTrays();
  fs.rmdirSync(trays.processing);
  expect(liveIds(trays).size).toBe(0);
  expect(() => findLive(trays, "a")).toThrow("ENOENT");
});
