/** The results of a batch while it runs: what may be taken for kept. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { BatchResults } from "../../src/mailbox/settle/batch-results.ts";
import { tempDir } from "../support/temp-dir.ts";

it("results that were not kept once are not taken for kept later", async () => {
  const results = new BatchResults(join(tempDir(), "results"));
  results.add(1, "{}\n", true);
  results.flush();
  const fault = Object.assign(new Error("EIO"), { code: "EIO" });
  // The kernel tells of data that it could not write once, and then takes the file for clean.
  const fdatasync = vi.spyOn(fs, "fdatasync");
  fdatasync.mockImplementationOnce((_fd, done) => done(fault));
  await expect(results.sync()).rejects.toBe(fault);
  await expect(results.sync()).rejects.toBe(fault);
  results.add(2, "{}\n", true);
  results.flush();
  await expect(results.sync()).rejects.toBe(fault);
  fdatasync.mockRestore();
  results.close();
});
