/**
 * Ends the output with the seed of the samples, and with `N passed, N failed, N skipped` on a line of its own, so that any CI can read it.
 * It also ends a run in which a test blocks its thread, where the limits of tests cannot fire.
 */
import fs from "node:fs";
import type { Reporter, SerializedError, TestModule, Vitest } from "vitest/node";
import { LEFT_OUT, WALKS_SEED } from "./walks.ts";

/** How long a run may stay silent after the limit of a test. */
const SILENT_MS = 60_000;

export default class CountsReporter implements Reporter {
  private readonly open = new Set<string>();
  private watch: NodeJS.Timeout | undefined;
  private limitMs = 0;
  private line = "0 passed, 0 failed, 0 skipped";
  private leftOut = "";

  onInit({ config }: Vitest): void {
    this.watchFor(config.testTimeout);
    // After the coverage table and everything else that others print late.
    process.once("exit", () => {
      fs.writeSync(1, `samples: MAILCHUTE_WALKS_SEED=${WALKS_SEED}${this.leftOut}\n`);
      fs.writeSync(1, `${this.line}\n`);
    });
  }

  /** Ends the run when no test ends for longer than this (ms). */
  private watchFor(limitMs: number): void {
    if (limitMs <= this.limitMs) return;
    this.limitMs = limitMs;
    clearTimeout(this.watch);
    this.watch = setTimeout(() => {
      const files = [...this.open].join("\n");
      fs.writeSync(2, `No test has ended for long; these files have begun:\n${files}\n`);
      this.line = "0 passed, 1 failed, 0 skipped";
      // A process that is blocked hears nothing but this.
      const children = `/proc/self/task/${process.pid}/children`;
      for (const pid of fs.existsSync(children) ? fs.readFileSync(children, "utf8").split(" ") : [])
        if (pid !== "") process.kill(Number(pid), "SIGKILL");
      process.exit(1);
    }, limitMs + SILENT_MS).unref();
  }

  onTestModuleCollected(module: TestModule): void {
    for (const { options } of module.children.allTests()) this.watchFor(options.timeout ?? 0);
  }

  onTestModuleQueued(module: TestModule): void {
    this.open.add(module.moduleId);
  }

  onTestCaseResult(): void {
    this.watch?.refresh();
  }

  onTestModuleEnd(module: TestModule): void {
    this.open.delete(module.moduleId);
    this.watch?.refresh();
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
