/** When a run of the tests is interrupted or killed, nothing that they have started goes on. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { tempDir } from "./temp-dir.ts";
import { waitFor } from "./wait-for.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const VITEST = join(ROOT, "node_modules", "vitest", "vitest.mjs");

/** Pids of processes whose arguments or environment name the directory. */
function naming(dir: string): string[] {
  return fs.readdirSync("/proc").filter((pid) => {
    try {
      return ["cmdline", "environ"].some((file) =>
        fs.readFileSync(`/proc/${pid}/${file}`, "latin1").includes(dir),
      );
    } catch {
      return false;
    }
  });
}

test.each(["SIGINT", "SIGTERM", "SIGKILL"] as const)(
  "tests that are ended by %s leave no process",
  async (signal) => {
    const dir = tempDir();
    const config = join(dir, "vitest.config.mjs");
    const options = { root: ROOT, include: ["test/fixtures/vitest/goes-on.ts"], isolate: false };
    fs.writeFileSync(config, `export default { test: ${JSON.stringify(options)} };\n`);
    const ready = join(dir, "ready");
    const child = spawn(process.execPath, [VITEST, "run", "--config", config], {
      cwd: ROOT,
      env: { ...process.env, SAYS_READY: ready },
      detached: true,
      stdio: "ignore",
    });
    const group = -(child.pid ?? 0);
    onTestFinished(() => {
      try {
        process.kill(group, "SIGKILL");
      } catch {
        // All of it has ended.
      }
    });
    const text = await waitFor(
      () => (fs.existsSync(ready) ? fs.readFileSync(ready, "utf8") : "") || undefined,
      { what: "the tests", timeoutMs: 60_000 },
    );
    expect(naming(text).length).toBeGreaterThanOrEqual(5);
    // As a terminal does: the signal goes to all of its group.
    process.kill(group, signal);
    await waitFor(() => naming(text).length === 0 && !fs.existsSync(text), {
      what: "the end of all that the tests have started",
      timeoutMs: 60_000,
    });
  },
);
