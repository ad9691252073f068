/** Old sessions and logs of coding agents are removed; those of tasks in processing stay. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { cleanAgents } from "../../../src/supervisor/maintenance/clean-agents.ts";
import { finishPass } from "../../../src/supervisor/maintenance/clean-pass.ts";
import { tempDir } from "../../support/temp-dir.ts";

const LONG_AGO_S = Date.now() / 1000 - 365 * 24 * 60 * 60;

it("removes old sessions and logs, and leaves those of tasks in processing and of other names", () => {
  const tree = stateTree(tempDir());
  const processing = join(tree.mailbox, "processing");
  for (const dir of [tree.sessions, tree.logs, processing]) fs.mkdirSync(dir, { recursive: true });
  const put = (dir: string, name: string, isOld = true): void => {
    fs.writeFileSync(join(dir, name), "{}");
    if (isOld) fs.utimesSync(join(dir, name), LONG_AGO_S, LONG_AGO_S);
  };
  for (const name of ["gone@a.json", "gone.b@a.review.json", "waits@a.json", "waits@a.plan.json"])
    put(tree.sessions, name);
  put(tree.sessions, "new@a.json", false);
  put(tree.sessions, "notes.txt");
  put(processing, "waits@a.1~ready.json");
  put(tree.logs, "coder.jsonl", false);
  put(tree.logs, "coder.20250101.jsonl");
  const rules = { nowMs: Date.now() };
  const { retention } = DEFAULT_SETTINGS;
  expect(finishPass(cleanAgents(tree, retention, { ...rules, isDryRun: true }))).toBe(3);
  expect(finishPass(cleanAgents(tree, retention, rules))).toBe(3);
  expect(fs.readdirSync(tree.sessions).sort()).toEqual([
    "new@a.json",
    "notes.txt",
    "waits@a.json",
    "waits@a.plan.json",
  ]);
  expect(fs.readdirSync(tree.logs)).toEqual(["coder.jsonl"]);
});
