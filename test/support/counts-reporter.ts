/** Ends the output with the seed of the samples, and with `N passed, N failed, N skipped` on a line of its own, so that any CI can read it. */
import fs from "node:fs";
import type { Reporter, SerializedError, TestModule } from "vitest/node";
import { LEFT_OUT, WALKS_SEED } from "./walks.ts";

export default class CountsReporter implements Reporter {
  private line = "0 passed, 0 failed, 0 skipped";
  private leftOut = "";

  onInit(): void {
    // After the coverage table and everything else that others print late.
    process.once("exit", () => {
      fs.writeSync(1, `samples: MAILCHUTE_WALKS_SEED=${WALKS_SEED}${this.leftOut}\n`);
      fs.writeSync(1, `${this.line}\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    let leftOut = 0;
    for (const module of modules) {
      const failedBefore = counts.failed;
      for (const test of module.children.allTests()) {
        const { state, ...more } = test.result();
        if ("note" in more && more.note === LEFT_OUT) {
          leftOut += 1;
          continue;
        }
        // A test that never got its turn (interrupted) did not pass.
        counts[state === "pending" ? "failed" : state] += 1;
      }
      // A file that does not load, or whose hook fails, has no failed test to show for it.
      if (module.state() === "failed" && counts.failed === failedBefore) counts.failed += 1;
    }
    if (leftOut > 0) this.leftOut = `, ${leftOut} tests are left to npm run test:walks`;
    this.line = `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
  }
}
