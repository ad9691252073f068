/** How the tests run: against the TypeScript sources, three files at a time, because most wait for processes, and with counts as the last line of output. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 3,
    // For what hangs: tests wait with limits of their own, which grow with the load.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ["default", "./test/support/counts-reporter.ts"],
  },
});
