/** Two who are at one settlement at once: it is published once, or not at all. Found by test/simulation; laid out by hand here. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseName } from "../../src/core/names.ts";
import { claimAt } from "../../src/mailbox/claim/claim.ts";
import { nodeStorage } from "../../src/mailbox/files/node-storage.ts";
import { openTrays } from "../../src/mailbox/files/trays.ts";
import { newSettlement, settleAll, stagedPath } from "../../src/mailbox/settle/settle.ts";
import { tempDir } from "../support/temp-dir.ts";

test("a settler whose record was swept publishes nothing once recovery has taken its marker", async () => {
  const trays = openTrays(tempDir(), { durability: "process" });
  const held = parseName("a@s.1~w-me.json");
  if (held === undefined) throw new Error("no name");
  fs.writeFileSync(join(trays.processing, "a@s.1~w-me.json"), '{"exec":["true"]}');
  const settlement = newSettlement(claimAt(trays, held), "completed", Buffer.from("{}"), "me");
  const staged = stagedPath(trays, settlement);
  const marker = join(trays.processing, settlement.marker);
  let isSwept = false;
  trays.storage = {
    ...nodeStorage,
    link: (from, to) => {
      if (!isSwept) fs.unlinkSync(from);
      isSwept = true;
      nodeStorage.link(from, to);
    },
    look: (path) => {
      const facts = nodeStorage.look(path);
      // Recovery saw the marker without a record, and has the task run again.
      if (path === staged && facts === undefined && fs.existsSync(marker))
        fs.renameSync(marker, join(trays.processing, "a@s.2~ready.json"));
      return facts;
    },
  };
  const published: unknown[] = [];
  await settleAll(trays, [settlement], (some) => void published.push(...some));
  expect(isSwept).toBe(true);
  expect(settlement).toMatchObject({ outcome: "fenced", phase: "done" });
  expect(published).toEqual([]);
  expect(fs.readdirSync(trays.outbox)).toEqual([]);
  expect(fs.readdirSync(trays.processing)).toEqual(["a@s.2~ready.json"]);
  expect(fs.readdirSync(trays.tmp)).toEqual([]);
});
