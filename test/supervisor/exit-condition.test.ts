/** How a supervisor ends: it looks once more for commands, and needs no trays of tasks where their mailbox is off. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { stateTree } from "../../src/core/state-tree.ts";
import { openTrays, readAcknowledgement } from "../../src/index.ts";
import { DEFAULT_SETTINGS, Supervisor } from "../../src/supervisor.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const OFF = { ...DEFAULT_SETTINGS, mailbox_enabled: false, durability: "process" } as const;

it("ends in order where the task mailbox is off, and has never been made", async () => {
  const tree = stateTree(tempDir());
  fs.writeFileSync(tree.roadmap, "nodes:\n  - { id: node, exec: [date] }\n");
  const notices: string[] = [];
  const onNotice = (notice: string): void => void notices.push(notice);
  const supervisor = new Supervisor({ tree, settings: OFF, drain: true, onNotice });
  expect((await supervisor.run()).endedBy).toBe("drained");
  expect(notices.filter((notice) => /cannot|ENOENT/.test(notice))).toEqual([]);
  expect(fs.existsSync(tree.mailbox)).toBe(false);
});

it("takes a command that came after the look that ended it", async () => {
  const tree = stateTree(tempDir());
  const control = openTrays(tree.control, { durability: "process" });
  const drop = (id: string, command: string): void =>
    fs.writeFileSync(join(control.inbox, `${id}.json`), JSON.stringify({ command }));
  drop("first", "pause");
  const supervisor = new Supervisor({
    tree,
    settings: OFF,
    onNotice: (notice) => {
      if (!notice.includes("command first")) return;
      drop("second", "resume");
      supervisor.stop(false);
    },
  });
  await supervisor.run();
  await waitFor(() => readAcknowledgement(control, "second"), { what: "its answer" });
  expect(fs.readdirSync(control.inbox)).toEqual([]);
});
