/** What was said to agents, and which task has a session, is removed when it is old and its task has settled. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { finishPass } from "../../../src/supervisor/maintenance/clean-pass.ts";
import { cleanTalk } from "../../../src/supervisor/maintenance/clean-talk.ts";
import { tempDir } from "../../support/temp-dir.ts";

const DAY_MS = 86_400_000;

it("removes old messages and continuations, but none of a task that waits or runs", () => {
  const dir = tempDir();
  const write = (path: string, value: object): void => {
    fs.mkdirSync(join(dir, path, ".."), { recursive: true });
    fs.writeFileSync(join(dir, path), JSON.stringify(value));
  };
  for (const id of ["done", "waits", "runs"]) {
    write(`sessions/continued/s-${id}.1.json`, { task_id: id });
    write(`say/${id}/1.json`, { text: "hi" });
  }
  write("mailbox/inbox/waits.json", {});
  write("mailbox/processing/runs@abc.1~ready.json", {});
  const tree = stateTree(dir);
  const { retention } = DEFAULT_SETTINGS;
  const clean = (days: number): number =>
    finishPass(cleanTalk(tree, retention, { nowMs: Date.now() + days * DAY_MS }));
  expect(clean(29)).toBe(0);
  expect(clean(31)).toBe(2);
  expect(fs.readdirSync(join(dir, "say")).sort()).toEqual(["runs", "waits"]);
  expect(fs.readdirSync(join(tree.sessions, "continued")).sort()).toEqual([
    "s-runs.1.json",
    "s-waits.1.json",
  ]);
  expect(clean(31)).toBe(0);
});
