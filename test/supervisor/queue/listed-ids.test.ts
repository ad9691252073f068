/** Ids in use are found in listings as they are found by single looks. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { nodeStorage } from "../../../src/mailbox/files/node-storage.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { ListedIds } from "../../../src/supervisor/queue/listed-ids.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

it("says what is there at each refresh, and looks for single results only while outbox/ changes", async () => {
  const looks: string[] = [];
  const storage: typeof nodeStorage = {
    ...nodeStorage,
    look(path) {
      looks.push(String(path));
      return nodeStorage.look(path);
    },
  };
  const trays = openTrays(join(tempDir(), "mailbox"), { durability: "process", storage });
  const ids = new ListedIds(trays);
  const put = (dir: string, name: string): void => fs.writeFileSync(join(dir, name), "{}");
  const said = (id: string): [boolean, boolean] => [ids.hasPlainClaim(id), ids.hasResult(id)];

  put(trays.processing, "ours@abc.1~ready.json");
  put(trays.processing, "theirs.json");
  put(trays.outbox, "old_result.json");
  ids.refresh();
  expect(said("ours")).toEqual([false, false]);
  expect(said("theirs")).toEqual([true, false]);
  expect(said("old")).toEqual([false, true]);

  // The clock of the file system goes on: a listing proves something now.
  const clock = join(trays.tmp, "clock");
  const datedMs = fs.statSync(trays.outbox).ctimeMs;
  await waitFor(
    () => {
      put(trays.tmp, "clock");
      return fs.statSync(clock).ctimeMs > datedMs;
    },
    { what: "a later date" },
  );
  ids.noteNew(clock);
  ids.refresh();
  looks.length = 0;
  expect([said("old"), said("new")]).toEqual([
    [false, true],
    [false, false],
  ]);
  expect(looks).toEqual([]);

  put(trays.outbox, "new_result.json");
  fs.rmSync(join(trays.processing, "theirs.json"));
  ids.refresh();
  expect([said("new"), said("theirs")]).toEqual([
    [false, true],
    [false, false],
  ]);
});
