/** What the pool was told, over the restart of its supervisor. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ControlFile } from "../../../src/supervisor/documents/control-file.ts";
import { tempDir } from "../../support/temp-dir.ts";

test("a pause outlives its supervisor; rubbish in its place is no pause", () => {
  const path = join(tempDir(), "control.json");
  new ControlFile(path, false).change({ paused: true });
  expect(new ControlFile(path, false).current.paused).toBe(true);
  fs.writeFileSync(path, "{");
  expect(new ControlFile(path, false).current.paused).toBe(false);
});

test("a file that cannot be read just now is not taken for one that tells nothing", () => {
  // Its first byte is mapped nowhere: a regular file that opens, and answers EIO.
  expect(() => new ControlFile("/proc/self/mem", false)).toThrow("EIO");
});
