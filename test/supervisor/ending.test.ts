/** How a supervisor ends: it needs no trays of tasks where their mailbox is off. */
import fs from "node:fs";
import { expect, it } from "vitest";
import { stateTree } from "../../src/core/state-tree.ts";
import { DEFAULT_SETTINGS, Supervisor } from "../../src/index.ts";
import { tempDir } from "../support/temp-dir.ts";

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
