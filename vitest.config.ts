/**
 * How the tests run: against the TypeScript sources, four files at a time, because many wait for processes, longest
 * first, and with counts as the last line of output.
 */
import { defineConfig } from "vitest/config";
import LongestFirst from "./test/support/longest-first.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    // What tests share is on disk, each in its own directory: a process for each file would only load all of it again.
    isolate: false,
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // For what hangs: tests wait with limits of their own, which grow with the load.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ["default", "./test/support/counts-reporter.ts"],
  },
});
