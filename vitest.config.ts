/** How the tests run: against the TypeScript sources, two files at a time, and with counts as the last line of output. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    reporters: ["default", "./test/support/counts-reporter.ts"],
  },
});
