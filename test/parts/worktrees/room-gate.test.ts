/** The gate of tasks that wait for room on the disk tells a person when it stays closed. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { worktreeRoom } from "../../../src/parts/worktrees/room-gate.ts";
import type { Part } from "../../../src/supervisor/environment/part.ts";
import { tempDir } from "../../support/temp-dir.ts";

const MINUTE_MS = 60_000;

/** A gate whose disk lacks room or not, looked at when it is said. */
function newGate(): { told: string[]; look: (minutes: number, isShort: boolean) => number } {
  const dir = tempDir();
  const room = join(dir, "worktrees", ".room");
  fs.mkdirSync(room, { recursive: true });
  const told: string[] = [];
  const alerts = { report: (_key: string, message: string) => told.push(message) };
  const env = { tree: { dir }, settings: DEFAULT_SETTINGS, trays: {}, alerts };
  const part = worktreeRoom({ env } as never) as Required<Part>;
  const look = (minutes: number, isShort: boolean): number => {
    if (isShort) fs.writeFileSync(join(room, "wanted"), String(2 ** 60));
    else fs.rmSync(join(room, "wanted"), { force: true });
    fs.writeFileSync(join(room, "tidied"), "");
    part.work({ nowMs: 1 + minutes * MINUTE_MS } as never);
    return part.ports.startLimit?.gates?.length ?? 0;
  };
  return { told, look };
}

it("an alert says so when tasks wait for more than ten minutes, although the gate opens now and then for a new look", () => {
  const { told, look } = newGate();
  for (let minute = 0; minute < 10; minute++) {
    expect(look(minute, true)).toBe(1);
    expect(look(minute + 0.9, false)).toBe(0);
    expect(look(minute + 0.95, true)).toBe(1);
  }
  expect(told).toEqual([]);
  look(10, true);
  expect(told).toEqual([expect.stringContaining("tasks have waited for room on the disk")]);
  expect(told[0]).toContain("`mailchute worktrees ls`");
});

it("no alert comes when there was room in between", () => {
  const { told, look } = newGate();
  expect(look(0, true)).toBe(1);
  expect(look(9, false)).toBe(0);
  expect(look(9.5, true)).toBe(1);
  expect(look(11, true)).toBe(1);
  expect(told).toEqual([]);
  look(19.5, true);
  expect(told).toHaveLength(1);
});
