/** What a pool pays for landings while no task has one. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { landing } from "../../../src/parts/landing/part.ts";
import { openEnvironment } from "../../../src/supervisor/environment/environment.ts";
import type { Part } from "../../../src/supervisor/environment/part.ts";
import type { Tick } from "../../../src/supervisor/environment/service.ts";
import type { PartHost } from "../../../src/supervisor/part.ts";
import { tempDir } from "../../support/temp-dir.ts";

it("looks for landings a few times a second, however many tasks settle", async () => {
  const tree = stateTree(tempDir());
  fs.mkdirSync(join(tree.dir, "mailbox", "processing"), { recursive: true });
  const env = openEnvironment({ tree, settings: DEFAULT_SETTINGS }, () => {});
  const part = landing({ env } as unknown as PartHost) as Required<Part>;
  await part.start(false);
  const stat = vi.spyOn(fs, "statSync");
  onTestFinished(() => stat.mockRestore());
  for (let nowMs = 1; nowMs <= 1000; nowMs++) {
    env.facts.emit("task:settled", `t-${nowMs}`, true, undefined);
    part.work({ nowMs } as Tick);
    part.nextMs(nowMs);
  }
  const looks = stat.mock.calls.filter(([path]) => String(path).endsWith("landings"));
  expect(looks.length).toBeGreaterThan(0);
  expect(looks.length).toBeLessThanOrEqual(5);
});
